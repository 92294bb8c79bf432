"""Derived variables are assigned; the fleet's value is a function of the newest entries."""

import json
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crdts import BoundedLWWSet, Counter, GCounter, GSet, Pair, Replica
from crdts.wire import encode
from device_agent.agent.changes import Restored
from device_agent.agent.core import Core
from lasp_edge import Program, folds
from lasp_edge.protocol.frames import VariableFrame
from lasp_edge.protocol.sharing import SharedFrame
from lasp_edge.protocol.sizes import MAX_FRAME_BYTES
from lasp_edge.units import SECOND_US
from tests.device_agent.agents import NOW_US, Device, entry_of, greenhouse, partial_of, rooms
from tests.device_agent.support_entries import PEER, entry, fleet, stream_of


def total_of(device, replica, state):
    """Return a slot of another replica's part of the shared counter."""
    stream = device.program.shared_streams["total"]
    return SharedFrame(replica, 1, "total", stream, 0, encode(state))


def local(device):
    device.tick(0)
    return device.core.results.local()["local_average"][""].partial


def test_a_local_fold_is_assigned_and_never_joined(tmp_path):
    # The windows [5, 6], [6, 1], [1, 2] give 11, 7, 3; a joined total would stay at 11.
    device = Device(tmp_path, greenhouse(bound=2))
    totals = []
    device.read([0.05])
    for value in (0.06, 0.01, 0.02):
        device.read([value])
        totals.append(local(device)[1])
    assert totals == [11, 7, 3]


def test_a_new_life_adopts_the_items_and_publishes_them_under_its_own_name(device):
    device.read([20.0, 21.0, 22.0])
    device.tick()
    before = device.core.replica
    device.restart()
    (frame,) = [f for f in device.frames(VariableFrame, device.tick()) if f.stream]
    assert frame.sender == device.core.replica > before
    assert partial_of(frame) == (3, 6300)
    device.read([23.0])
    assert local(device) == (4, 8600)


def test_an_incomplete_set_is_not_folded():
    samples = Core(greenhouse(), "pi-1", 7, Restored()).samples
    samples.refold()
    whole = BoundedLWWSet(bound=100)
    whole |= whole.add_many(Replica(1, 7, "pi-1"), (2000, 2100), (1, 2))
    samples.sets.held["samples"][""] = whole
    samples.sets.moved["samples"] = {"": None}
    samples.refold()
    partial = samples.partials("local_average")[""]
    assert partial == (2, 4100)
    holed = whole | whole.add(Replica(1, 7, "pi-1"), 2200, 3)
    del holed.items[2]
    samples.sets.held["samples"][""] = holed
    samples.sets.moved["samples"] = {"": None}
    samples.refold()
    assert samples.partials("local_average")[""] == partial


def test_a_smaller_bound_in_the_program_holds_after_a_restart(tmp_path):
    device = Device(tmp_path, greenhouse(bound=10))
    device.read([20.0 + n for n in range(10)])
    for bound, count in ((4, 4), (6, 4), (3, 3)):
        device.program = greenhouse(bound=bound)
        device.restart()
        assert local(device)[0] == count
    device.read([1.0, 2.0, 3.0, 4.0])
    assert local(device) == (3, 900)


def test_a_variable_of_another_type_in_the_store_is_set_aside_and_said_so(tmp_path):
    device = Device(tmp_path)
    device.read([20.0])
    device.kill()
    other = Program("greenhouse")
    temperature = other.event("temperature", resolution="0.01")
    samples = other.declare(GCounter(), "samples")
    other.declare(Pair(GCounter(), GCounter()), "total")

    @other.on_event(temperature)
    def sampled(event, update):
        update(samples, GCounter.increment)

    device.program = other.plan()
    device.start()
    device.read([21.0])
    device.tick(20)
    assert device.core.variables.shared()["samples"] == 1
    assert [line.partition(":")[0] for line in device.core.report()["set_aside"]] == [
        "samples",
        "total",
    ]


def test_a_shared_counter_counts_every_life_once(device):
    for life in range(1, 4):
        device.read([20.0] * life)
        device.tick()
        device.restart()
    assert device.core.variables.shared()["total"] == 6


def test_shared_counters_of_two_devices_are_joined(tmp_path):
    a, b = Device(tmp_path / "a", name="a"), Device(tmp_path / "b", name="b")
    a.read([20.0] * 2)
    b.read([20.0] * 3)
    for device in (a, b):
        device.tick()
    for _ in range(2):  # repeats count once
        for here, there in ((a, b), (b, a)):
            for frame in here.frames(SharedFrame):
                there.hear(frame)
    assert a.core.variables.shared() == b.core.variables.shared() == {"total": 5}
    assert a.core.exchange.reports()[-1].digest == b.core.exchange.reports()[-1].digest


def test_a_partial_of_another_stream_is_left_aside_and_said_so(device):
    device.hear(entry(device, PEER, 1, (1, 2200), stream=5))
    assert "pi-2" not in device.core.samples.published["local_average"].entries.devices
    device.tick(20)
    assert device.store.restored().counters["frame: variable: another definition"] == 1


HERE = "local_average"
UNFIT = {
    "None in a column of sums": (1, HERE, None, (None, 2200)),
    "too few columns": (1, HERE, None, (1,)),
    "too many columns": (1, HERE, None, (1, 2, 3)),
    "a count out of range": (1, HERE, None, (2**31, 2200)),
    "a total out of range": (1, HERE, None, (1, -(2**62))),
    "bytes for integers": (1, HERE, None, (b"state",)),
    "seq 0": (0, HERE, None, (1, 2200)),
    "a variable that does not travel": (1, "samples", 0, (1, 2)),
    "an unheard of variable": (1, "unheard of", 0, (1, 2)),
    "a shared variable": (1, "total", 0, (1, 2)),
}


@pytest.mark.parametrize("unfit", UNFIT)
def test_an_entry_that_does_not_fit_changes_nothing(device, unfit):
    number, variable, stream, parts = UNFIT[unfit]
    device.read([20.0])
    device.tick()
    before = device.core.results.plain(), device.core.variables.shared()
    stream = stream_of(device) if stream is None else stream
    device.hear(entry_of(PEER, number, variable, stream, parts))
    assert (device.core.results.plain(), device.core.variables.shared()) == before
    assert any(name.startswith("frame: ") for name in device.counted)


def test_an_incarnation_far_ahead_of_the_known_one_is_left_aside(device):
    device.hear(entry(device, PEER, 1, (1, 2200)))
    device.hear(entry(device, Replica(3 + 1_025, 1, "pi-2"), 1, (9, 9)))
    assert fleet(device).partial == (1, 2200)
    device.hear(entry(device, Replica(3 + 1_024, 1, "pi-2"), 1, (2, 4)))
    assert fleet(device).partial == (2, 4)


def test_an_unchanged_partial_is_published_once(device):
    device.read([20.0])
    device.tick()
    frames = [f for _ in range(100) for f in device.frames(VariableFrame, device.tick())]
    assert frames == []


def test_changes_are_coalesced_to_one_entry_an_interval(device):
    for _ in range(50):
        device.read([20.0])
    assert len([f for f in device.frames(VariableFrame, device.tick()) if f.stream]) == 1


def test_what_a_lost_store_had_counted_comes_back_from_the_broker(device):
    device.read([20.0] * 2)
    lost = Replica(7, 77, "pi-1")
    kept = Counter().increment(lost, 40)
    device.hear(total_of(device, lost, kept))
    assert device.core.variables.shared()["total"] == 42
    device.tick()
    device.restart()
    assert device.core.variables.shared()["total"] == 42
    (frame,) = device.frames(SharedFrame, device.tick())
    device.hear(frame)
    assert device.core.variables.shared()["total"] == 42


def test_an_element_too_large_for_a_frame_is_not_published_and_said_so(tmp_path):
    program = Program("large")
    temperature = program.event("temperature")
    seen = program.declare(GSet(), "seen")

    @program.on_event(temperature)
    def sampled(event, update):
        update(seen, GSet.add, "x" * int(event.value))

    device = Device(tmp_path, program.plan())
    device.read([70_000.0])
    sizes = [len(p.payload) for p in device.tick()]
    assert max(sizes) <= MAX_FRAME_BYTES
    device.tick(20)
    counters = device.store.restored().counters
    assert counters["variable seen: too large to be published"] >= 1


def test_results_for_people_are_published_when_they_change(device):
    device.read([20.0])
    device.tick(20)
    texts = [json.loads(p.payload) for p in device.sent if p.topic.endswith("global_average/pi-1")]
    assert texts[-1]["parts"] == {"mean": 20.0}
    assert device.sent
    device.sent.clear()
    for _ in range(60):
        device.tick()
    assert not any("/out/" in p.topic for p in device.sent)


@settings(max_examples=12)
@given(st.integers(0, 10**6))
def test_a_set_bounded_by_age_is_expired_by_the_tick(seed):
    program = Program("aged")
    temperature = program.event("temperature")
    samples = program.declare_dynamic(BoundedLWWSet(max_age_s=10), "samples")

    @program.on_event(temperature)
    def sampled(event, update):
        update(samples, BoundedLWWSet.add, event.value, event.time_us)

    program.fold_dynamic(program.fold(samples, folds.count(), "here"), "everywhere")
    random = Random(seed)
    with TemporaryDirectory() as directory:
        device = Device(Path(directory), program.plan())
        stamps: list[int] = []
        for _ in range(30):
            count = random.randint(0, 3)
            device.read([1.0] * count)
            stamps += [device.now_us] * count
            device.tick(random.randint(1, 6))
            alive = [at for at in stamps if at >= device.now_us - 10 * SECOND_US]
            # Readings of one batch are accepted a microsecond apart, and none is dropped early.
            assert device.core.results.local()["here"][""].partial[0] - len(alive) in {0, 1, 2, 3}
            device.tick(0)
            if random.random() < 0.2:
                device.restart()
                device.tick(0)
        device.tick(11)
        assert device.core.results.local()["here"][""].partial == (0,)
        device.kill()


def test_a_clock_that_goes_back_lets_all_samples_be_looked_at(tmp_path):
    """They may be stamped by a clock that was ahead, and would stay for as long."""
    device = Device(tmp_path, rooms(max_age_s=60))
    sets, where, ahead_us = device.core.samples.sets, ("samples", "hall"), NOW_US + 10**12
    sets.add(where, [1], [NOW_US], ahead_us)
    sets.expire(ahead_us)
    assert sets.expire(ahead_us + 1) == []
    assert sets.expire(NOW_US) == [where]
    device.kill()
