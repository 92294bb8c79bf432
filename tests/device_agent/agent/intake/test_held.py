"""Readings are held and committed together; nothing of them leaves, or is acknowledged, before."""

from dataclasses import replace

import pytest

from device_agent.agent.intake.batch import MOST_READINGS, Batch
from device_agent.agent.settings import Settings
from device_agent.agent.state.store import existing_store
from lasp_edge.protocol.frames import BeatFrame, PaneFrame, VariableFrame
from lasp_edge.units import SECOND_US
from tests.device_agent.agents import NOW_US, Device, partial_of

EVERY_S = 60
THRIFTY = Settings(
    commit_every_us=EVERY_S * SECOND_US,
    interval_us=EVERY_S * SECOND_US,
    beat_us=2 * EVERY_S * SECOND_US,
    keep_alive_us=240 * SECOND_US,
    results_us=0,
    keep_readings=True,
)


@pytest.fixture
def device(tmp_path):
    return Device(tmp_path, settings=THRIFTY, now_us=NOW_US // (EVERY_S * SECOND_US) * 60_000_000)


class Feed:
    """A source of one reading a second; what it gave, what was acknowledged, what the store had."""

    def __init__(self, device, *, own_times=False):
        self.device = device
        self.own_times = own_times
        self.given = self.acknowledged = self.stored = 0

    def read(self, seconds=1, **more):
        for _ in range(seconds):
            self.given += 1
            device, cursor = self.device, self.given
            time_us = device.now_us if self.own_times else None
            batch = Batch("feed", ["temperature"], [time_us], [20 + cursor % 7], [{}], str(cursor))
            device.durable.read(batch, device.now_us, lambda to=cursor: self.note(to), **more)
            device.tick()

    def note(self, cursor):
        assert cursor == self.acknowledged + 1
        if cursor > self.stored:  # else the store had it before: nothing leaves it
            self.stored = stored(self.device)
        assert self.stored >= cursor, "a process that ends now has it"
        self.acknowledged = cursor


def stored(device):
    return len(list(existing_store(device.directory).readings()))


def warm(device):
    """Use up what may happen at once."""
    feed = Feed(device)
    feed.read(3 * EVERY_S)
    return feed


def test_the_first_readings_are_committed_and_published_at_once(device):
    Feed(device).read()
    assert stored(device) == 1
    device.tick()
    assert device.frames(VariableFrame)


def test_at_a_reading_a_second_there_is_a_commit_a_minute(device):
    feed = warm(device)
    commits = []
    for _ in range(10 * EVERY_S):
        before = feed.acknowledged
        feed.read()
        if feed.acknowledged > before:
            commits.append(feed.acknowledged - before)
    assert commits == [EVERY_S] * 10
    assert device.counted["accepted"] == feed.acknowledged


def test_nothing_is_acknowledged_or_published_before_it_is_in_the_store(device):
    feed = warm(device)
    device.sent.clear()
    for _ in range(2 * EVERY_S):
        feed.read()
        known = stored(device)
        assert feed.acknowledged <= known
        published = [
            partial_of(f)[0] for f in device.frames(VariableFrame) if f.variable == "local_average"
        ]
        assert max(published, default=0) <= min(known, 100)


def test_an_agent_that_is_stopped_is_done_only_after_what_it_holds(device):
    Feed(device).read()
    device.settle()
    assert device.core.done
    device.core.hold(Batch("feed", ["temperature"], [None], [20], [{}], "2"), device.now_us)
    assert not device.core.done, "a reading is held"
    device.tick()
    assert stored(device) == 2, "nothing more comes: it waits for nothing"
    device.settle()


def test_a_promise_does_not_pass_a_reading_that_is_held(device):
    feed = warm(device)
    device.land(EVERY_S)
    for _ in range(4 * EVERY_S):
        before = device.now_us
        feed.read()
        for frame in device.frames(PaneFrame):
            device.hear(device.lands(frame))
        device.sent = [p for p in device.sent if "/beat/" in p.topic]
        held = device.core.intake.held_since_us
        for beat in device.frames(BeatFrame):
            assert held is None or all(low.low_us <= held for low in beat.lows if low.low_us)
    assert device.counted.get("late", 0) == 0
    assert before > NOW_US


def test_a_crash_loses_what_was_held_and_a_source_with_a_cursor_gives_it_again(device):
    feed = warm(device)
    feed.read(30)
    lost = feed.given - feed.acknowledged
    assert 0 < lost <= EVERY_S
    device.restart()
    assert device.core.intake.sources.cursor("feed") == str(feed.acknowledged)
    assert device.counted["accepted"] == feed.acknowledged
    assert stored(device) == feed.acknowledged


def test_the_last_readings_before_a_pause_are_not_held_for_long(device):
    feed = warm(device)
    feed.read(30)
    assert feed.acknowledged < feed.given
    for _ in range(10):
        device.tick()
    assert feed.acknowledged == feed.given


def test_readings_each_five_seconds_do_not_count_as_a_pause_for_long(device):
    feed = warm(device)
    commits = 0
    for _ in range(10 * EVERY_S // 5):
        before = feed.acknowledged
        feed.read()
        for _ in range(4):
            device.tick()
        commits += feed.acknowledged > before
    assert commits <= 10 + 8


def test_a_source_that_waits_for_its_acknowledgement_gets_it(device):
    feed = warm(device)
    feed.read(5)
    assert feed.acknowledged < feed.given
    feed.read(is_pressing=True)
    assert feed.acknowledged == feed.given


def test_many_readings_are_not_held(device):
    feed = warm(device)
    assert not device.core.intake.held_since_us or feed.given
    times = [None] * MOST_READINGS
    values = [20.0] * MOST_READINGS
    device.take(values, times, [{}] * MOST_READINGS)
    assert device.core.intake.held_since_us is None


def test_a_finished_source_is_committed_at_once(device):
    warm(device)
    device.take([20.0], [None], [{}], done=True)
    assert device.core.intake.held_since_us is None


def test_without_a_pace_each_batch_is_committed_when_it_comes(tmp_path):
    device = Device(tmp_path, settings=replace(THRIFTY, commit_every_us=0))
    for count in range(1, 20):
        device.read([20.0])
        assert stored(device) == count


def test_a_held_reading_is_placed_when_it_was_read(device):
    feed = warm(device)
    feed.read(30)
    read_us = device.now_us - 30 * SECOND_US
    for _ in range(2 * EVERY_S):
        device.tick()
    times = [row["accepted_us"] for row in existing_store(device.directory).readings()][-30:]
    assert times == [read_us + second * SECOND_US for second in range(30)]


def test_columns_of_an_older_time_follow_held_readings_of_a_newer_one(device):
    warm(device)
    accepted = device.core.counters.totals["accepted"]
    late_us = device.now_us - 3_600 * SECOND_US
    single = Batch("replay", ["temperature"], [device.now_us], [20.0], [{}], "1")
    column = Batch(
        "replay",
        ["temperature"] * 20,
        [late_us + at * SECOND_US for at in range(20)],
        [21.0] * 20,
        [{}] * 20,
        "21",
    )
    for batch in (single, column):
        device.durable.read(batch, device.now_us)
    device.durable.commit(device.now_us)
    totals = device.core.counters.totals
    assert (totals["accepted"] - accepted, totals.get("refused", 0)) == (21, 0)


@pytest.mark.parametrize("waited_s", [1, 20])
def test_a_reading_is_stamped_when_it_arrived_but_not_before_the_last_promise(device, waited_s):
    device.tick()
    promised_us = device.now_us
    device.tick(0)
    device.now_us += 10 * SECOND_US
    device.read([20.0], source="s", arrived_us=device.now_us - waited_s * SECOND_US)
    stamp_us = max(promised_us, device.now_us - waited_s * SECOND_US)
    assert device.core.intake.held_since_us == stamp_us
    device.durable.commit(device.now_us)
    assert device.core.intake.progress.high_us == stamp_us
