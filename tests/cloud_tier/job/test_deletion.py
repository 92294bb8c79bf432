"""What is deleted from a lake is gone from all of it, and what remains is that of the others.

The windows must be those of a recomputation from the readings that are left.
"""

import fcntl
import re
from pathlib import Path

import pytest

from cloud_tier.job import bookmark
from cloud_tier.job.opened import Superseded
from cloud_tier.job.repair import repair_all
from cloud_tier.job.watching import BatchWatch
from cloud_tier.lake.deletion import forget, kept_days, recompute_is_due, retain
from cloud_tier.lake.matching import Wanted
from cloud_tier.lake.status import JOB_LOCK
from lasp_edge.errors import Exit, UsageError
from lasp_edge.tool.command_line import main
from tests.cloud_tier.job.test_restored import Restored
from tests.cloud_tier.lakes import LakeUnderTest
from tests.cloud_tier.support_devices import BEGIN_US, SECOND_US, readings_of, rooms, true_windows

pytestmark = pytest.mark.spark

PROGRAM = rooms()
READINGS = readings_of(11, each=4)
MIDDLE_US = BEGIN_US + 90 * SECOND_US


class Deleted(Restored):
    """A lake from which something is deleted while devices go on."""

    def forget(self, **wanted):
        """Delete between two runs of the job, as the command does, while a lander lands."""
        counts = forget(self.tables, Wanted(**wanted))
        assert recompute_is_due(self.tables)
        return counts

    def files_with(self, text):
        """Return the data files in which a text is, in any version."""
        found = Path(self.tables.root).glob("*/**/*.parquet")
        return [file for file in found if text.encode() in file.read_bytes()]


@pytest.fixture(scope="module")
def landed(spark, tmp_path_factory):
    """The lake into which all parts but one were merged, of which each test gets a copy."""
    made = Deleted(spark, tmp_path_factory.mktemp("landed") / "lake")
    while len(made.parts) > 1:
        made.land()
    made.merge()
    return made


@pytest.fixture
def lake(landed, tmp_path):
    return landed.copied(tmp_path / "lake")


def others(**left_out):
    """Return the true windows of the readings that a device or a room is not in."""
    device, room = left_out.get("device"), left_out.get("key")
    kept = [each for each in READINGS if each.device != device and each.tags["room"] != room]
    return true_windows(PROGRAM, kept)


def test_a_device_that_is_forgotten_is_in_no_table_and_in_no_file(lake):
    """Its last part lands behind the deletion: it sends again what is in its own store.

    Another one had landed before, and no job had merged it.
    """
    lake.parts.insert(0, lake.parts[0])
    lake.land()
    lake.parts[0] = [row for row in lake.parts[0] if row["device"] != "pi-1"]
    counts = lake.forget(device="pi-1")
    assert counts["landing"] > 0 < counts["windows"]
    lake.land()
    watch = BatchWatch(lake.lake.job, None)
    lake.merge(watch=watch)
    (line,) = (each for each in lake.lines if "merged again" in each)
    assert re.fullmatch(
        "`lake forget` deleted from landing at [-0-9]{10} [:0-9]{8} UTC: all that it holds is "
        "merged again",
        line,
    )
    assert (watch.figures.failures, watch.figures.mended) == (0, 0)
    assert lake.lake.current() == others(device="pi-1")
    lake.lake.statuses()
    assert "pi-1" not in {row["device"] for row in lake.lake.rows(lake.tables.landing)}
    assert not [file for file in lake.files_with("pi-1") if "windows" not in str(file)]
    assert lake.lake.globals()["global_average", ""].devices_in == 2
    assert not recompute_is_due(lake.tables)
    assert "pi-1" not in {row["device"] for row in lake.lake.rows(lake.tables.lattice)}


def test_windows_that_are_too_old_for_late_readings_are_made_again_too(lake):
    lake.lake.job = type(lake.lake.job)(PROGRAM, lake.tables, retain_us=0)
    lake.parts[0] = [row for row in lake.parts[0] if row["device"] != "pi-1"]
    lake.land()
    lake.merge()
    lake.forget(device="pi-1")
    repair_all(lake.lake.spark, lake.lake.job)
    assert lake.lake.current() == others(device="pi-1")


def test_a_key_that_is_forgotten_leaves_the_other_keys_as_they_are(lake):
    lake.forget(key="attic")
    lake.parts[0] = [row for row in lake.parts[0] if row["key"] != "attic"]
    lake.land()
    lake.merge()
    found = {at: row for at, row in lake.lake.current().items() if at[0] == "by_room"}
    assert found == {at: row for at, row in others(key="attic").items() if at[0] == "by_room"}


def test_what_was_measured_before_a_time_is_forgotten_and_later_readings_stay(lake, tmp_path):
    def is_old(row):
        return (row["device"], row["kind"]) == ("pi-1", "pane") and row["pane_us"] < MIDDLE_US

    before = lake.lake.rows(lake.tables.landing)
    counts = lake.forget(device="pi-1", before_us=MIDDLE_US)
    lake.merge()
    rows = lake.lake.rows(lake.tables.landing)
    assert len(rows) == len(before) - counts["landing"] < len(before)
    assert not list(filter(is_old, rows))
    again = LakeUnderTest(lake.lake.spark, PROGRAM, tmp_path / "again")
    again.step([row for row in before if not is_old(row)])
    assert lake.lake.current() == again.current()


def test_what_is_old_goes_and_windows_that_are_kept_keep_all_of_their_panes(lake, monkeypatch):
    monkeypatch.setattr("cloud_tier.lake.deletion.DAY_US", 30 * SECOND_US)
    lake.land()
    lake.merge()
    before = lake.lake.current()
    frontier_us = lake.lake.known.frontier
    assert frontier_us is None
    with pytest.raises(UsageError, match="no window is final yet"):
        retain(lake.tables, 1)
    monkeypatch.setattr("cloud_tier.lake.deletion.recorded_frontier", lambda _: MIDDLE_US)
    counts = retain(lake.tables, 1)
    assert counts["windows"] > 0 < counts["landing"]
    kept = {
        at: row for at, row in before.items() if at[2] + size_us(at[0]) > MIDDLE_US - 30 * SECOND_US
    }
    assert lake.lake.current() == kept
    assert kept_days(lake.tables) == 1
    lake.merge()
    assert lake.lake.current() == kept


def test_the_command_deletes_and_the_job_has_to_stop_before(lake, capsys):
    words = ["lake", "forget", "--lake", lake.tables.root]
    lake.lake.job.tables.claim()
    assert main(words) == Exit.USAGE
    assert main([*words, "--device", "pi-1", "--before", "x"]) == Exit.USAGE
    with Path(lake.tables.root, JOB_LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert main([*words, "--device", "pi-1"]) == Exit.USAGE
    assert "a job merges into this lake: stop it" in capsys.readouterr().err
    assert main([*words, "--device", "pi-1"]) == Exit.FINE
    printed = capsys.readouterr().out
    assert re.search(r"deleted: \d+ rows of windows, .* \d+ rows of landing", printed)
    assert f"`lasp-edge retire pi-1 --fleet {PROGRAM.name} --broker URL` keeps them out" in printed
    with pytest.raises(Superseded):
        lake.lake.job.tables.claim()
    assert main(["lake", "retain", "--lake", lake.tables.root, "--days", "7"]) == Exit.USAGE


def forgets(lake, capsys, *words):
    """Return the exit code of `lake forget`, and what it printed of the lake."""
    code = main(["lake", "forget", "--lake", lake.tables.root, *words])
    printed = capsys.readouterr()
    return code, printed.out + printed.err.partition(f"{lake.tables.root} ")[2]


def test_a_name_that_the_lake_does_not_have_is_not_one_that_was_deleted(lake, capsys, monkeypatch):
    versions = {path: lake.lake.version(path) for path in lake.tables.all}
    begin = "2023-11-14 22:12:00"
    for words, line in (
        (["--key", "atic"], "has nothing of the key 'atic'; keys: 'attic', 'cellar'\n"),
        (
            ["--device", "pi-9"],
            "has nothing of the device 'pi-9'; devices: 'pi-0', 'pi-1', 'pi-2'\n",
        ),
        (
            ["--device", "pi-1", "--key", "atic"],
            "has nothing of the device 'pi-1' and the key 'atic'; keys: 'attic', 'cellar'\n",
        ),
        (
            ["--key", "attic", "--before", begin],
            f"has nothing of the key 'attic' from before {begin} UTC; the oldest is of 2023-11-14 ",
        ),
    ):
        code, printed = forgets(lake, capsys, *words)
        assert (code, printed.startswith(line)) == (Exit.NOT_FOUND, True), printed
    monkeypatch.setattr("cloud_tier.lake.matching._FEW_NAMES", 2)
    _, printed = forgets(lake, capsys, "--key", "atic")
    near = "has nothing of the key 'atic'; did you mean 'attic'? Of 3 keys `lasp-edge windows"
    assert printed.startswith(near)
    assert {path: lake.lake.version(path) for path in lake.tables.all} == versions


def test_rows_of_devices_count_and_no_bookkeeping(lake, capsys, monkeypatch):
    """A deletion that was killed has no rows any more, perhaps, and goes on all the same."""
    bookmark.put_bookmark(lake.lake.job, None, {}, complete=True)
    rows = [row for row in lake.lake.rows(lake.tables.lattice) if row["key"] == "attic"]
    with monkeypatch.context() as patch:
        patch.setattr("cloud_tier.lake.deletion._delete_files", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            forgets(lake, capsys, "--key", "attic")
    code, printed = forgets(lake, capsys, "--key", "attic")
    assert code == Exit.FINE
    assert "\ndevices keep what they measured of it for 7 days, or their --retain-days" in printed
    assert f" {len(rows)} rows of lattice, " in printed
    assert not [file for file in lake.files_with("attic") if "programs" not in str(file)]
    assert forgets(lake, capsys, "--key", "attic")[0] == Exit.NOT_FOUND


def size_us(window):
    return PROGRAM.windows[window].size_us
