"""A lake's report: against a lake that the lander's own code wrote, and the locks of processes."""

import fcntl
import json
import os
from argparse import ArgumentParser
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from cloud_tier.lake.failed import FAILURE, forget_failure, note_failure
from cloud_tier.lake.status import JOB_LOCK, LANDER_LOCK, status
from device_agent.console.command import retire
from device_agent.console.command.session import fleet_view
from lasp_edge.errors import Exit, UsageError
from lasp_edge.tool.command_line import main
from lasp_edge.tool.screen import UNKNOWN
from lasp_edge.tool.times import shown_time
from tests.cloud_tier.lake.support_promises import MINUTE_US, NOW_US, ROWS, merge, promise
from tests.cloud_tier.support_devices import BEGIN_US, SECOND_US, row, table, tick
from tests.cloud_tier.written_lakes import PROGRAM, window, write, written

NAMES = ("fast", "slow", "dead", "no clock")


@pytest.fixture
def tables(tmp_path):
    return written(tmp_path / "lake")


def report(tables):
    return status(tables, roster=None, dead_after_us=600 * SECOND_US)


def test_the_report_is_what_the_tables_hold(tables):
    merge(tables, ROWS)
    final = window("odd", 10**9, 0, min_q=1, max_q=1, n_count=1, size_us=50)
    write(tables.windows, [final | {"status": "final", "frontier": 100}])
    rejected = {"topic": "t", "reason": "no frame", "frames": 3, "frame": b""}
    write(tables.rejects, [rejected | {"received_us": at_us} for at_us in (5, 9)])
    found = report(tables)
    assert (found["program"], found["format"]) == ("rooms", "2")
    assert found["id"] == tables.lake_id()
    size = found["tables"]["windows"]
    assert (size["rows"], size["files"], size["version"]) == (7, 2, 2)
    assert size["bytes"] == sum(
        path.stat().st_size for path in Path(tables.windows).glob("*.parquet")
    )
    assert found["windows"]["odd"] == {
        "start_us": 10**9,
        "end_us": 10**9 + 50,
        "final_end_us": 10**9 + 50,
    }
    assert found["frontier"]["recorded_us"] == 100
    assert found["frontier"]["held_by"] == ["slow"]
    assert found["rejects"] == [{"reason": "no frame", "frames": 6, "last_us": 9}]
    assert (found["runs"], found["failure"]) == ({"job": False, "lander": None}, None)
    assert json.loads(json.dumps(found)) == found


def test_results_are_told_with_their_newest_row_and_their_newest_final_one(tables, capsys):
    assert report(tables)["results"] == {}
    times = [(BEGIN_US, "final"), (BEGIN_US + 3, "revised"), (BEGIN_US + 9, "tentative")]
    rows = [
        {"result": name, "device": "pi", "key": "", "time_us": at_us, "place": str(at_us)}
        | {"present": True, "status": status, "revision": 0, "frontier": None, "stream": 7}
        for name, several in (("runs", times), ("used", times[2:]))
        for at_us, status in several
    ]
    write(tables.results, rows)
    assert report(tables)["results"] == {
        "runs": {"time_us": BEGIN_US + 9, "final_time_us": BEGIN_US + 3},
        "used": {"time_us": BEGIN_US + 9, "final_time_us": None},
    }
    assert main(["lake", "status", "--lake", tables.root]) == Exit.FINE
    head, runs, used = capsys.readouterr().out.partition("result ")[2].splitlines()[:3]
    assert head.split() == ["newest", "row", "newest", "final"]
    assert [line.split()[0] for line in (runs, used)] == ["runs", "used"]


def offset(tables, batch, version, index=-1, planned_us=NOW_US):
    plain = {"reservoirVersion": version, "index": index, "isStartingVersion": False}
    folder = Path(tables.checkpoint, "offsets")
    folder.mkdir(parents=True, exist_ok=True)
    noted = {"batchTimestampMs": planned_us // 1000, "conf": {}}
    (folder / str(batch)).write_text(f"v1\n{json.dumps(noted)}\n{json.dumps(plain)}")


def commit(tables, batch):
    folder = Path(tables.checkpoint, "commits")
    folder.mkdir(exist_ok=True)
    (folder / str(batch)).write_text("v1\n{}")


def merged(tables):
    found = dict(report(tables)["merged"])
    last_us, oldest_us = found.pop("last_us"), found.pop("oldest_us")
    assert not found.pop("has_data"), "ticks alone have landed"
    assert (last_us is None) == (found["batch"] is None)
    assert (oldest_us is None) == (found["commits_behind"] == 0)
    return found


def test_a_batch_that_was_begun_and_not_finished_is_told(tables):
    assert report(tables)["merged"] is None
    for number in range(4):
        write_deltalake(tables.landing, table(PROGRAM, [tick(number, BEGIN_US)]), mode="append")
    assert DeltaTable(tables.landing).version() == 4
    offset(tables, 0, 3)
    assert merged(tables) == {"batch": None, "unfinished": True, "commits_behind": 5}
    commit(tables, 0)
    assert merged(tables) == {"batch": 0, "unfinished": False, "commits_behind": 2}
    offset(tables, 1, 5, planned_us=BEGIN_US)
    assert merged(tables) == {"batch": 0, "unfinished": True, "commits_behind": 2}
    commit(tables, 1)
    copied_s = BEGIN_US // SECOND_US + 240  # as `cp -r` leaves the files
    for folder in ("offsets", "commits"):
        os.utime(f"{tables.checkpoint}/{folder}/1", (copied_s, copied_s))
    assert report(tables)["merged"]["last_us"] == BEGIN_US
    assert merged(tables) == {"batch": 1, "unfinished": False, "commits_behind": 0}
    Path(tables.checkpoint, "offsets", "1").write_text("torn")
    found = report(tables)["merged"]
    assert (found["commits_behind"], found["last_us"]) == (5, None)


def test_processes_are_told_by_the_locks_that_they_hold(tables):
    Path(tables.log).mkdir()
    with Path(tables.root, "job.lock").open("w") as job, Path(tables.log, "lock").open("w"):
        fcntl.flock(job, fcntl.LOCK_EX)
        assert report(tables)["runs"] == {"job": True, "lander": False}


def shown(tables, capsys, monkeypatch, now_us):
    """Return the lines of `lake status`, at a time."""
    monkeypatch.setattr("cloud_tier.command.lake.host_us", lambda: now_us)
    assert main(["lake", "status", "--lake", tables.root]) == Exit.FINE
    return capsys.readouterr().out.splitlines()


def test_the_command_says_it_in_words(tables, capsys, monkeypatch):
    monkeypatch.setattr("cloud_tier.command.lake.host_us", lambda: NOW_US + 2 * SECOND_US)
    Path(tables.log).mkdir()
    merge(tables, ROWS)
    rejected = {"received_us": 5, "topic": "t", "reason": "no frame", "frames": 3, "frame": b""}
    write(tables.rejects, [rejected])
    with running(Path(tables.root, JOB_LOCK), Path(tables.log, LANDER_LOCK)):
        assert main(["lake", "status", "--lake", tables.root]) == Exit.FINE
    output = capsys.readouterr().out
    assert output.startswith("lake ")
    for words in (
        "program rooms, format 2",
        "final    up to 2023-11-14 22:32:00 UTC, 62 s ago; waits for slow",
        "windows      6",
        "no frame",
        "results wait for it",
    ):
        assert words in output
    assert main(["lake", "status", "--lake", tables.root, "--json"]) == Exit.FINE
    assert json.loads(capsys.readouterr().out)["program"] == "rooms"
    monkeypatch.setattr("cloud_tier.command.lake.host_us", lambda: NOW_US - 90 * SECOND_US)
    assert main(["lake", "status", "--lake", tables.root]) == Exit.FINE
    assert "22:32:00 UTC, 30 s ahead of this machine's clock" in capsys.readouterr().out
    assert main(["lake", "shared", "--lake", tables.root]) == Exit.FINE
    assert capsys.readouterr().out == f"{tables.root}: no device has sent a shared variable yet\n"
    assert main(["lake", "status", "--lake", f"{tables.root}/no"]) == Exit.NOT_FOUND
    there = f"{tables.root}/no"
    none = f"no lake with a table 'landing' in {there}: name its directory with --lake, or start "
    assert none in capsys.readouterr().err
    watched = ["lake", "status", "--lake", there, "--fail-if-behind", "9"]
    assert main(watched) == Exit.NOT_FOUND
    assert f"--broker URL --lake {there}` to make one\n" in capsys.readouterr().err


def land(tables, lander, number, at_us):
    """Commit to `landing` as a lander does whose clock shows a time."""
    once = CommitProperties(app_transactions=[Transaction(lander, number)])
    rows = table(PROGRAM, [tick(number, at_us)])
    write_deltalake(tables.landing, rows, mode="append", commit_properties=once)
    log = Path(tables.landing, "_delta_log", f"{DeltaTable(tables.landing).version():020d}.json")
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "commitInfo" in action:
            action["commitInfo"]["timestamp"] = at_us // 1000
    log.write_text("".join(f"{json.dumps(action)}\n" for action in actions))


def test_no_device_is_blamed_while_the_job_stands_still(tables, capsys, monkeypatch):
    """What is merged of devices is old then, and says nothing of them."""
    merge(tables, ROWS)
    offset(tables, 0, 1)
    commit(tables, 0)
    land(tables, "lander", 2, NOW_US + 30 * SECOND_US)
    with running(Path(tables.root, JOB_LOCK), Path(tables.log, LANDER_LOCK)):
        soon, late = (
            shown(tables, capsys, monkeypatch, NOW_US + s * SECOND_US) for s in (150, 151)
        )
    assert (soon[0][:5], late[0][:29]) == ("lake ", "wrong    the job stands still")
    for number in range(3, 26):
        land(tables, "lander", number, NOW_US + number * 15 * SECOND_US)
    land(tables, "new one", 1, NOW_US + 360 * SECOND_US)
    look = (tables, capsys, monkeypatch, NOW_US + 380 * SECOND_US)
    with running(Path(tables.root, JOB_LOCK), Path(tables.log, LANDER_LOCK)):
        lines, (_, line) = shown(*look), behind(*look)
    stands = (
        "the job stands still or falls behind (the last merged batch was begun at "
        "2023-11-14 22:33:00 UTC, and 25 commits wait): see its log"
    )
    assert lines[0] == f"wrong    {stands}"
    assert line.endswith(f"22:32:00 UTC, 440 s ago; {stands}\n")
    assert "final    up to 2023-11-14 22:32:00 UTC, 7 min ago" in lines
    assert "as of the last merged batch, begun 6 min ago; 25 later commits are not in it:" in lines
    fields = [line.split() for line in lines]
    assert ["slow", "live", "2023-11-14", "22:32:00", "6", "min", "ago"] in fields
    newest = ["lander", "2023-11-14", "22:39:15", "2023-11-14", "22:13:00"]
    assert newest in fields
    assert ["new", "one", "2023-11-14", "22:39:00", UNKNOWN] in fields
    assert not [line for line in lines if "wait for" in line or "waits for" in line]


def test_no_device_is_blamed_while_nothing_lands(tables, capsys, monkeypatch):
    merge(tables, ROWS)
    with running(Path(tables.root, JOB_LOCK)):
        lines = shown(tables, capsys, monkeypatch, NOW_US + 15 * MINUTE_US)
    assert lines[0].startswith("wrong    nothing has landed since 2023-11-14 22:33:00 UTC: is ")
    assert "final    up to 2023-11-14 22:32:00 UTC, 16 min ago" in lines
    fields = [line.split() for line in lines]
    assert ["slow", "live", "2023-11-14", "22:32:00", "15", "min", "ago"] in fields
    assert "wait" not in " ".join(lines).replace("not waited for", "")


def test_a_lake_to_which_nothing_more_comes_is_fine_once_all_is_merged(tables, capsys, monkeypatch):
    merge(tables, [*(promise(name, NOW_US, done=True) for name in NAMES), tick(1, NOW_US)])
    late = row("pane", NAMES[0], 1, 7, 1, pane_us=BEGIN_US)
    write_deltalake(tables.landing, table(PROGRAM, [late, tick(1, BEGIN_US)]), mode="append")
    offset(tables, 0, 1)
    commit(tables, 0)
    look = (tables, capsys, monkeypatch, NOW_US + 60 * MINUTE_US)
    code, line = behind(*look)
    last = "the last merged batch was begun at 2023-11-14 22:33:00 UTC, and a commit waits"
    start = f"start `lasp-edge cloud MODULE:PROGRAM --no-lander --lake {tables.root}`"
    assert code == 1
    assert line.endswith(
        f"; all 4 devices are done, but not all that landed is merged; no job runs on this "
        f"machine ({last}): {start}\n"
    )
    offset(tables, 0, 2)
    for number in (2, 3):  # a lander goes on, and so does an agent that has nothing more
        beat = promise(NAMES[0], NOW_US, NOW_US, number, done=True)
        write_deltalake(tables.landing, table(PROGRAM, [beat, tick(number, NOW_US)]), mode="append")
    words = "all 4 devices are done, and all that they sent is merged: nothing more is to come"
    watched = ["lake", "status", "--lake", tables.root, "--fail-if-behind", "120"]
    assert main(watched) == Exit.FINE
    assert capsys.readouterr() == (f"{tables.root}: {words}\n", "")
    lines = shown(*look)
    assert lines[0].startswith("lake ")
    assert any(line.startswith("final ") and line.endswith(f" ago; {words}") for line in lines)


def behind(tables, capsys, monkeypatch, now_us, limit_s=120):
    """Return the exit code and the line of `--fail-if-behind`, at a time."""
    monkeypatch.setattr("cloud_tier.command.lake.host_us", lambda: now_us)
    words = ["lake", "status", "--lake", tables.root, "--fail-if-behind", str(limit_s)]
    code, printed = main(words), capsys.readouterr()
    assert not printed.out
    assert printed.err.count("\n") == (code != Exit.FINE)
    return code, printed.err


@contextmanager
def running(*locks):
    """Hold the locks of processes, as they do while they run."""
    with ExitStack() as held:
        for path in locks:
            path.parent.mkdir(exist_ok=True)
            fcntl.flock(held.enter_context(path.open("w")), fcntl.LOCK_EX)
        yield


def test_cron_gets_one_line_where_results_are_behind_and_none_where_not(
    tables, capsys, monkeypatch
):
    look = (tables, capsys, monkeypatch)
    job, lander = Path(tables.root, JOB_LOCK), Path(tables.log, LANDER_LOCK)
    with running(job):
        made_us = report(tables)["made_us"]
        assert behind(*look, made_us + 120 * SECOND_US) == (0, "")
        code, line = behind(*look, made_us + 121 * SECOND_US)
        assert (code, "nothing is final yet; nothing has landed ever: is" in line) == (1, True)
        merge(tables, ROWS)
        assert behind(*look, NOW_US + MINUTE_US) == (0, "")
        code, line = behind(*look, NOW_US + MINUTE_US + SECOND_US)
        assert code == 1
        assert "final up to 2023-11-14 22:32:00 UTC, 121 s ago; they wait for slow: look at" in line
        parser = ArgumentParser()
        retire.add_arguments(parser)
        typed = parser.parse_args(line.split("`")[1].split()[2:])
        assert (typed.device, fleet_view(typed).topics.root) == ("slow", "lasp/v1/rooms")
    with running(job, lander):
        code, line = behind(*look, NOW_US + 60 * MINUTE_US)
        assert "; nothing has landed since 2023-11-14 22:33:00 UTC: a lander runs; its log" in line
    with running(job):
        code, line = behind(*look, NOW_US + MINUTE_US + SECOND_US)
        assert "they wait for slow: no lander runs on this machine, so start" in line
        code, line = behind(*look, NOW_US + 60 * MINUTE_US)
        assert "22:33:00 UTC: no lander runs on this machine, so start `lasp-edge lander " in line


def test_cron_is_told_that_neither_job_nor_lander_runs_since_when_and_what_to_type(
    tables, capsys, monkeypatch
):
    look = (tables, capsys, monkeypatch, NOW_US + MINUTE_US + SECOND_US)
    start = f"start `lasp-edge cloud MODULE:PROGRAM --no-lander --lake {tables.root}`"
    merge(tables, ROWS)
    _, line = behind(*look)
    none = "no job runs on this machine (none has ever merged into this lake"
    assert f"121 s ago; {none}): {start}\n" in line
    write_deltalake(tables.landing, table(PROGRAM, [tick(1, BEGIN_US)]), mode="append")
    assert f"; {none}, and a commit waits): {start}\n" in behind(*look)[1]
    offset(tables, 0, 1, index=0)
    commit(tables, 0)
    last = "the last merged batch was begun at 2023-11-14 22:33:00 UTC"
    assert f"; no job runs on this machine ({last}): {start}\n" in behind(*look)[1]
    with running(Path(tables.log, LANDER_LOCK)):
        pass
    both = f"start `lasp-edge cloud MODULE:PROGRAM --broker URL --lake {tables.root}`, which runs"
    neither = f"; neither a job nor a lander runs on this machine ({last}): {both} both\n"
    assert neither in behind(*look)[1]


def test_a_job_that_was_just_started_is_in_its_first_batch_and_does_not_stand_still(
    tables, capsys, monkeypatch
):
    pytest.importorskip("pyspark", reason="needs the extra `cloud`")
    locked = pytest.importorskip("cloud_tier.command.cloud")._locked
    made_us = report(tables)["made_us"]
    for number in range(1, 26):
        land(tables, "lander", number, made_us + number * SECOND_US)
    monkeypatch.setattr("cloud_tier.lake.status.host_us", lambda: made_us + 9 * SECOND_US)
    with locked(tables), running(Path(tables.log, LANDER_LOCK)):
        with pytest.raises(UsageError, match="another `lasp-edge cloud` is merging"):
            locked(tables)
        since_us = report(tables)["job_since_us"]
        assert since_us == made_us + 9 * SECOND_US
        lines = shown(tables, capsys, monkeypatch, made_us + 40 * SECOND_US)
        assert not [line for line in lines if line.startswith("wrong")]
        shown_us = since_us // SECOND_US * SECOND_US
        first = f"in its first batch since it was started at {shown_time(shown_us)} UTC"
        assert f"job      runs; {first}, and 25 commits wait" in lines
        look = (tables, capsys, monkeypatch)
        assert behind(*look, made_us + 120 * SECOND_US) == (0, "")
        code, line = behind(*look, made_us + 121 * SECOND_US)
        assert code == 1
        assert line.endswith(f"nothing is final yet; the job is {first}, and 25 commits wait\n")
        late = shown(*look, since_us + 301 * SECOND_US)
        assert late[0] == f"wrong    the job is {first}, and 25 commits wait: see its log"
        offset(tables, 0, 2, planned_us=since_us)
        commit(tables, 0)
        assert "the job stands still" in shown(*look, since_us + 301 * SECOND_US)[0]


def test_cron_is_told_why_the_job_fails_until_a_batch_is_merged(tables, capsys, monkeypatch):
    look = (tables, capsys, monkeypatch, NOW_US + MINUTE_US + SECOND_US)
    merge(tables, ROWS)
    for times in (1, 2):
        at_us = NOW_US + times * SECOND_US
        monkeypatch.setattr("cloud_tier.lake.failed.host_us", lambda at_us=at_us: at_us)
        note_failure(tables, "no room; make room", times)
    assert report(tables)["failure"] == {
        "why": "no room; make room",
        "times": 2,
        "first_us": NOW_US + SECOND_US,
        "last_us": NOW_US + 2 * SECOND_US,
    }
    failed = "failed 2 times since 2023-11-14 22:33:01 UTC and"
    with running(Path(tables.root, JOB_LOCK)):
        assert f"; the job has {failed} tries again: no room; make room\n" in behind(*look)[1]
    start = f"start `lasp-edge cloud MODULE:PROGRAM --no-lander --lake {tables.root}`"
    assert f"; the job {failed} has ended (no room; make room): {start}\n" in behind(*look)[1]
    assert main(["lake", "status", "--lake", tables.root]) == Exit.FINE
    assert "failure  2023-11-14 22:33:02 UTC: no room; make room\n" in capsys.readouterr().out
    Path(tables.root, FAILURE).write_text("{")
    assert report(tables)["failure"] is None
    forget_failure(tables)
    assert not Path(tables.root, FAILURE).exists()


def test_the_report_lists_the_landers(tables, capsys):
    merge(tables, ROWS)
    assert report(tables)["frontier"]["landers"] == {
        "lander": {"now_us": NOW_US, "since_us": BEGIN_US, "landed_us": None}
    }
    assert main(["lake", "status", "--lake", tables.root]) == Exit.FINE
    assert "lander  2023-11-14 22:33:00" in " ".join(capsys.readouterr().out.split("\n"))
