"""The fleet's value is settled once all connected devices report it; lost entries are asked for."""

from crdts import Replica
from lasp_edge.protocol.frames import AskFrame, BeatFrame, PresenceFrame, VariableFrame
from tests.device_agent.agents import Device, partial_of
from tests.device_agent.support_entries import PEER, beat, entry, fleet


def test_inputs_are_equal_only_if_the_entries_are(tmp_path):
    a, b = Device(tmp_path / "a", name="a"), Device(tmp_path / "b", name="b")
    a.read([20.0])
    b.read([20.0])
    a.tick()
    b.tick()
    assert fleet(a).inputs != fleet(b).inputs
    for here, there in ((a, b), (b, a)):
        for frame in here.frames(VariableFrame):
            there.hear(frame)
    assert fleet(a).inputs == fleet(b).inputs
    assert fleet(a).partial == fleet(b).partial == (2, 4000)


def test_settled_needs_every_connected_device_to_report_the_same(device):
    device.read([20.0])
    device.tick()
    assert fleet(device).settled
    device.hear(beat(device, digest=5))
    assert not fleet(device).settled  # its entry has not come, but it says there is one
    device.hear(entry(device, PEER, 1, (1, 2200)))
    assert (fleet(device).partial, fleet(device).settled) == ((2, 4200), False)
    device.hear(beat(device, number=2))
    assert (fleet(device).settled, fleet(device).offline) == (True, ())


def test_a_device_that_is_offline_is_named(device):
    device.hear(entry(device, PEER, 1, (1, 2200)))
    assert (fleet(device).settled, fleet(device).offline) == (True, ("pi-2",))
    device.hear(beat(device, digest=5))
    assert (fleet(device).settled, fleet(device).offline) == (False, ())
    device.hear(PresenceFrame(PEER, 1, online=False))
    assert (fleet(device).settled, fleet(device).offline) == (True, ("pi-2",))


def test_a_device_that_said_the_same_before_it_left_is_agreed_with(device):
    device.hear(entry(device, PEER, 1, (1, 2200)))
    device.hear(beat(device))
    device.hear(PresenceFrame(PEER, 1, online=False))
    assert (fleet(device).settled, fleet(device).offline) == (True, ())


def test_a_device_that_vanished_without_a_will_is_counted_as_offline_in_the_end(device):
    device.hear(entry(device, PEER, 1, (1, 2200)))
    device.hear(beat(device, digest=5))
    device.tick(10)
    assert not fleet(device).settled
    device.tick(60)
    assert (fleet(device).settled, fleet(device).offline) == (True, ("pi-2",))


def test_after_a_reconnect_nobody_is_there_until_heard_again(device):
    device.hear(entry(device, PEER, 1, (1, 2200)))
    device.hear(beat(device, digest=5))
    device.core.handle_disconnected()
    device.core.handle_connected(device.now_us)
    assert fleet(device).offline == ("pi-2",)


def test_the_will_of_an_earlier_life_takes_nobody_away(device):
    device.hear(entry(device, PEER, 1, (1, 2200)))
    device.hear(beat(device, digest=5))
    device.hear(PresenceFrame(Replica(2, 22, "pi-2"), 1, online=False))
    assert not fleet(device).settled
    device.hear(PresenceFrame(Replica(2, PEER.nonce, "pi-2"), 1, online=False))
    assert fleet(device).offline == ("pi-2",)  # the same process: it had been renamed


def test_an_older_beat_that_comes_late_changes_nothing(device):
    device.hear(entry(device, PEER, 1, (1, 2200)))
    device.hear(beat(device, number=5))
    device.hear(beat(device, number=4, digest=9))
    device.hear(beat(device, Replica(2, 99, "pi-2"), number=9, digest=9))
    assert fleet(device).settled


def test_an_older_own_entry_at_the_broker_is_published_over(device):
    device.read([20.0])
    device.tick()
    device.tick()
    assert device.frames(VariableFrame, device.tick()) == []
    device.hear(entry(device, Replica(0, 5, "pi-1"), 9, (7, 7)))
    frames = [f for f in device.frames(VariableFrame, device.tick()) if f.stream]
    assert [partial_of(f) for f in frames] == [(1, 2000)]


def test_an_own_entry_that_a_peer_lacks_is_published_when_it_asks(device):
    device.read([20.0])
    device.tick()
    device.hear(AskFrame(PEER, 1, "pi-1", "local_average"))
    device.hear(AskFrame(PEER, 1, "pi-1", "local_average"))
    device.hear(AskFrame(PEER, 1, "pi-1", "samples"))
    assert len(device.frames(VariableFrame, device.tick())) == 1


def test_a_peers_entry_that_is_missing_for_two_beats_is_asked_for(device):
    asks = []
    for number in (1, 1, 2, 2, 3):  # one that is doubled counts once
        device.hear(beat(device, number=number, seq=4, digest=7))
        asks.append(len(device.frames(AskFrame, device.tick())))
    assert asks == [0, 0, 1, 0, 1]
    device.hear(entry(device, PEER, 4, (1, 2200)))
    device.hear(beat(device, number=9, seq=4))
    assert device.frames(AskFrame, device.tick()) == []


def test_a_beat_speaks_of_no_entry_that_was_not_published(device):
    published = 0
    for step in range(100):
        device.read([20.0 + step % 7])
        for frame in device.frames(object, device.tick(0.7)):
            if isinstance(frame, VariableFrame) and frame.stream:
                published = frame.number
            if isinstance(frame, BeatFrame):
                assert frame.reports[0].seq <= published
