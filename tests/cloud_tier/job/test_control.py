"""Parameters change: the lake's windows are the gateway's, and those that the definition says."""

import pickle
from contextlib import suppress
from shutil import copytree

import pytest

from cloud_tier.job import frames
from cloud_tier.job.control import check_functions
from cloud_tier.job.opened import OpenTables
from cloud_tier.job.repair import repair
from crdts import ControlLog
from lasp_edge import Program
from lasp_edge.errors import UsageError
from lasp_edge.protocol.status import FINAL, REVISED
from simulations.control import plan
from tests.cloud_tier.job.support_control import (
    LandedWorld,
    S,
    differing,
    lake_and_gateway,
    late_log,
    offset_program,
    rows_of_log,
    sent_under,
    sums,
)
from tests.cloud_tier.job.test_gateway import lake_rows
from tests.cloud_tier.lakes import LakeUnderTest

pytestmark = pytest.mark.spark


def test_a_fold_that_parameters_change_cannot_run_at_a_server_of_spark_connect():
    check_functions(plan(), steps_run_here=True)
    check_functions(offset_program(), steps_run_here=False)
    with pytest.raises(UsageError, match=r"fold of p90, .* give --master a cluster"):
        check_functions(plan(), steps_run_here=False)


class KilledError(Exception):
    """The process ends here."""


@pytest.mark.slow
def test_five_entries_give_the_rows_of_the_gateway(spark, tmp_path):
    world = LandedWorld(spark, tmp_path, 3, every=24)
    for entries in (
        [("offset", "", 12, "10")],
        [("offset", "pi-1", -12, "-1.5"), ("above", "", -14, "0")],
        [("span_s", "", -16, "12"), ("step_s", "", -20, "6")],
    ):
        world.live(24)
        for parameter, scope, lead_s, value in entries:
            world.say(parameter, scope, world.now_us + lead_s * S, value)
    world.live(20)
    world.settle()
    assert world.lake_found() == world.found() == world.truth()
    lake, gateway = lake_and_gateway(world)
    assert lake == gateway, differing(world)
    assert {FINAL, REVISED} <= {row[6] for row in lake}
    assert 0 in {row[3] for row in lake}, "windows that are no more have a row that says so"
    world.close()


@pytest.mark.slow
def test_what_a_late_entry_touches_is_held_over_restarts_and_compaction(spark, tmp_path):
    world = LandedWorld(spark, tmp_path, 2, every=39)
    world.live(40)
    world.miss_entries("pi-2", 40)
    world.say("offset", "", world.now_us - 20 * S, "10")
    world.say("span_s", "", world.now_us - 20 * S, "12")
    final = {row.at for row in world.rows(FINAL)}
    world.live(8)
    world.restart()
    world.compact()
    world.live(8)
    world.restart()
    assert not [row for row in lake_rows(world.lake) if row[6] == REVISED]
    world.settle()
    assert world.lake_found() == world.truth()
    lake, gateway = lake_and_gateway(world)
    assert lake == gateway, differing(world)
    revised = [row[0] for row in lake if row[6] == REVISED]
    assert len(revised) == len(set(revised)) > 5
    assert set(revised) <= final
    assert world.repaired() == 0
    world.close()


@pytest.mark.slow
def test_what_is_held_is_revised_when_it_is_due_and_says_who_is_missing(spark, tmp_path):
    world = LandedWorld(spark, tmp_path, 2, every=40, wait_us=25 * S)
    world.live(40)
    world.every = 20
    world.miss_entries("pi-2", 60)
    world.say("offset", "", world.now_us - 20 * S, "10")
    world.live(20)
    lake, gateway = lake_and_gateway(world)
    assert lake == gateway, differing(world)
    assert REVISED not in {row[6] for row in lake}, "nobody has waited for that long"
    world.live(30)
    lake, gateway = lake_and_gateway(world)
    assert lake == gateway, differing(world)
    revised = [row for row in lake if row[6] == REVISED]
    assert len(revised) > 5
    assert {row[5] for row in revised} == {("pi-2",)}
    world.settle()
    assert world.lake_found() == world.truth()
    lake, gateway = lake_and_gateway(world)
    assert lake == gateway, differing(world)
    world.close()


def test_a_window_under_an_empty_log_has_the_rows_of_the_plain_window(spark, tmp_path, monkeypatch):
    """And so has one with functions, in a program without any parameter; of many rows, too."""
    functions = sums(
        Program("example"),
        beside_plain=True,
        where=lambda event, at: event.value > 0,
        value=lambda event, at: event.value,
    )
    plans = {"functions": functions, "unset": offset_program()}
    lakes = {name: final_lake(spark, tmp_path / name, plan) for name, plan in plans.items()}
    copytree(tmp_path / "unset", tmp_path / "many")
    many = LakeUnderTest(spark, plans["unset"], tmp_path / "many", roster=("pi-0",))
    many.restart()
    for lake in lakes.values():
        lake.step(late_panes(lake.program))
    plain, of_functions = (rows_of(lakes["functions"], name) for name in ("plain", "sums"))
    assert [row["status"] for row in plain].count(REVISED) == 2
    for lake in lakes.values():
        lake.restart()
        sent = sent_under(lake.program, ControlLog(), 1)
        assert lake.step(sent).windows == repair(spark, lake.job, lake.known) == 0
    monkeypatch.setattr(frames, "MOST_ROWS", 0)
    many.step(late_panes(many.program))
    assert rows_of(lakes["unset"], "sums") == rows_of(many, "sums") == of_functions == plain


def final_lake(spark, folder, program):
    """Return a lake whose windows became final by a promise."""
    lake = LakeUnderTest(spark, program, folder, roster=("pi-0",))
    *sent, promise = sent_under(program, ControlLog(), 1)
    for batch in (sent, [promise]):
        lake.step(batch)
    return lake


def late_panes(program):
    """Return rows by which two of the windows of `final_lake` are revised."""
    sent = sent_under(program, ControlLog(), 1)
    earliest = [row for row in sent if row["kind"] == "pane" and not row["pane_us"]]
    return [row | {"seq": 200, "total_q": row["total_q"] + 1} for row in earliest]


def rows_of(lake, name):
    """Return all rows of a window, but for their stream: first, final and revised ones."""
    rows = [row for row in lake.rows(lake.lake.windows) if row.pop("window") == name]
    assert {row.pop("stream") for row in rows} == {lake.program.windows[name].stream}
    return sorted(rows, key=lambda row: (row["start_us"], row["revision"]))


def current(lake):
    """Return start in seconds -> (sum, revision) of the current rows."""
    rows = sorted(lake.rows(lake.lake.windows), key=lambda row: row["revision"])
    return {row["start_us"] // S: (int(row["total_q"]), row["revision"]) for row in rows}


def killed_at_each_commit(lake, batch, monkeypatch):
    """Merge a batch by a job that dies before each of its commits, and starts again."""
    append = OpenTables.append
    for most in range(3):
        left = [most]

        def counted(self, *words, left=left):
            left[0] -= 1
            if left[0] < 0:
                raise KilledError
            append(self, *words)

        with monkeypatch.context() as patch:
            patch.setattr(OpenTables, "append", counted)
            with suppress(KilledError):
                lake.step(batch)
        lake.restart()
    lake.step(batch)


def test_starts_are_held_down_to_the_least_that_is_recomputed(spark, tmp_path):
    """Windows of 10 s, F at 20 s, 5 s of retention: those that start at 5 and 10 s wait as well."""
    program, log = offset_program(), late_log()
    lake = LakeUnderTest(spark, program, tmp_path, roster=("pi-0",), retain_us=5 * S)
    before = {-5: (10, 0), 0: (45, 0), 5: (45, 0), 10: (10, 0)}
    lake.step(sent_under(program, ControlLog(), 1))
    *panes, clock, promise = sent_under(program, log, 100)
    lake.step([*rows_of_log(log), *panes, clock])
    assert current(lake) == before, "held until all have promised again"
    lake.step([promise])
    assert current(lake) == before | {5: (645, 1), 10: (110, 1)}


def test_an_offset_said_late_revises_three_of_four_final_windows_once(spark, tmp_path, monkeypatch):
    """Readings 1..10 at 1..10 s, windows of 10 s each 5 s; from 4.5 s on 100 more, set at 20 s."""
    program, log = offset_program(), late_log()
    sent = pickle.loads(pickle.dumps(program))  # as a server of Spark Connect has it
    lake = LakeUnderTest(spark, sent, tmp_path, roster=("pi-0",))
    before = {-5: (10, 0), 0: (45, 0), 5: (45, 0), 10: (10, 0)}
    lake.step(sent_under(program, ControlLog(), 1))
    assert {row["status"] for row in lake.rows(lake.lake.windows)} == {FINAL}
    assert current(lake) == before
    killed_at_each_commit(
        lake, [*rows_of_log(log), *sent_under(program, log, 100)[:2]], monkeypatch
    )
    assert current(lake) == before, "held until all have promised again"
    killed_at_each_commit(lake, sent_under(program, log, 200), monkeypatch)
    assert current(lake) == {-5: (10, 0), 0: (545, 1), 5: (645, 1), 10: (110, 1)}
    assert len(lake.rows(lake.lake.windows)) == 7
    assert lake.known.frontier == 20 * S
