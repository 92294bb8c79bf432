"""Shared variables travel as deltas, are repaired by who knows, and leave only their vector."""

import itertools
import tracemalloc

import msgpack
import pytest

from crdts import CausalContext, GSet, ORSet, Replica, decode, encode
from crdts.causal_context import index_of
from device_agent.agent.variables.states import PIECE_BYTES, TAIL, TAIL_BYTES
from lasp_edge import Program
from lasp_edge.protocol.frames import BeatFrame, PresenceFrame
from lasp_edge.protocol.kinds import FRAME_KINDS
from lasp_edge.protocol.kinds import decode as frame_in
from lasp_edge.protocol.sharing import RepairFrame, SharedFrame, SummaryFrame
from tests.device_agent.agents import Device
from tests.device_agent.support_site import Site

MANY = 10_000


def doors():
    """Return a program with a set that grows and shrinks as readings say."""
    program = Program("doors")
    seen, gone = program.event("seen"), program.event("gone")
    several = program.event("several")
    opened = program.declare(ORSet(), "opened")
    ever = program.declare(GSet(), "ever")

    @program.on_event(seen)
    def open_one(event, update):
        update(opened, ORSet.add, int(event.value))
        update(ever, GSet.add, int(event.value) % 10)

    @program.on_event(gone)
    def close_one(event, update):
        if event.value < 0:
            update(opened, ORSet.clear)
        else:
            update(opened, ORSet.remove, int(event.value))

    @program.on_event(several)
    def open_several(event, update):
        for element in range(int(event.value)):
            update(opened, ORSet.add, element)

    return program.plan()


PLAN = doors()


class Doors(Site):
    """A site of that program."""

    def read(self, name, event, *values):
        for value in values:
            self.devices[name].take([value], [None], [{}], name=event)

    def opened(self):
        return [device.core.variables.shared()["opened"] for device in self.devices.values()]

    def bytes_of(self, *kinds):
        """Return the bytes of the frames of these kinds since the last `clear`."""
        return sum(
            len(p.payload)
            for p in self.sent
            if p.payload and "/out/" not in p.topic and isinstance(frame_in(p.payload), kinds)
        )

    def traces(self, name, variable="opened"):
        """Return the states in the slots that a device left at the broker."""
        frames = [frame_in(p) for topic, p in self.retained.items() if "/shared/" in topic]
        return [
            decode(frame.state)
            for frame in frames
            if (frame.sender.device, frame.variable) == (name, variable)
        ]


@pytest.fixture
def site(tmp_path):
    """Return a function that makes a site, each in a folder of its own."""
    numbers = itertools.count()
    return lambda *names: Doors(tmp_path / str(next(numbers)), PLAN, *names)


def test_a_change_of_one_element_of_ten_thousand_costs_what_one_of_ten_costs(site):
    costs = []
    for many in (10, MANY):
        here = site("a", "b")
        here.read("a", "several", many)
        here.run(70)
        assert here.opened() == [set(range(many))] * 2
        each = []
        for element in range(20):
            here.sent.clear()
            here.read("a", "seen", MANY + element)
            here.read("b", "gone", element)
            here.run(2)
            each.append(here.bytes_of(SharedFrame, SummaryFrame, RepairFrame))
        assert here.opened()[0] == here.opened()[1]
        costs.append(sorted(each))
    few, more = costs
    assert more[len(more) // 2] < 3 * TAIL_BYTES
    assert sum(more) < 2 * sum(few) + 2 * PIECE_BYTES


def test_after_everything_was_removed_only_the_vector_remains(site):
    here = site("a", "b")
    here.read("a", "several", 2_000)
    here.read("b", "seen", *range(5_000, 5_050))
    here.run(5)
    here.read("b", "gone", -1)
    here.run(130)
    assert here.opened() == [set(), set()]
    for name, device in here.devices.items():
        joined = ORSet()
        slots = here.traces(name)
        for state in slots:
            joined |= state
        vector = {name: (1, device.core.replica.nonce)}
        assert {at: row[:2] for at, row in joined.context.to_plain().items()} == vector
        assert sum(len(encode(state)) for state in slots) < 100
        state = device.core.variables.shared_states["opened"]
        assert len(encode(state.whole)) < 100
        device.core.handle_stop()
        device.tick()
        device.restart()
        assert device.core.variables.shared_states["opened"]._pending == ORSet()


def test_removals_of_others_elements_do_not_pile_up_in_the_remover(site):
    here = site("a", "b")
    for step in range(200):
        here.read("a", "seen", step)
        here.run(1)
        here.read("b", "gone", step)
        here.run(1)
    here.run(130)
    assert here.opened() == [set(), set()]
    assert sum(len(encode(state)) for state in here.traces("b")) < 100


def removed(remover):
    """Return the state in which a device has removed what another one had added."""
    state = ORSet()
    state |= state.add(Replica(1, 5, "a"), 7)
    state |= state.remove(remover, 7)
    return state


def test_only_the_device_whose_element_was_removed_confirms_that(tmp_path):
    device = Device(tmp_path, PLAN, name="b")
    state, known = device.core.variables.shared_states["opened"], removed(device.core.replica)
    state.store(known)
    assert state._pending != ORSet()
    state.confirm("c", known)
    assert state._pending != ORSet()
    state.confirm("a", known)
    assert state._pending == ORSet()
    device.kill()


def test_what_an_earlier_life_removed_stays_in_the_trace_though_others_know_it(tmp_path):
    """Its store was lost: who removed it is no longer known here, only that it is gone."""
    device = Device(tmp_path, PLAN, name="b")
    state, known = device.core.variables.shared_states["opened"], removed(Replica(9, 6, "b"))
    state.hear(known)
    state.trace.renew()
    state.recover(known, 9)
    assert state._pending != ORSet()
    assert known <= decode(state.trace.encoded(TAIL))
    device.kill()


def test_devices_that_are_never_awake_together_agree(site):
    here = site("a", "b", "c")
    for name in ("a", "b", "c"):
        here.leave(name)
    for round_ in range(4):
        for name, at in (("a", 0), ("b", 100), ("c", 200)):
            here.connect(name)
            here.run(3)
            here.read(name, "seen", at + round_)
            if round_:
                here.read(name, "gone", (at + 100) % 300 + round_ - 1)
            here.run(3)
            here.leave(name)
    for name in ("a", "b", "c", "a", "b"):
        here.connect(name)
        here.run(3)
        here.leave(name)
    expected = {3, 103, 203}
    assert here.opened() == [expected] * 3


def test_a_late_joiner_and_a_lost_store_get_the_whole_state_in_bounded_frames(site):
    here = site("a", "b")
    here.read("a", "several", MANY)
    here.run(5)
    here.retained.clear()  # the broker forgot everything
    here.leave("a")
    here.sent.clear()
    here.add("late")
    here.run(40)
    assert here.opened()[2] == set(range(MANY))
    repairs = [p for p in here.sent if "/repair/late" in p.topic]
    assert len(repairs) > 4
    assert max(len(p.payload) for p in repairs) < 2 * PIECE_BYTES
    here.retained.clear()
    here.lose("b")
    here.run(60)
    assert here.opened()[1:] == [set(range(MANY))] * 2
    here.sent.clear()
    here.run(20)
    assert here.bytes_of(SummaryFrame, RepairFrame, SharedFrame) == 0


def test_a_repair_sends_what_is_lacking_and_hardly_more(site):
    here = site("a", "b")
    here.read("a", "several", MANY)
    here.run(70)
    lost = here.devices["b"].durable.hear
    here.devices["b"].durable.hear = lambda topic, payload, now: (
        None if "/shared/" in topic else lost(topic, payload, now)
    )
    here.read("a", "seen", MANY)
    here.read("a", "gone", 7)
    here.sent.clear()
    here.run(30)
    assert here.opened()[0] == here.opened()[1] == {*range(MANY + 1)} - {7}
    assert here.bytes_of(SummaryFrame) < 4 * 3_000
    assert here.bytes_of(RepairFrame) < 2_000


def test_one_holder_is_asked_at_a_time(site):
    names = [f"n{number}" for number in range(6)]
    here = site(*names)
    here.read("n0", "seen", 1)
    here.run(5)
    here.sent.clear()
    here.retained.clear()
    here.add("late")
    here.run(12)
    assert here.opened()[-1] == {1}
    asked = [frame_in(p.payload) for p in here.sent if "/summary/" in p.topic]
    by_asker = [frame.sender.device for frame in asked if frame.variable == "opened"]
    assert by_asker.count("late") == 1


def test_what_a_broker_kept_of_a_lost_store_counts_again_and_is_left_there_again(site):
    here = site("a")
    here.read("a", "seen", 1, 12)
    here.run(3)
    here.lose("a")
    here.run(3)
    assert here.opened() == [{1, 12}]
    assert here.devices["a"].core.variables.shared()["ever"] == {1, 2}
    here.run(70)
    late = here.add("late")
    here.leave("a")
    assert late.core.variables.shared() == {"ever": {1, 2}, "opened": {1, 12}}


def test_a_restart_knows_what_was_heard_of_others(site):
    here = site("a", "b")
    here.read("a", "seen", 1)
    here.run(25)
    here.leave("a")
    here.retained.clear()
    here.devices["b"].restart()
    assert here.opened()[1] == {1}


def test_what_a_trace_says_of_what_others_removed_outlives_the_power(site):
    """Who removed it trusts the trace, and leaves it at the broker no more."""
    here = site("a", "b")
    here.read("a", "seen", 1)
    here.run(5)
    here.read("b", "gone", 1)
    here.run(2)
    assert [state.value for state in here.traces("a")] == [set()]
    assert here.devices["b"].core.variables.shared_states["opened"]._pending == ORSet()
    here.devices["a"].restart()
    assert here.opened()[0] == set()


@pytest.mark.parametrize(
    "digest", [b"", b"\xc1", msgpack.packb(5), msgpack.packb([1, 2]), msgpack.packb([{}, 99, {}])]
)
def test_a_summary_that_is_no_digest_is_counted_and_changes_nothing(tmp_path, digest):
    device = Device(tmp_path, PLAN)
    stream = PLAN.shared_streams["opened"]
    device.take([1], [None], [{}], name="seen")
    device.hear(SummaryFrame(Replica(1, 7, "b"), 1, "pi-1", "opened", stream, digest))
    assert device.counted["frame: summary: not a digest"] == 1
    assert device.frames(RepairFrame, device.tick()) == []


def test_parts_of_another_meaning_are_refused(tmp_path):
    device, peer = Device(tmp_path, PLAN), Replica(1, 7, "b")
    state, stream = encode(GSet({1})), PLAN.shared_streams["opened"]
    device.hear(SharedFrame(peer, 1, "opened", stream, 0, state))  # another type
    device.hear(SharedFrame(peer, 1, "opened", stream + 1, 0, encode(ORSet().add(peer, 1))))
    device.hear(RepairFrame(peer, 1, "pi-1", "unheard of", stream, state))
    assert device.core.variables.shared()["opened"] == set()
    assert device.counted["frame: variable: another definition"] == 3


def test_the_lander_hears_parts_of_states_and_not_what_devices_ask():
    kinds = [row for row in FRAME_KINDS.values() if "LANDER" in str(row.subscribers)]
    of_variables = {SharedFrame, SummaryFrame, RepairFrame}
    assert of_variables & {row.frame for row in kinds} == {SharedFrame, RepairFrame}
    assert {BeatFrame, PresenceFrame} & {row.frame for row in FRAME_KINDS.values()}
    assert len(set(itertools.chain(FRAME_KINDS))) == len(FRAME_KINDS)


def test_a_frame_that_says_that_millions_of_writes_are_gone_costs_no_memory(tmp_path):
    device = Device(tmp_path, PLAN)
    device.take([1, 2], [None, None], [{}, {}], name="seen")
    device.tick(60)
    stranger = Replica(1, 5, "stranger")
    gone = ORSet().part({}, CausalContext({index_of(stranger): 1 << 22}))
    stream = PLAN.shared_streams["opened"]
    tracemalloc.start()
    for number, kind in enumerate((SharedFrame, SharedFrame, RepairFrame), 1):
        at = (0,) if kind is SharedFrame else ()
        to = () if kind is SharedFrame else ("pi-1",)
        device.hear(kind(stranger, number, *to, "opened", stream, *at, encode(gone)))
        device.tick(60)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 4_000_000
    assert device.core.variables.shared_states["opened"].whole.value == {1, 2}
    device.restart()
    assert device.core.variables.shared_states["opened"].whole.value == {1, 2}


def test_what_an_earlier_life_left_in_a_slot_is_there_no_more_once_the_slot_is_written(site):
    """Its store was lost, it has learnt a part from a peer, and what it had left comes late."""
    here = site("b")
    here.read("b", "seen", 1)
    here.run(3)
    first = here.devices["b"].core.variables.shared_states["opened"].whole.copy()
    here.read("b", "seen", 2)
    here.run(3)
    kept, here.retained = dict(here.retained), {}
    here.lose("b")
    stream = PLAN.shared_streams["opened"]
    peer = Replica(1, 5, "a")
    here.devices["b"].hear(RepairFrame(peer, 1, "b", "opened", stream, encode(first)))
    here.run(10)
    assert here.traces("b")
    for topic, payload in kept.items():
        if "/shared/" in topic:
            here._bring("b", topic, payload)
    here.run(10)
    joined = ORSet()
    for state in here.traces("b"):
        joined |= state
    assert joined == here.devices["b"].core.variables.shared_states["opened"].whole
    assert joined.value == {1, 2}
