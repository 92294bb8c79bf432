"""The rows of results of a key that is forgotten are gone, whatever their entries are stored under.

An entry's column `key` tells rows of one time apart; the row's own key is within it.
"""

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from cloud_tier.job.repair import repair_all
from cloud_tier.lake.deletion import recompute_is_due
from cloud_tier.lake.lake import Lake
from lasp_edge.errors import Exit
from lasp_edge.ordered.sent_rows import row_name
from lasp_edge.tool.command_line import main
from tests.cloud_tier.job.test_results import PROGRAM, entry, lake, place_of, promise
from tests.cloud_tier.support_devices import BEGIN_US, SECOND_US, table

pytestmark = pytest.mark.spark

__all__ = ["lake"]
ROOM = "Küche 1/ö 'x'"
"""A key that has to be quoted in SQL, and whose bytes are no ASCII."""


def rows_of(key, at_s, *, device="pi-1", first=1):
    return [
        entry(at, (at,), first + number, key=key, device=device) for number, at in enumerate(at_s)
    ]


ROWS = [
    *rows_of(ROOM, (10, 12, 14)),
    *rows_of("attic", (11, 13, 15), first=20),
    *rows_of(ROOM, (11, 40), device="pi-2"),
    entry(14, None, 30, key=ROOM),
    *rows_of(ROOM, (14,), first=1, device="pi-3"),
    entry(50, (49,), 60, key="attic"),
    entry(50, (50,), 61, key=ROOM),
    entry(60, (60,), 70, key=ROOM),
    entry(60, (61,), 71, key="attic"),
    entry(70, (70,), 72, key="attic"),
    *promise(30, 90),
]
"""Rows of both keys, also taken back, and at times that both have."""


@pytest.fixture
def merged(lake):
    """The lake into which all rows have landed, and were merged; one landed only."""
    lands(lake, ROWS)
    lake.step(ROWS)
    revised = [entry(70, (71,), 73, key=ROOM)]
    lands(lake, revised)
    lake.step(revised)
    lands(lake, rows_of(ROOM, (16,), first=80))
    return lake


def lands(lake, rows):
    write_deltalake(lake.lake.landing, table(PROGRAM, rows), mode="append", schema_mode="merge")


def forgets(lake, capsys, *words):
    """Return the exit code of `lake forget`, and what it printed."""
    code = main(["lake", "forget", "--lake", lake.lake.root, *words])
    printed = capsys.readouterr()
    return code, printed.out + printed.err


def stored(lake, *, key, device=""):
    """Return (table, device, second) of the entries in which the bytes of a key are."""
    return sorted(
        (name, row["device"], (row["pane_us"] - BEGIN_US) // SECOND_US)
        for name in ("landing", "lattice")
        for row in lake.rows(f"{lake.lake.root}/{name}")
        if row["said"] is not None and key.encode() in row["said"] and device in row["device"]
    )


def made_again(lake):
    """Return the rows of the result that a job makes of what is left in `landing`."""
    assert recompute_is_due(lake.lake)
    repair_all(lake.spark, lake.job)
    lake.restart()
    lake.step([row for row in lake.rows(lake.lake.landing) if row["kind"] == "pane"])
    return current(lake)


def current(lake):
    """Return (key, device, second, value) of the current rows."""
    shown = Lake(lake.lake.root).results("used").current().to_pylist()
    return sorted(
        (e["key"], e["device"], (e["time_us"] - BEGIN_US) // SECOND_US, e["difference"])
        for e in shown
    )


def test_rows_of_a_key_that_is_forgotten_are_in_no_table_and_are_not_made_again(merged, capsys):
    others = [each for each in current(merged) if each[0] == "attic"]
    assert others == [
        ("attic", "pi-1", 11, 5.5),
        ("attic", "pi-1", 13, 6.5),
        ("attic", "pi-1", 15, 7.5),
        ("attic", "pi-1", 60, 30.5),
    ]
    kept = stored(merged, key="attic")
    code, printed = forgets(merged, capsys, "--key", ROOM)
    assert code == Exit.FINE
    counts = {n: int(rows) for rows, n in re.findall(r"([\d,]+) rows of (\w+)", printed)}
    assert counts["landing"] == 13, "ten entries of the room, one that only landed, two older"
    assert "not deleted" not in printed or "used" not in printed.partition("not deleted")[2]
    assert not stored(merged, key=ROOM)
    gone = {(name, "pi-1", at) for name in ("landing", "lattice") for at in (50, 70)}
    assert stored(merged, key="attic") == [each for each in kept if each not in gone]
    assert not files_with(merged, ROOM)
    assert made_again(merged) == others
    assert forgets(merged, capsys, "--key", ROOM)[0] == Exit.NOT_FOUND


def files_with(lake, text):
    """Return the data files of entries, of any version, in whose rows the bytes of a text are."""
    found = [
        file for name in ("landing", "lattice") for file in (Path(lake.lake.root) / name).rglob("*")
    ]
    return [
        file
        for file in found
        if file.suffix == ".parquet"
        for packed in pq.ParquetFile(file).read(["said"]).column(0).to_pylist()
        if packed is not None and text.encode() in packed
    ]


def test_a_time_and_a_device_narrow_which_rows_of_a_key_go(merged, capsys):
    before = current(merged)
    code, printed = forgets(
        merged, capsys, "--key", ROOM, "--device", "pi-2", "--before", "2023-11-14 22:13:20"
    )
    assert code == Exit.FINE
    assert "deleted: 1 rows of results, 1 rows of lattice, 1 rows of landing" in printed
    assert made_again(merged) == sorted(
        [*(each for each in before if each[:3] != (ROOM, "pi-2", 11)), (ROOM, "pi-1", 16, 8.0)]
    )


def test_what_tells_rows_apart_is_no_key(merged, capsys):
    inner = row_name(place_of(10))
    code, printed = forgets(merged, capsys, "--key", inner)
    assert code == Exit.NOT_FOUND
    assert f"has nothing of the key {inner!r}; keys: \"{ROOM}\", 'attic'\n" in printed
