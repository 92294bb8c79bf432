"""The fence and landers: peers hear less than they do, and only their word is final."""

from dataclasses import replace

from crdts import BoundedLWWSet, Replica
from device_agent.agent.fleet.fence import MOST_ASKED_OF_LANDERS
from lasp_edge import Program, folds
from lasp_edge.protocol.fencing import HelloFrame, ProcessReport, SourceHigh, VouchFrame
from lasp_edge.protocol.frames import BeatFrame
from tests.device_agent.agent.fleet.test_fence import (
    KEEPER,
    SOURCE,
    TWICE,
    WAIT_S,
    device,
    hello_of,
    published_kinds,
    sure,
    told,
)
from tests.device_agent.agents import NOW_US, Device, ack_of

__all__ = ["device", "sure"]


def test_where_only_a_peer_has_answered_it_waits_for_a_lander(device):
    hello = hello_of(device)
    told(device, Replica(4, 9, "pi-1"), keeps=False, hello=hello)
    assert published_kinds(device, 2) == {HelloFrame}
    told(device, Replica(6, 9, "pi-1"), voucher=KEEPER, hello=hello)
    assert published_kinds(device, 0.5) <= {HelloFrame}, "a second lander may know more"
    assert BeatFrame in published_kinds(device, 1.0) | published_kinds(device, 1.0)
    assert device.core.replica.incarnation == 7


def test_where_no_lander_answers_in_time_it_goes_by_what_peers_know_and_goes_on_asking(device):
    told(device, Replica(4, 9, "pi-1"), keeps=False)
    device.tick(WAIT_S)
    assert device.core.report()["fence"] == "vouched"
    assert device.core.replica.incarnation == 5
    hellos = [h for _ in range(200) for h in device.frames(HelloFrame, device.tick())]
    assert 5 <= len(hellos) <= MOST_ASKED_OF_LANDERS, "for a while"


def test_it_asks_again_when_it_hears_of_a_lander_that_has_not_answered(device):
    told(device, Replica(4, 9, "pi-1"), keeps=False)
    for _ in range(200):
        device.tick()
    device.acknowledge()
    high = SourceHigh(SOURCE, NOW_US + 10, 11)
    told(device, Replica(4, 9, "pi-1"), high, voucher=KEEPER)
    device.acknowledge()
    assert device.frames(HelloFrame, [p for _ in range(60) for p in device.tick()]) == []
    device.read([20.0], [NOW_US + 5])
    device.tick()
    assert device.counted["doubtful"] == 1


def test_each_lander_that_is_heard_is_asked_until_it_has_answered(device):
    """A device delivers to a lake and an archive; the lake's lander is new and knows nothing."""
    archive = Replica(1, 2, "lander of archive")
    told(device, Replica(0, 0, "pi-1"), voucher=KEEPER)
    device.read([20.0] * 3, [NOW_US + n for n in range(3)])
    device.tick(2)
    assert device.core.report()["fence"] == "vouched"
    assert device.frames(HelloFrame, [p for _ in range(60) for p in device.tick()]) == []
    for _ in range(3):
        device.hear(replace(ack_of(device.name, sink=("archive", "a-1")), sender=archive))
        hello = hello_of(device, 12)
        told(device, Replica(0, 0, "pi-1"), voucher=KEEPER, hello=hello)  # the other is not heard
    device.hear(replace(ack_of(device.name, sink=("archive", "a-1")), sender=archive))
    high = SourceHigh(SOURCE, NOW_US + 1, 2)
    told(device, Replica(1, 9, "pi-1"), high, voucher=archive, hello=hello_of(device, 12))
    device.tick()
    assert device.counted[TWICE] == 2
    told(device, Replica(1, 9, "pi-1"), high, voucher=archive)
    for lander in (KEEPER, archive):
        device.hear(replace(ack_of(device.name, sink=("archive", "a-1")), sender=lander))
    told(device, Replica(1, 9, "pi-1"), voucher=KEEPER, hello=hello_of(device, 12))
    device.hear(replace(ack_of(device.name, sink=("archive", "a-1")), sender=archive))
    assert device.frames(HelloFrame, [p for _ in range(60) for p in device.tick()]) == []


def test_without_windows_nothing_lands_and_peers_are_enough(tmp_path):
    program = Program("no windows")
    temperature = program.event("temperature")
    samples = program.declare_dynamic(BoundedLWWSet(bound=3), "samples")
    program.collect(temperature, into=samples)
    program.fold_dynamic(program.fold(samples, folds.mean(), "local_average"), "average")
    device = Device(tmp_path, program.plan(), fenced=True)
    told(device, Replica(7, 77, "pi-1"), keeps=False)
    assert device.frames(BeatFrame, [*device.tick(1), *device.tick(1)])
    assert device.core.replica.incarnation == 8


def test_what_was_accepted_on_a_peers_word_is_counted_when_a_lander_knows_more(device):
    life, told_late = Replica(4, 9, "pi-1"), SourceHigh(SOURCE, NOW_US + 10, 11)
    told(device, life, SourceHigh(SOURCE, NOW_US + 4, 5), keeps=False)
    device.tick(WAIT_S)
    device.read([20.0] * 15, [NOW_US + n for n in range(15)])
    device.tick()
    assert (device.counted["doubtful"], device.counted["accepted"]) == (5, 10)
    told(device, life, told_late, voucher=KEEPER)
    device.tick()
    assert device.counted[TWICE] == 6, "of the ten, those that the life had accepted, too"


def test_what_was_accepted_alone_hides_nothing_that_another_life_had_accepted(sure):
    """The store is older: it knows 2 of the 4 readings of its last life, and accepts 5 alone."""
    sure.read([20.0, 21.0], [NOW_US, NOW_US + 1])
    life, high = sure.core.replica, SourceHigh(SOURCE, NOW_US + 3, 4)
    sure.restart()
    for _ in range(WAIT_S + 1):
        sure.tick()
    sure.read([20.0] * 5, [NOW_US + 2 + n for n in range(5)])
    told(sure, life, high, hello=hello_of(sure))
    sure.tick()
    assert sure.counted[TWICE] == 2, "the life went on to accept two more"
    assert sure.core.intake.highs.doubt_us("test") == NOW_US + 3


def test_a_life_that_was_alone_is_no_doubt_for_the_next_one_on_the_same_store(sure):
    sure.restart()
    for _ in range(WAIT_S + 1):
        sure.tick()
    sure.read([20.0, 21.0], [NOW_US, NOW_US + 9])
    alone, high = sure.core.replica, SourceHigh(SOURCE, NOW_US + 9, 2)
    assert sure.frames(BeatFrame, sure.tick(20))[-1].highs == (high,)
    sure.restart()
    told(sure, alone, high)
    sure.tick(2)
    sure.read([22.0], [NOW_US + 3])
    sure.tick()
    assert sure.counted["accepted"] == 3
    assert not {"doubtful", TWICE} & set(sure.counted)


def test_a_replica_that_has_become_later_reads_when_a_lander_has_heard_of_it(device):
    told(device, Replica(7, 77, "pi-1"), voucher=KEEPER)
    device.tick(1.5)
    assert device.core.replica.incarnation == 8
    assert not device.core.fence.lets_read
    told(device, Replica(7, 77, "pi-1"), voucher=KEEPER, hello=hello_of(device))
    assert device.core.fence.lets_read
    device.acknowledge()
    assert device.frames(HelloFrame, [p for _ in range(60) for p in device.tick()]) == []


def test_processes_that_follow_each_other_are_one_life_whose_readings_may_count_twice_once(sure):
    """A card of long ago is put back: of its processes since then a lander has heard the last."""
    sure.read([20.0] * 7, [NOW_US + n for n in range(7)])
    sure.tick(2)
    sure.restart()
    processes = [
        Replica(incarnation, 1_000 + incarnation, "pi-1") for incarnation in range(9, 5, -1)
    ]
    reports = [ProcessReport(each, (SourceHigh(SOURCE, NOW_US + 90, 60),)) for each in processes]
    (newest, highs), *others = reports
    hello = hello_of(sure)
    for voucher in (KEEPER, Replica(1, 2, "lander of archive")):
        vouch = VouchFrame.of(
            voucher, 1, hello, processes[0], newest, highs, keeps=True, others=tuple(others)
        )
        sure.hear(vouch)
    sure.tick(2)
    assert sure.core.replica.incarnation == 10
    assert sure.counted[TWICE] == 7, "all that the store holds, and no more"
