"""What a deletion takes is what its time says, and what it leaves is named.

The program's windows have panes of 10 and of 30 seconds; only `by_room` has keys.
"""

import pytest

from cloud_tier.lake import room
from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.tables import LakeTables
from lasp_edge.errors import Exit
from lasp_edge.tool.command_line import main
from simulations.oracle import Reading
from tests.cloud_tier.support_devices import BEGIN_US, SECOND_US, history, rooms
from tests.cloud_tier.written_lakes import window, write

PROGRAM = rooms()
ROOMS = ("attic", "cellar")
HALF_US = BEGIN_US + 100 * SECOND_US
"""Ten seconds behind the start of a pane of thirty: 2023-11-14 22:14:40."""
READINGS = [
    Reading(
        f"pi-{device}",
        "temperature",
        20.5,
        BEGIN_US + second * SECOND_US,
        {"room": ROOMS[second // 10 % 2]},
    )
    for device in range(3)
    for second in range(5, 150, 10)
]
ROWS = [each for each in history(PROGRAM, READINGS) if each["kind"] != "variable"]


@pytest.fixture
def lake(tmp_path):
    made = LakeTables(tmp_path / "lake")
    prepare(PROGRAM, made)
    write(made.landing, ROWS)
    return made


@pytest.fixture
def forgets(lake, capsys):
    def typed(*words):
        code = main(["lake", "forget", "--lake", lake.root, *words])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return typed


def panes(lake, *, key=None):
    """Return (window's stream, start) of the panes that are left of a device and a key."""
    rows = lake.table(lake.landing).to_pyarrow_table().to_pylist()
    return {
        (row["stream"], row["pane_us"])
        for row in rows
        if row["kind"] == "pane" and row["device"] == "pi-1" and key in {None, row["key"]}
    }


@pytest.mark.parametrize(
    ("words", "nearest"),
    [
        (
            ["--device", "pi-1", "--before", str(HALF_US)],
            "22:14:30 UTC' or '2023-11-14 22:15:00 UTC'",
        ),
        (
            ["--key", "attic", "--before", str(HALF_US + 1)],
            "22:14:40 UTC' or '2023-11-14 22:14:50 UTC'",
        ),
        (
            ["--device", "pi-1", "--before", str(BEGIN_US + SECOND_US * 2)],
            ": '2023-11-14 22:13:30 UTC'",
        ),
    ],
)
def test_a_time_within_a_pane_is_refused_and_the_nearest_others_are_named(
    lake, forgets, words, nearest
):
    before = lake.table(lake.landing).version()
    code, printed = forgets(*words)
    assert (code, printed.strip().endswith(nearest)) == (Exit.USAGE, True), printed
    assert lake.table(lake.landing).version() == before


def test_panes_of_a_stream_that_only_parameters_make_may_be_as_long_as_a_window(lake, forgets):
    pane = next(each for each in ROWS if each["kind"] == "pane")
    unknown = {"stream": 5, "device": "pi-9", "pane_us": BEGIN_US + 60 * SECOND_US}
    write(lake.landing, [pane | unknown])
    write(lake.windows, [window("totals", BEGIN_US, 0, total_q=1)])
    code, printed = forgets("--device", "pi-9", "--before", str(BEGIN_US + 90 * SECOND_US))
    assert (code, printed.strip()[-27:]) == (Exit.USAGE, ": '2023-11-14 22:15:00 UTC'")
    assert forgets("--device", "pi-9", "--before", "2023-11-14T22:15")[0] == Exit.FINE


def test_up_to_the_time_all_goes_and_nothing_behind_it(lake, forgets):
    old = panes(lake)
    time_us = HALF_US - 10 * SECOND_US
    code, _ = forgets("--device", "pi-1", "--before", str(time_us))
    assert code == Exit.FINE
    assert panes(lake) == {at for at in old if at[1] >= time_us} < old
    code, _ = forgets("--key", "attic", "--before", str(HALF_US))
    assert code == Exit.FINE
    assert panes(lake) == {at for at in old if at[1] >= time_us} - {
        at for at in panes(lake, key="attic") if at[1] < HALF_US
    }


def test_a_window_that_ends_later_is_not_from_before_the_time(lake, forgets):
    words = ["--key", "attic", "--before", str(HALF_US)]
    assert forgets(*words)[0] == Exit.FINE
    write(lake.windows, [window("by_room", HALF_US - 50 * SECOND_US, 0, key="attic", count=1)])
    assert forgets(*words)[0] == Exit.NOT_FOUND


def test_what_has_no_such_key_is_named_with_the_devices(forgets):
    _, printed = forgets("--key", "attic", "--before", str(HALF_US))
    (line,) = [line for line in printed.splitlines() if line.startswith("not deleted: ")]
    assert (
        "'attic' still counts these readings, if it is made of the same events: odd, totals;"
        in (line)
    )
    assert f"--device D --before {HALF_US}` for D = pi-0, pi-1, pi-2: " in line
    assert "windows that these rows were part of are missing" in printed
    _, printed = forgets("--device", "pi-2")
    assert "not deleted" not in printed


def test_the_least_number_of_days_has_a_reason(lake, capsys):
    assert main(["lake", "retain", "--lake", lake.root, "--days", "0"]) == Exit.USAGE
    assert "8 or more: the job takes readings that are up to 7 days late" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [("forget", "--device", "pi-1"), ("retain", "--days", "8"), ("upgrade",)]
)
def test_on_a_full_disk_nothing_is_begun(lake, capsys, monkeypatch, words):
    before = [lake.table(path).version() for path in (lake.landing, *lake.merged)]
    monkeypatch.setattr(room, "LEAST_FREE_BYTES", 1 << 80)
    assert main(["lake", *words, "--lake", lake.root]) == Exit.ENVIRONMENT
    (line,) = capsys.readouterr().err.splitlines()
    assert "No space left on device" in line
    assert [lake.table(path).version() for path in (lake.landing, *lake.merged)] == before
