"""Beats are few: they say something new, answer whoever has come, or keep the device alive."""

import pytest

from crdts import Frontier, Replica
from device_agent.agent.fleet.beats import _pass
from device_agent.agent.settings import Settings
from lasp_edge.protocol.frames import (
    EVERY_WINDOW,
    AskFrame,
    BeatFrame,
    PaneFrame,
    PresenceFrame,
)
from lasp_edge.protocol.frontier import Listening, Liveness, Tick, advance
from lasp_edge.protocol.kinds import decode
from lasp_edge.protocol.sinks import DEFAULT_SINK, SinkLow, store_tag
from lasp_edge.scans import changes
from lasp_edge.units import SECOND_US
from tests.device_agent.agents import LAKE, Device
from tests.lasp_edge.language.test_parting import plan_of

OTHER = Replica(1, 99, "pi-2")
OPERATOR = Replica(1, 5, "operator")
MINUTE_US = 60 * SECOND_US


@pytest.fixture
def device(tmp_path):
    found = Device(tmp_path, settings=Settings.paced())
    for _ in range(1_000):
        found.tick()
    found.sent.clear()
    return found


def beats(device, seconds):
    return len(device.frames(BeatFrame, [p for _ in range(seconds) for p in device.tick()]))


def test_an_idle_device_sends_a_beat_in_four_minutes(device):
    assert beats(device, 2_400) == 10


def test_an_operator_that_asks_gets_a_beat_within_seconds(device):
    beats(device, 5)
    device.hear(AskFrame(OPERATOR, 1, "pi-1", ""))
    assert beats(device, 3) == 1
    assert beats(device, 60) == 0


def test_a_device_that_comes_hears_the_others_within_seconds(device):
    beats(device, 5)
    device.hear(PresenceFrame(OTHER, 1, online=True, program="", release=""))
    assert beats(device, 3) == 1
    device.hear(PresenceFrame(OTHER, 1, online=True, program="", release=""))
    assert beats(device, 60) == 0
    device.hear(PresenceFrame(OTHER._replace(nonce=100), 1, online=True, program="", release=""))
    assert beats(device, 3) == 1


def test_a_thousand_devices_that_come_at_once_get_few_beats(device):
    for number in range(1_000):
        other = Replica(1, number, f"other-{number}")
        device.hear(PresenceFrame(other, 1, online=True, program="", release=""))
    assert beats(device, 10) == 1


def test_devices_that_answer_a_gateway_alone_speak_seldom_and_hear_no_others(tmp_path):
    apart = Device(tmp_path / "a", plan_of("a"), settings=Settings.paced())
    with_windows = Device(tmp_path / "b", plan_of("a", more=changes()), settings=Settings.paced())
    counts = []
    for each in (apart, with_windows):
        for _ in range(1_000):
            each.tick()
        each.sent.clear()
        for _ in range(2_400):
            each.read([1], [each.now_us], name="a")
            each.tick()
        counts.append(len(each.frames(BeatFrame)))
    assert counts[0] == 10, "its promises pass no event in order"
    assert counts[1] >= 19
    own, every = ("lasp/v1/p/0a/beat/pi-1", "lasp/v1/p/+/beat/#")
    assert (own in apart.core.subscriptions(), every in apart.core.subscriptions()) == (True, False)
    assert every in with_windows.core.subscriptions()


def low(at_us, store="s"):
    return (SinkLow("gateway", store_tag(store), at_us),)


@pytest.mark.parametrize(
    ("before", "after", "is_news"),
    [
        (low(5), low(10), False),
        (low(5), low(11), True),
        (low(11), low(15), False),
        (low(10), low(10), False),
        (low(None), low(1), True),
        (low(11), low(11, "t"), True),
    ],
)
def test_a_promise_is_news_when_it_passes_an_event_in_order(before, after, is_news):
    assert _pass(before, after, lambda least_us, end_us: least_us <= 10 < end_us) == is_news


def test_a_promise_is_news_when_it_passes_the_end_of_a_pane(tmp_path):
    device = Device(tmp_path, settings=Settings(results_us=0))
    device.read([20.0])
    for _ in range(20):
        device.land()
    low_us = [beat.lows[0].low_us for beat in device.frames(BeatFrame)]
    panes = [low // (10 * SECOND_US) for low in low_us if low is not None]
    assert len(panes) <= len(set(panes)) + 3  # what else was new, and a beat that keeps alive


def test_a_beat_says_that_windows_are_whole_from_behind_the_last_doubtful_reading(device):
    doubt_us = device.now_us
    device.core.intake.highs.doubts[7] = doubt_us
    (beat,) = device.frames(BeatFrame, [p for _ in range(300) for p in device.tick()])[:1]
    assert beat.begun == ((EVERY_WINDOW, doubt_us + 1),)


def test_what_a_beat_promises_is_noted_before_it_leaves(device):
    """The link takes nothing after it, so nobody asks for more."""
    device.read([20.0], [device.now_us])
    core = device.core
    core.intake.end()
    for _ in range(20):
        device.acknowledge(*device.frames(PaneFrame, device.tick()))
    core.handle_connected(device.now_us)
    core.intake.progress.promised_us = 0
    leaving = device.durable.tick(device.now_us)
    beat = next(found for p in leaving if isinstance(found := decode(p.payload), BeatFrame))
    (low,) = beat.lows
    assert core.intake.progress.promised_us == low.low_us is not None


def standing(device, beats):
    """Return how a lake with a roster of two stands after these beats, and a promise of pi-2."""
    promises = Frontier().promise(OTHER, 1, low_us=device.now_us, heard_us=device.now_us)
    for beat in beats:
        low = beat.low_of(DEFAULT_SINK, LAKE)
        if low is not None:
            at = beat.sender, beat.number, low.low_us
            promises |= promises.promise(*at, heard_us=device.now_us)
    clock = Listening(device.now_us, device.now_us - MINUTE_US)
    liveness = Liveness(promises, {"lake": Tick(1, clock)})
    return advance(None, liveness, {"pi-1", "pi-2"}, 10 * MINUTE_US)


def test_whoever_waits_for_a_device_that_begins_waits_for_its_first_reading(tmp_path):
    """Its first beat leaves before its sources were read: nothing is final without them."""
    device = Device(tmp_path, settings=Settings.paced())
    (first,) = device.frames(BeatFrame, device.tick())
    assert standing(device, [first]).frontier is None
    at_us = device.now_us
    device.read([20.0], [at_us])
    for _ in range(30):
        device.land()
    coverage = standing(device, device.frames(BeatFrame))
    assert coverage.excluded == ()
    assert coverage.frontier == at_us - device.settings.lateness_us


def test_nobody_waits_for_long_for_a_source_that_gives_nothing(tmp_path):
    device = Device(tmp_path, settings=Settings.paced())
    sent = [p for _ in range(40) for p in device.tick()]
    coverage = standing(device, device.frames(BeatFrame, sent))
    assert coverage.excluded == ("pi-1",)
    assert coverage.frontier is not None
