"""Streams on a real core and store: what they say, revised, restarted, and in windows."""

import json
import sqlite3
from random import Random

import pytest

from device_agent.agent.settings import Settings
from device_agent.agent.sources.mapping import FieldMapping
from lasp_edge import Program, folds, scans
from lasp_edge.ordered import inputs
from lasp_edge.protocol.frames import PaneFrame
from tests.device_agent.agent.scans.support_streams import SECOND_US
from tests.device_agent.agents import NOW_US, ack_of


def test_what_comes_late_revises_what_was_said(begin):
    device = begin()
    device.meter([(0, 100, "a"), (10, 130, "a"), (30, 180, "a")])
    assert device.values("used") == [30.0, 50.0]
    device.meter([(20, 150, "a")])
    device.tick()
    assert device.values("used") == [30.0, 20.0, 30.0]
    device.check()


def test_a_row_is_final_once_nothing_older_is_expected(begin):
    device = begin()
    device.meter([(0, 100, "a"), (10, 130, "a"), (14, 140, "a")])
    device.tick()
    statuses = [row.status for _, row in sorted(device.said("used").items())]
    assert statuses == ["tentative", "tentative"]
    device.meter([(16, 150, "a")])
    device.tick(2)
    statuses = [row.status for _, row in sorted(device.said("used").items())]
    assert statuses == ["final", "tentative", "tentative"]
    device.meter([(5, 120, "a")])
    rows = [row for _, row in sorted(device.said("used").items())]
    assert [(row.event.value, row.status) for row in rows[:2]] == [
        (20.0, "final"),
        (10.0, "revised"),
    ]
    device.check()


def test_a_session_ends_by_time_alone_and_its_handler_runs_once(begin):
    device = begin()
    device.meter([(0, 100, "a"), (10, 130, "a"), (20, 140, "a")])
    device.meter([(60, 140, "a")])
    device.tick(2)
    expected = (NOW_US + 10 * SECOND_US, NOW_US + 20 * SECOND_US, 40.0)
    assert device.values("runs") == [expected]
    assert device.alarms == {f"a {expected[0]} 40.0"}
    device.restart()
    device.tick(2)
    assert device.alarms == {f"a {expected[0]} 40.0"}


@pytest.mark.parametrize("seed", range(8))
def test_streams_equal_the_oracle_over_faults_and_restarts(begin, seed):
    rng, device, at_s = Random(seed), begin(settings=Settings(live_items=24)), 0
    for step in range(30):
        readings = []
        for _ in range(rng.randrange(1, 6)):
            at_s += rng.randrange(1, 25)
            back_s = rng.choice((0, 0, 0, 3, 40, 400))
            readings.append((max(0, at_s - back_s), rng.randrange(0, 400) / 2, rng.choice("ab")))
        device.meter(readings)
        if rng.random() < 0.5:
            device.tick(rng.randrange(1, 4))
        if rng.random() < 0.15:
            device.restart()
        if step % 10 == 9:
            device.tick(1)
            device.check()
    device.restart()
    device.tick(60)
    device.check()
    assert device.engine.since_us > NOW_US, "there were cuts"


def test_memory_holds_the_live_end_only(begin):
    device = begin(settings=Settings(live_items=50))
    for n in range(100):
        device.meter([(10 * n + k, n + k, "a") for k in range(5)])
        device.tick()
    assert device.engine._count < 100
    assert sum(len(log) for log in device.engine.graph.nodes[0].stage.logs.values()) < 100
    device.meter([(3.5, 7, "a")])
    device.tick()
    device.check()


def test_words_of_texts_are_counted(begin):
    program = Program("words")
    line = program.event("line", text=True)
    words = program.flat_map(line, lambda event: event.value.split(), "words")
    counts = program.scan(
        "counts",
        source=words,
        key=lambda event: event.value,
        scan=scans.running(lambda state, event: state + 1, 0),
        per_device=True,
    )
    program.result(counts, parts={"count": "1"})
    device = begin(program=program.plan())
    mapping = FieldMapping(["line"], time="ts", texts=["line"])
    records = [
        {"ts": NOW_US // SECOND_US + n, "line": text} for n, text in enumerate(("a b", "on"))
    ]
    batch = mapping.batch("test", [*records, {"ts": 1_700_000_005, "line": 7}])
    device.durable.read(batch, NOW_US + 9 * SECOND_US)
    device.take(["b a", "b a"], [NOW_US, NOW_US], [{}, {}], name="line")
    device.restart()
    device.now_us += 60 * SECOND_US
    device.tick()
    rows = sorted(device.said("counts").items())
    assert [(row.event.key, row.event.value) for _, row in rows] == [
        ("a", 1),
        ("b", 1),
        ("b", 2),
        ("a", 2),
        ("on", 1),
    ]
    assert device.counted["refused: line: not a text"] == 1
    assert device.counted["repeated"] == 1


def test_a_step_that_raises_is_counted_and_named(begin):
    program = Program("water")
    litres = program.event("litres", resolution="0.5")
    halves = program.map(litres, lambda event: 100 / event.value, "parts", resolution="0.01")
    program.result(halves)
    device = begin(program=program.plan())
    device.meter([(0, 100, "a"), (5, 0, "a"), (10, 50, "a")])
    device.tick()
    assert device.values("parts") == [1.0, 2.0]
    (failed,) = [name for name in device.counted if name.startswith("failed: parts: ZeroDivision")]
    assert device.counted[failed] == 1


def test_people_read_the_newest_rows_of_each_key(begin):
    device = begin(settings=Settings(results_us=SECOND_US))
    device.meter([(0, 100, "a"), (10, 130, "a"), (14, 131, "a"), (16, 132, "a")])
    published = device.tick(1)
    (text,) = [p.payload for p in published if p.topic == "lasp/v1/water/out/used/pi-1/a"]
    found = json.loads(text)
    assert (found["final"]["difference"], found["final"]["status"]) == (30.0, "final")
    assert (found["tentative"]["difference"], found["tentative"]["revision"]) == (1.0, 0)
    report = device.core.report()["streams"]["results"]
    assert report["used"]["a"] == found
    assert not [p for p in device.tick(3) if "/out/used/" in p.topic]


def test_a_changed_program_makes_new_results_of_the_items_that_are_there(begin, tmp_path):
    device = begin()
    device.meter([(10 * n, 100 + n * n, "a") for n in range(20)])
    device.tick()
    device.kill()
    program = Program("water")
    litres = program.event("litres", resolution="0.5")
    used = program.scan(
        "twice", source=litres, scan=scans.running(lambda s, e: e.value, 0.0), per_device=True
    )
    program.result(used, parts={"litres": "1"})
    window = program.window(
        "w",
        source=program.map(used, lambda e: e.value, "m", resolution="0.5"),
        fold=folds.sum(),
        size_s=60,
    )
    device.program = program.plan()
    device.start()
    device.tick()
    assert len(device.values("twice")) == 20
    total = sum(partial[0] for partial in device.folded(window).values())
    assert total == 2 * sum(100 + n * n for n in range(20))
    device.restart()
    device.tick()
    assert total == sum(partial[0] for partial in device.folded(window).values())


def test_what_a_slow_meter_read_is_there_after_it_was_too_old(begin):
    """Live items are older than what is retained: they are pruned with their block alone."""
    device = begin(settings=Settings(retain_us=86_400 * SECOND_US))
    for n in range(400):
        device.meter([(900 * n, n, "a")])
    device.tick()
    device.store.prune(device.core.intake.progress.floor_us)
    before = device.values("total")[-1]
    device.restart()
    device.meter([(900 * 400, 7, "a")])
    device.tick()
    assert device.values("total")[-1] == before + 7 == sum(range(400)) + 7


def test_another_lake_is_sent_no_items(begin):
    device = begin()
    device.meter([(0, 100, "a"), (10, 130, "a"), (30, 180, "a")])
    device.land()
    for lake in ("lake-2", "lake-3"):
        device.hear(ack_of(device.name, sink=("another", lake)))
        device.tick()
    sent = {block.stream for frame in device.frames(PaneFrame) for block in frame.blocks}
    assert device.program.windows["by_minute"].stream in sent
    assert sent <= {each.stream for each in device.program.pane_streams}
    assert all(row.dirty == 0 for pane, row in device.rows() if pane.incarnation == 0)
    assert any(row.dirty for pane, row in device.rows() if pane.incarnation)


def test_an_evaluation_that_fails_is_counted_and_the_next_one_goes_on(begin, monkeypatch):
    device = begin()
    device.meter([(0, 100, "a"), (10, 130, "a")])
    with monkeypatch.context() as broken:
        broken.setattr(inputs, "made_item", None)
        device.meter([(20, 150, "a")])
    (reason,) = [name for name in device.counted if name.startswith("failed: streams")]
    assert device.counted[reason] == 1
    device.present = {reading for reading in device.present if reading[1] != 150}
    device.meter([(30, 170, "a")])
    device.tick()
    assert device.values("used") == [30.0, 40.0]
    device.check()


def test_where_the_store_cannot_be_read_the_process_ends_and_no_reading_is_lost(begin, monkeypatch):
    """A disk that fails for a moment: streams must not go on without what they had taken."""
    device = begin()
    device.meter([(0, 100, "a"), (10, 130, "a")])
    device.tick()

    def fails(*_asked):
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as moment:
        moment.setattr(device.store._panes, "history", fails)
        moment.setattr(device.core.streams, "begun", False)
        with pytest.raises(sqlite3.OperationalError):
            device.meter([(20, 150, "a")])
    device.restart()
    device.meter([(20, 150, "a")])
    device.tick()
    assert device.values("used") == [30.0, 20.0]
    device.check()
