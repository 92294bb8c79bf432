"""What a device leaves of a shared variable at the broker: slots that join to the whole."""

from crdts import ORSet, Replica, decode, encode
from device_agent.agent.variables.states import Trace
from lasp_edge.protocol.kinds import decode as frame_in
from tests.device_agent.agent.variables.test_sharing import PLAN
from tests.device_agent.agents import Device


def test_slots_join_to_the_whole_whatever_was_added_and_are_few():
    me, whole = Replica(1, 7, "a"), ORSet()
    trace = Trace(lambda: whole)
    broker = {}
    for step in range(1_500):
        delta = whole.add(me, step) if step % 3 else whole.remove(me, step - 2)
        whole |= delta
        trace.add(delta)
        for slot in trace.unsent:
            broker[slot] = decode(trace.encoded(slot))
        for slot in trace.unused:
            broker.pop(slot, None)
        trace.unsent.clear()
        trace.unused.clear()
        if step % 100 == 0:
            joined = ORSet()
            for state in broker.values():
                joined |= state
            assert joined == whole
    assert len(broker) < 20
    assert sum(len(encode(state)) for state in broker.values()) < 3 * len(encode(whole)) + 4_096


def test_wherever_a_link_breaks_the_broker_has_what_it_had(tmp_path):
    """A slot is joined with others: it is removed only once that has left which holds the same."""
    device, kept, before = Device(tmp_path, PLAN), dict[str, ORSet](), ORSet()
    removed = 0
    for value in range(0, 10**7, 40_009):
        device.take([value], [None], [{}], name="seen")
        of_shared = [p for p in device.tick(20) if "/shared/" in p.topic]
        for publication in of_shared:
            if not publication.payload:
                removed += kept.pop(publication.topic, None) is not None
            elif (frame := frame_in(publication.payload)).variable == "opened":
                kept[publication.topic] = decode(frame.state)
            now = ORSet()
            for state in kept.values():
                now |= state
            assert before <= now
            before = now
    assert len(before.value) == value // 40_009 + 1
    assert removed > 0
