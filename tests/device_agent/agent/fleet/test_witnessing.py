"""Who answers a hello, who is told that it looks old, and who is not heard at first."""

from crdts import Replica
from lasp_edge.protocol.fencing import HINT, HelloFrame, SourceHigh, VouchFrame
from lasp_edge.protocol.frames import BeatFrame
from lasp_edge.protocol.witness import HELD_US
from lasp_edge.units import SECOND_US
from tests.device_agent.agents import Device

ASKER = Replica(1, 5, "pi-9")
HIGH = SourceHigh(1, 60, 10)


def beat(replica: Replica, *highs: SourceHigh, number: int = 1) -> BeatFrame:
    return BeatFrame(replica, number, (), False, (), highs=highs)  # noqa: FBT003


def vouches(device, *frames) -> list[VouchFrame]:
    for frame in frames:
        device.hear(frame)
    return device.frames(VouchFrame, device.tick())


def test_it_tells_a_device_what_it_has_heard_of_it(device):
    device.hear(beat(Replica(5, 50, "pi-9"), HIGH))
    (vouch,) = vouches(device, HelloFrame(ASKER, 1, "pi-9", 77, 1))
    assert (vouch.about, vouch.challenge) == ("pi-9", 77)
    assert (vouch.subject, vouch.reporter) == (Replica(5, 50, "pi-9"), Replica(5, 50, "pi-9"))
    assert (vouch.highs, vouch.keeps) == ((HIGH,), False)
    assert device.topic_of(vouch) == device.core.agent.topics.of("vouch", "pi-9")


def test_it_says_nothing_of_a_device_that_it_never_heard(device):
    assert vouches(device, HelloFrame(ASKER, 1, "pi-9", 77, 1)) == []


def test_it_tells_others_who_it_is_itself(device):
    (vouch,) = vouches(device, HelloFrame(ASKER, 1, "pi-1", 77, 1))
    assert (vouch.about, vouch.subject) == ("pi-9", device.core.replica)


def test_of_many_peers_a_few_answer_and_more_where_it_is_asked_again(tmp_path):
    names = [f"p-{number}" for number in range(40)]
    answers = {1: 0, 2: 0, 5: 0}
    for name in names:
        device = Device(tmp_path / name, name=name)
        for other in [*names, "pi-9"]:
            if other != name:
                device.hear(beat(Replica(2, 5, other)))
        for attempt in answers:
            answers[attempt] += len(vouches(device, HelloFrame(ASKER, 1, "pi-9", 77, attempt)))
        device.kill()
    assert answers == {1: 4, 2: 16, 5: 40}


def test_a_device_that_beats_as_an_older_life_is_told_to_ask_now_and_then(device):
    device.hear(beat(Replica(5, 50, "pi-9")))
    (hint,) = vouches(device, beat(ASKER), beat(ASKER, number=2))
    assert (hint.about, hint.challenge, hint.highs) == ("pi-9", HINT, ())
    assert vouches(device, beat(ASKER, number=3)) == []
    device.now_us += 60 * SECOND_US
    assert len(vouches(device, beat(ASKER, number=4))) == 1


def test_an_unlikely_first_contact_is_held_until_somebody_vouches_for_it(device):
    far = Replica(5_000, 50, "pi-9")
    device.hear(beat(far))
    assert device.counted["frame: first contact with an incarnation too far ahead"] == 1
    assert device.core.report()["held_back"] == ["pi-9"]
    (asked,) = device.frames(HelloFrame, device.tick())
    assert asked.about == "pi-9"
    again = [len(device.frames(HelloFrame, device.tick())) for _ in range(20)]
    assert again == [0] * 9 + [1] + [0] * 9 + [1], "every ten seconds"
    device.hear(VouchFrame(ASKER, 1, "pi-1", asked.challenge + 1, far, far, ()))
    device.hear(beat(far, number=2))
    assert device.core.witnessing.witness.of("pi-9") is None
    device.hear(VouchFrame(ASKER, 1, "pi-1", asked.challenge, far, far, (HIGH,)))
    device.hear(beat(far, number=3))
    assert device.core.witnessing.witness.of("pi-9").highs == (HIGH,)
    assert device.core.report()["held_back"] == []


def test_a_forged_first_contact_that_somebody_contradicts_is_never_heard(device):
    far, real = Replica(5_000, 50, "pi-9"), Replica(3, 30, "pi-9")
    device.hear(beat(far))
    (asked,) = device.frames(HelloFrame, device.tick())
    device.hear(VouchFrame(real, 1, "pi-1", asked.challenge, real, real, ()))
    device.now_us += 2 * HELD_US
    device.hear(beat(far, number=2))
    assert device.core.witnessing.witness.of("pi-9").replica == real
    assert device.counted["frame: incarnation too far ahead"] == 1


def test_a_first_contact_that_nobody_contradicts_is_heard_in_the_end(device):
    far = Replica(5_000, 50, "pi-9")
    device.hear(beat(far))
    device.now_us += HELD_US
    device.hear(beat(far, number=2))
    assert device.core.witnessing.witness.of("pi-9").replica == far


def test_invented_devices_beyond_a_bound_count_nowhere(device, monkeypatch):
    monkeypatch.setattr(device.core.witnessing.witness, "_most", 20)
    for number in range(100):
        device.hear(beat(Replica(1, 5, f"x-{number}")))
    assert len(list(device.core.witnessing.witness.lines())) == 20
    assert device.counted["frame: too many devices"] == 80
