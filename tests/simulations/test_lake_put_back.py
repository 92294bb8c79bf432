"""A simulated lake that was put back becomes another store, as the lander's process does it."""

from crdts import Replica
from lasp_edge.protocol.topics import Topics, topic_of
from lasp_edge.units import SECOND_US
from simulations.world.faults import START_US, Fault
from simulations.world.lander import TERMS
from simulations.world.lander_process import VirtualLanderProcess
from simulations.world.programs import trial
from simulations.world.run import run
from simulations.world.scenario import Scenario
from tests.lasp_edge.protocol.support_frames import beat

PLAN = trial().plan()
SINK = "lake"


def test_promises_of_the_segment_that_tells_of_it_are_to_the_store_before():
    sink = VirtualLanderProcess(PLAN, SINK, TERMS, 1, START_US)
    before = sink.lander.lake_id
    told = (("attic", 0), ("cellar", 99))  # of one sink, and after which commit
    for number, (device, commit) in enumerate(told, 1):
        sender = Replica(1, number, device)
        frame = beat(1, START_US, replica=sender, sink=SINK, store=before, commit=commit)
        sink.hear(topic_of(frame, Topics(PLAN.name)), frame.encode(), step=1)
    for step in range(1, 6):
        list(sink.commit(step, START_US + step * SECOND_US))
    assert sink.lander.lake_id != before
    assert not sink.lander.promises.entries


def test_a_lake_that_was_put_back_waits_for_nothing_that_its_device_has_lost_too():
    """Seeds 1804 and 70332: nobody can bring it. The lander's log is lost, so it cannot tell."""
    faults = [Fault(44, kind, "", 1) for kind in ("gateway_old", "lander_crash")]
    faults.append(Fault(44, "store_lost", "pi-0", 0))
    outcome = run(Scenario(10, 1, 60, schedule=tuple(faults), landers=(SINK,)))
    assert outcome.seen["gateway_old"] == 1
    assert not outcome.trouble


def test_an_image_of_a_lake_that_was_lost_lacks_what_that_one_had_since():
    """Nobody hears of it while it is away."""
    faults = [Fault(26, "sink_away", "", 20), Fault(27, "new_lake", "", 1)]
    faults.append(Fault(30, "gateway_old", "", 1))
    outcome = run(Scenario(4, 1, 60, schedule=tuple(faults), landers=(SINK,)))
    assert outcome.seen["gateway_old"] == 1
    assert not outcome.trouble
