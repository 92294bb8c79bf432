"""A store is lost or older than its device: nothing is doubled, and no old value stays settled.

Devices read recordings whose rows carry their own time, so a store that lost its cursor reads all
of them again. Every history is run on real cores and stores.
"""

from random import Random

import pytest

from crdts import Replica
from device_agent.agent.intake.batch import Batch
from device_agent.agent.settings import Settings
from lasp_edge import folds
from lasp_edge.protocol.fencing import HelloFrame, SourceHigh, VouchFrame
from lasp_edge.protocol.frames import BeatFrame, PresenceFrame
from lasp_edge.protocol.limits import INCARNATIONS_AHEAD
from lasp_edge.protocol.lives import SILENT_US
from lasp_edge.protocol.topics import topic_of
from lasp_edge.units import SECOND_US
from simulations.fleet import GENTLE, ROUGH, START_US, STEP_US, Fleet
from simulations.world.faults import FaultRates
from simulations.world.links import TO_BROKER, LegMessage
from tests.lasp_edge.support_programs import averaged

LAST = 10
"""Samples that the fleet's average is made of, for each device."""
VICTIM = "pi-0"
TWICE = "fence: readings that may count twice"


def program():
    """Return a program with an average over the fleet and a window that counts."""
    made = averaged("recordings", event={"resolution": "1"}, bound=LAST)
    made.window("minute", source=made.temperature, fold=folds.count(), size_s=60)
    return made.plan()


class Site:
    """A fleet whose devices read one row of a recording a step.

    Attributes:
        rows: device -> the values of its recording; the n-th has the time of the n-th step.
    """

    def __init__(self, seed: int, size: int = 4, faults: FaultRates = GENTLE) -> None:
        settings = Settings(keep_readings=True)
        self.replay = f"replay with: Site({seed}, size={size}, faults={faults})"
        self.fleet = Fleet(program(), size=size, seed=seed, faults=faults, settings=settings)
        self.random = Random(seed)
        self.rows: dict[str, list[int]] = {name: [] for name in self.fleet.devices}

    def steps(self, count: int, *, recording: bool = True) -> None:
        """Let time pass; the recordings grow, and each device reads as far as it may."""
        for _ in range(count):
            for name in self.rows if recording else ():
                self.rows[name].append(self.random.randint(15, 30))
            self.fleet.step()
            for device in self.fleet.running():
                self.read(device.name)

    def read(self, name: str) -> None:
        """Let a device read what it has not read, in batches, as its process would."""
        device = self.fleet.devices[name]
        if not device.core.fence.lets_read:
            return
        read = int(device.core.intake.sources.cursor("csv:rows") or 0)
        while read < len(self.rows[name]):
            values = self.rows[name][read : read + 50]
            times_us = [START_US + (read + n) * STEP_US for n in range(len(values))]
            read += len(values)
            names, tags = ["temperature"] * len(values), [{}] * len(values)
            batch = Batch("csv:rows", names, times_us, values, tags, str(read))
            device.read(batch, self.fleet.now_us)

    def check(self) -> None:
        """Settle, and hold what the fleet says against what the stores hold and have lost."""
        fleet, doubtful, twice = self.fleet, 0, 0
        fleet.settle()
        truth = [0, 0]
        for device in fleet.running():
            kept = [reading["q"] for reading in device.durable.store.readings()][-LAST:]
            truth = [truth[0] + len(kept), truth[1] + sum(kept)]
            doubtful += device.core.counters.totals.get("doubtful", 0)
            twice += device.core.counters.totals.get(TWICE, 0)
        values = {name: result[""] for name, result in fleet.values("everywhere").items()}
        assert set(values.values()) == {tuple(truth)}, self.replay
        landed = fleet.lander.windows(fleet.plan, "minute")
        counted: dict[int, int] = {}
        for rows in self.rows.values():
            for n in range(len(rows)):
                start_us = (START_US + n * STEP_US) // (60 * SECOND_US) * 60 * SECOND_US
                counted[start_us] = counted.get(start_us, 0) + 1
        more = [max(0, count - counted[start_us]) for (_, start_us), (count,) in landed.items()]
        assert sum(more) <= twice, self.replay
        missing = sum(counted.values()) - sum(count for (count,) in landed.values())
        assert -twice <= missing <= doubtful, self.replay
        fleet.close()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("older", [False, True], ids=["lost", "older"])
def test_a_fleet_heals_after_a_lost_or_older_store_and_an_emptied_broker(seed, older):
    site = Site(seed)
    fleet, victim = site.fleet, site.fleet.devices[VICTIM]
    site.steps(20)
    fleet.stop(VICTIM)
    image = victim.disk.image()
    fleet.start(VICTIM)
    site.steps(site.random.randint(5, 40))
    former, read = victim.core.replica, len(victim_readings(victim))
    fleet.stop(VICTIM)
    victim.disk.restore(image if older else b"")
    fleet.start(VICTIM)
    fleet.befall("broker_forgets")
    site.steps(site.random.randint(10, 40))
    assert victim.core.replica > former, site.replay
    known = 20 if older else 0
    told = read - 3  # the last rows had not been spoken of: they are read as new
    assert victim.core.counters.totals["doubtful"] >= told - known, site.replay
    assert victim.core.counters.totals["fence: later lives met"] == 1
    assert fleet.lander.promises.entries[VICTIM].version.replica(VICTIM) == victim.core.replica
    assert victim.core.counters.totals.get(TWICE, 0) <= known, "all of an older store, at most"
    site.check()


def victim_readings(device) -> list:
    return list(device.durable.store.readings())


@pytest.mark.parametrize("seed", range(2))
def test_stores_are_lost_under_every_fault_and_what_may_count_twice_is_said(seed):
    site = Site(seed, faults=ROUGH)
    for name in site.random.sample(sorted(site.fleet.devices), 3):
        site.steps(site.random.randint(10, 30))
        site.fleet.stop(name)
        site.fleet.devices[name].disk.restore(b"")
        site.fleet.start(name)
        if site.random.random() < 0.5:
            site.fleet.befall("broker_forgets")
    site.steps(20)
    site.check()


def test_a_device_alone_in_the_world_goes_on_after_the_wait_and_says_so():
    site = Site(1, size=1)
    lander = site.fleet.lander
    lander.hear = lambda *_, **_kept: None
    site.steps(10)
    core = site.fleet.devices[VICTIM].core
    assert core.report()["fence"] == "alone"
    assert core.counters.totals["fence: started alone"] == 1
    del lander.hear
    site.check()


def test_what_was_read_without_a_connection_is_counted_when_a_former_life_is_told():
    site = Site(2)
    fleet, victim = site.fleet, site.fleet.devices[VICTIM]
    site.steps(30)
    beats = [each.core.witnessing.witness.of(VICTIM) for each in fleet.running()[1:]]
    told = max(beat.highs[0].accepted for beat in beats)
    fleet.stop(VICTIM)
    victim.disk.restore(b"")
    fleet.start(VICTIM)
    fleet.cut(VICTIM, 20)
    site.steps(15)
    assert victim.core.counters.totals["accepted"] > 30, "it reads, though it can ask nobody"
    site.steps(15)
    assert victim.core.counters.totals[TWICE] >= told > 20
    assert victim.core.report()["fence"] == "vouched"
    fleet.settle()
    fleet.close()


@pytest.mark.parametrize("lives", [1, 3])
def test_what_a_card_lost_that_did_not_know_its_source_yet_is_said_by_the_life_after_next(lives):
    """A life reads alone what was lost, and ends before it is told; the one after it is told.

    Its store follows the lost lives and knows their source, which it did not when they ended.
    """
    site = Site(9)
    fleet, victim = site.fleet, site.fleet.devices[VICTIM]
    for _ in range(lives):
        image = victim.disk.image()  # of a life that has read nothing
        site.steps(10)
        fleet.stop(VICTIM)
        victim.disk.restore(image)
        fleet.start(VICTIM)
    fleet.cut(VICTIM, 20)
    site.steps(12)
    assert victim.core.counters.totals["accepted"] > 10, "it reads, though it can ask nobody"
    fleet.kill(VICTIM)
    site.steps(20)
    assert victim.core.counters.totals[TWICE] >= 10 - 3, "the last rows had not been spoken of"
    site.check()


def unheard(fleet):
    """Let no device hear anything, until `route` is deleted from the broker."""
    route = fleet.world.broker.route
    fleet.world.broker.route = lambda topic: route(topic)._replace(everybody=False, device="")


def is_of(topic, kind):
    return topic.split("/")[4] == kind and topic.endswith(f"/{VICTIM}")


def test_what_the_network_held_up_of_a_lost_life_counts_once():
    """The lander gets the last panes of a life only when the next one has read them again."""
    site = Site(6)
    fleet, victim, lander = site.fleet, site.fleet.devices[VICTIM], site.fleet.lander
    site.steps(20)
    late, hear = [], lander.hear
    lander.hear = lambda topic, *message, **_kept: (
        late.append((topic, *message))
        if is_of(topic, "pane") or is_of(topic, "beat")
        else hear(topic, *message)
    )
    unheard(fleet)
    site.steps(20)
    assert late
    del lander.hear, fleet.world.broker.route
    fleet.stop(VICTIM)
    victim.disk.restore(b"")
    fleet.start(VICTIM)
    site.steps(20)
    for message in late:
        lander.hear(*message)
    totals = victim.core.counters.totals
    assert totals["accepted"] >= 30, "it has read them again"
    assert ("doubtful" in totals, TWICE in totals) == (True, False)
    site.check()


def test_peers_that_have_heard_less_than_the_lander_do_not_decide_alone():
    """A lander answers after three seconds, peers at once; and it knows twice as much."""
    site = Site(7)
    fleet, victim, lander = site.fleet, site.fleet.devices[VICTIM], site.fleet.lander
    site.steps(20)
    unheard(fleet)
    site.steps(20)
    del fleet.world.broker.route
    fleet.stop(VICTIM)
    victim.disk.restore(b"")
    hear, deaf_until = lander.hear, fleet.now_us + 2 * STEP_US  # and it takes one to land
    lander.hear = lambda topic, payload, now_us, **_kept: (
        hear(topic, payload, now_us) if now_us > deaf_until else None
    )
    fleet.start(VICTIM)
    site.steps(20)
    totals = victim.core.counters.totals
    assert totals["doubtful"] >= 30
    assert TWICE not in totals
    site.check()


def test_a_life_that_nobody_told_in_time_is_told_when_its_beats_look_old():
    site = Site(3, size=2)
    fleet, victim = site.fleet, site.fleet.devices[VICTIM]
    for _ in range(3):
        site.steps(10)
        fleet.kill(VICTIM)
    fleet.stop(VICTIM)
    victim.disk.restore(b"")
    fleet.start(VICTIM)
    fleet.befall("broker_forgets")
    victim.durable.hear = lambda *_: None  # it hears nothing, and is heard
    site.steps(12)
    assert victim.core.report()["fence"] == "alone"
    assert victim.core.replica.incarnation == 1
    del victim.durable.hear
    site.steps(30)
    assert victim.core.replica.incarnation == 4, "the fourth life had not said a word"
    fleet.settle()
    values = {name: result[""] for name, result in fleet.results("everywhere").items()}
    assert len({(value.partial, value.inputs) for value in values.values()}) == 1
    fleet.close()


def test_forged_frames_push_no_incarnation_and_invented_devices_are_bounded():
    site = Site(4)
    fleet, victim = site.fleet, site.fleet.devices[VICTIM]
    site.steps(20)
    before = victim.core.replica
    topics = victim.core.agent.topics

    def forge(frame, *, retain=False):
        parcel = LegMessage(TO_BROKER, topic_of(frame, topics), frame.encode(), retain)
        fleet.world.send(parcel)

    for n in range(1, 13):
        far = Replica(before.incarnation + n * INCARNATIONS_AHEAD, 77, VICTIM)
        forge(PresenceFrame(far, 1, online=True), retain=True)
        forge(VouchFrame(far, n, VICTIM, 4_711 + n, far, far, (SourceHigh(1, START_US, 9),)))
        site.steps(2)
    assert victim.core.replica == before
    assert "doubtful" not in victim.core.counters.totals
    for n in range(1, 4):  # a device that nobody knows, with a life that no young one has
        stranger = Replica(50_000, 7, "stranger")
        forge(BeatFrame(stranger, n, (), False, ()))  # noqa: FBT003
    counted = fleet.devices["pi-1"].core.counters.totals
    site.steps(2)
    assert counted["frame: first contact with an incarnation too far ahead"] == 3
    assert fleet.devices["pi-1"].core.report()["held_back"] == ["stranger"]
    fleet.close()


def test_forged_hellos_hold_up_what_a_device_delivers_for_two_minutes_at_most():
    """A stranger says hello as later lives, and further ahead than the device would follow."""
    site = Site(8, size=2)
    fleet, victim, lander = site.fleet, site.fleet.devices[VICTIM], site.fleet.lander
    site.steps(20)
    fleet.settle()
    life, topics = victim.core.replica, victim.core.agent.topics
    for n in range(1, 4):
        forged = Replica(life.incarnation + n * INCARNATIONS_AHEAD, 70 + n, VICTIM)
        hello = HelloFrame(forged, 1, VICTIM, 4_711, 1)
        lander.hear(topic_of(hello, topics), hello.encode(), fleet.now_us)
    began = fleet.now_us
    site.steps(10)
    assert not victim.core.done
    while not victim.core.done and fleet.now_us < began + 2 * SILENT_US:
        site.steps(1, recording=False)
    assert victim.core.done, "what was refused waits at most once more before it is sent again"
    assert TWICE not in victim.core.counters.totals
    site.check()
