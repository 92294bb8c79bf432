"""The stores of one sink: a lake that is made anew, two of one name, and forged ones."""

from dataclasses import replace

import pytest

from crdts import Replica
from crdts.replica import SEQS
from device_agent.agent.panes.sink import MOVES_AT_ONCE
from device_agent.agent.panes.sinks import MOVES
from device_agent.agent.settings import Settings
from lasp_edge.protocol.acks import FormerStore
from lasp_edge.protocol.frames import BeatFrame, PaneFrame
from lasp_edge.protocol.sinks import LEFT_US
from lasp_edge.units import SECOND_US
from simulations.world.lander import SimulatedLander
from tests.device_agent.agent.panes.support_fleetlet import Fleetlet, full, sink
from tests.device_agent.agents import LAKE, MINUTE_US, Device, ack_of


def test_two_lakes_of_one_name_do_not_make_a_device_send_for_ever(device):
    panes = full(device)
    other = SimulatedLander("lake-2", device.program, process=Replica(1, 2, "lander"))
    fleet = Fleetlet(device, device.landed, other)
    fleet.run(3_600)
    assert fleet.sent_entries <= 3 * panes
    assert other.panes == device.landed.panes
    report = device.core.report()
    assert report["contested_sinks"] == ["lake"]
    (reason,) = [name for name in device.counted if name.startswith("sink: ")]
    assert reason.endswith("give one of them another name, a gateway by --name, a lander by --sink")
    assert device.counted[reason] == 1


def test_late_words_of_the_lake_before_do_not_bring_it_back(device):
    full(device)

    def says(store, clock_s):
        device.hear(replace(ack_of(device.name, sink=("lake", store)), clock_s=clock_s))
        return sink(device)["store"]

    assert says("new", 100) == "new"
    assert says("before", 99) == "new", "it spoke first, and was overtaken"
    assert says("new", 101) == "new"
    assert says("made anew", 102) == "made anew"
    Fleetlet(device).run(LEFT_US // SECOND_US + 1)
    assert says("behind", 50) == "made anew", "it may be recorded"
    device.read([21.0], [device.now_us])
    device.core.handle_end()
    frames = []
    for _ in range(20):  # until what is on its way is given up
        frames = frames or device.frames(PaneFrame, device.tick(60))
    device.hear(replace(ack_of(device.name, *frames, sink=("lake", "behind")), clock_s=50))
    assert sink(device)["store"] == "behind", "it took what is new, whatever the clocks say"


def test_a_recorded_answer_of_a_lost_store_does_not_hold_delivery(device):
    """Its lake is silent for an hour, is made again, and answers from then on."""
    full(device)
    lost = device.landed
    fleet = Fleetlet(device, lost)
    fleet.run(30)
    device.read([21.0], [device.now_us])
    device.tick(60)
    recorded = [
        lost.hear(device.topic_of(f), f.encode(), device.now_us) for f in device.frames(PaneFrame)
    ]
    recorded = [answer for answer in recorded if answer is not None][-1]
    assert recorded.clock_s
    device.hear(recorded)
    other = SimulatedLander("lake-2", device.program, process=Replica(1, 2, "lander"))
    made_again = Fleetlet(device, other)
    made_again.run(60)
    for lander, minutes in ((), 60), ((other,), 60):
        fleet = Fleetlet(device, *lander)
        for minute in range(minutes):
            device.read([20.0 + minute], [device.now_us])
            if not minute % 5:
                device.hear(recorded)
            fleet.run(60, step_s=10)
    assert sink(device)["store"] == "lake-2"
    assert sink(device)["waiting"] <= 2


def test_forged_stores_cost_a_bounded_number_of_sendings_and_are_told(device):
    panes = full(device)
    real = device.landed
    Fleetlet(device, real).run(30)
    fleet = Fleetlet(device, real)
    for minute in range(12 * 60):
        device.hear(ack_of(device.name, sink=("lake", f"forged {minute}")))
        fleet.run(60, step_s=30)
    waited = 6  # 10 + 20 + 40 + .. + 320 minutes
    moves = device.counted[MOVES]
    assert MOVES_AT_ONCE + waited <= moves <= 2 * (MOVES_AT_ONCE + waited), "and the way back"
    assert fleet.sent_entries <= 4 * moves * panes, "nobody answers for a forged one"
    (reason,) = [n for n in device.counted if n.startswith("sink: ") and "forges" in n]
    assert "see lasp-edge broker" in reason
    assert device.counted[reason] <= 2 * MOVES_AT_ONCE
    Fleetlet(device, real).run(2 * 3_600, step_s=10)
    assert (sink(device)["store"], sink(device)["waiting"]) == (LAKE, 0)
    assert device.core.done


def test_a_lake_that_was_left_comes_back_when_the_present_one_is_silent(device):
    panes = full(device)
    first, second = device.landed, SimulatedLander("lake-2", device.program)
    Fleetlet(device, first).run(30)
    Fleetlet(device, second).run(60)
    assert sink(device)["store"] == "lake-2"
    back = Fleetlet(device, first)
    back.run(LEFT_US // SECOND_US - 60)
    assert sink(device)["store"] == "lake-2"
    back.run(120)
    assert (sink(device)["store"], back.sent_entries) == (LAKE, panes)
    assert device.core.done


def test_a_device_repeats_the_greatest_commit_of_a_lake_also_after_a_restart(device):
    full(device)
    frames = device.frames(PaneFrame, device.tick(60))
    device.hear(replace(ack_of(device.name, *frames[:1]), commit=7))
    device.hear(replace(ack_of(device.name), commit=9))  # of nothing that it took
    device.tick()
    for _ in range(2):
        (beat, *_) = device.frames(BeatFrame, device.tick(600))
        assert [low.commit for low in beat.lows] == [7]
        device.restart()
    device.tick(0)
    device.acknowledge(lake="lake-2")
    device.tick(0)
    (*_, beat) = device.frames(BeatFrame, device.tick(600))
    assert [low.commit for low in beat.lows] == [0], "the next lake has none of them"


def test_answers_that_are_stored_among_notes_bring_the_commit_after_which_they_were(tmp_path):
    device = Device(tmp_path, settings=Settings(commit_every_us=MINUTE_US))
    full(device)
    device.tick(60)
    device.hear(replace(ack_of(device.name), commit=6))
    device.tick(60)
    frames = device.frames(PaneFrame, device.tick(600))
    device.hear(replace(ack_of(device.name, *frames), commit=7))
    for _ in range(8):  # nothing is read: the answers are stored in a commit of notes
        device.tick(400)
    device.restart()
    device.tick(0)
    (beat, *_) = device.frames(BeatFrame, device.tick(600))
    assert (sink(device)["waiting"], [low.commit for low in beat.lows]) == (0, [7])


def follows(device, store, commit):
    """Let a store that has so many commits of the present one greet the device."""
    former = (FormerStore("before all", 9), FormerStore(sink(device)["store"], commit))
    device.hear(replace(ack_of(device.name, sink=("lake", store)), former=former))
    device.tick()
    return sink(device)["store"] == store


@pytest.mark.parametrize(("commit", "is_cut"), [(7, False), (6, True)])
def test_a_store_that_follows_gets_again_what_it_lacks_of_what_was_acknowledged(
    device, commit, is_cut
):
    panes = full(device)
    Fleetlet(device, device.landed).run(30)
    assert follows(device, "second start", SEQS - 1)
    assert sink(device)["waiting"] == 0
    device.read([21.0], [device.now_us])
    device.core.handle_end()
    frames = device.frames(PaneFrame, device.tick(60))
    ack = ack_of(device.name, *frames, sink=("lake", "second start"))
    device.hear(replace(ack, number=7))
    greeting = ack_of(device.name, sink=("lake", "second start"))
    device.hear(replace(greeting, number=9))  # of nothing that it took
    device.tick(60)
    device.restart()
    assert follows(device, "third start", commit)
    assert sink(device)["waiting"] == (panes + 1 if is_cut else 0)
    assert device.counted.get(MOVES, 0) == is_cut
    assert not follows(device, "second start", 0), "it was left"


def answers(device, store, clock_s, *frames, former=()):
    """Let a store of the lake answer for frames; return whether the device delivers to it then."""
    ack = ack_of(device.name, *frames, sink=("lake", store))
    device.hear(replace(ack, clock_s=clock_s, former=former))
    return sink(device)["store"] == store


def test_a_sink_whose_clock_was_ahead_is_followed_to_its_next_store_when_it_is_right(device):
    """Its clock was an hour ahead, its disk was put back, and the device reads nothing more."""
    full(device)
    now_s = device.now_us // SECOND_US
    assert answers(device, "ahead", now_s + 3_600)
    assert answers(device, "put back", now_s + 1), "its clock is right, and nothing else is alive"


def test_a_sink_that_answers_later_than_another_one_is_followed_to_its_next_store(device):
    """The archive answers everything first, and the machine's clock is not trusted."""
    full(device)
    device.core.agent.clock.tells = False
    frames = device.frames(PaneFrame, device.tick(60))
    device.hear(ack_of(device.name, sink=("archive", "archive")))
    assert answers(device, "ahead", 9_000, *frames[:1])
    Fleetlet(device).run(LEFT_US // SECOND_US + 1)
    device.read([21.0], [device.now_us])
    device.core.handle_end()
    later = []
    while not later:
        later = device.frames(PaneFrame, device.tick(60))
    device.hear(replace(ack_of(device.name, *later, sink=("archive", "archive")), clock_s=1))
    assert answers(device, "put back", 2, *later)


def test_what_ended_before_the_present_store_began_is_late_whatever_its_clock_says(device):
    """A gateway's clock was ahead in its last process, and a message of that one comes late."""
    full(device)
    former = (FormerStore("before", SEQS - 1), FormerStore("last", SEQS - 1))
    now_s = device.now_us // SECOND_US
    assert answers(device, "present", now_s - 300, former=former)
    assert not answers(device, "last", now_s)
    assert device.core.report()["contested_sinks"] == []
    Fleetlet(device).run(LEFT_US // SECOND_US + 1)
    assert answers(device, "last", now_s + 900), "whoever lies of former stores wins ten minutes"


def test_what_ended_before_the_present_store_began_is_late_after_a_restart_too(device):
    """Two acknowledgements of former processes were on their way when the agent ended."""
    full(device)
    frames = device.frames(PaneFrame, device.tick(60))
    former = (FormerStore("before", SEQS - 1), FormerStore("last", SEQS - 1))
    now_s = device.now_us // SECOND_US
    assert answers(device, "present", now_s, former=former)
    device.tick()
    device.restart()
    assert not answers(device, "before", now_s - 60)
    assert not answers(device, "last", now_s - 30, *frames)
    assert device.core.report()["contested_sinks"] == []


def test_a_word_from_before_the_first_one_of_a_store_is_late_after_a_restart_too(device):
    full(device)
    now_s = device.now_us // SECOND_US
    assert answers(device, "present", now_s)
    device.tick()
    device.restart()
    assert not answers(device, "before", now_s - 30)
