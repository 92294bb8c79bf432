"""Who is missing in a window is asked once for all windows that end in one stretch of time."""

from hypothesis import example, given
from hypothesis import strategies as st

from cloud_tier.job.finality import AFTER_ALL_US, BEFORE_ALL_US, MissingDevices
from crdts.frontier import BOTTOM_US
from lasp_edge.protocol.frontier import AwaitedDevice, AwaitedDevices
from lasp_edge.protocol.window_rows import listed

TIMES = st.integers(-50, 50)
PROMISED = TIMES.map(lambda at_us: (at_us, at_us)) | st.tuples(st.just(BOTTOM_US), TIMES)
RANGES = st.builds(range, TIMES, TIMES, st.integers(1, 20))
LOST = st.lists(st.tuples(st.sampled_from("abc"), st.tuples(TIMES, TIMES)), max_size=4)


@given(
    st.lists(PROMISED, max_size=6),
    TIMES,
    st.lists(RANGES, max_size=3),
    st.lists(TIMES),
    TIMES,
    LOST,
    st.integers(1, 30),
)
@example([(BOTTOM_US, 10), (20, 20)], 30, [range(0, 50, 5)], [15], 25, [], 5)
@example([], 60, [range(30, 60)], [], 60, [("a", (20, 30))], 10)  # the last end of a stretch
@example([(50, 50)], 60, [range(0, 80, 5)], [], 60, [("a", (20, 30)), ("b", (25, 26))], 10)
def test_each_end_lies_in_a_stretch_with_the_devices_that_a_window_there_waits_for(
    promised, lead_us, ends, ended, frontier_us, lost, size_us
):
    devices = tuple(AwaitedDevice(f"pi-{at}", *each) for at, each in enumerate(promised))
    gone = [(f"gone-{at}", at_us) for at, at_us in enumerate(ended[:6])]
    known = [(each.device, each.former_us) for each in devices]
    awaited = AwaitedDevices(devices, lead_us, (*gone, *known))
    stretches = list(MissingDevices(awaited, frontier_us, lost).stretches(lead_us, size_us, ends))
    for end_us in (end_us for several in ends for end_us in several):
        (found,) = (s for s in stretches if s.after_us < end_us <= s.until_us)
        missing = awaited.before(end_us)
        assert (found.devices, found.number) == (",".join(missing), len(missing))
        left_out = {device for device, _ in awaited.behind(min(end_us, frontier_us))}
        for device, stretch in lost:
            shared = set(range(end_us - size_us, end_us)).intersection(range(*stretch))
            left_out |= {device} if shared else set()
        assert (found.left_out, found.left_out_number) == (listed(left_out), len(left_out))
        either = {*missing, *left_out}
        assert (found.either, found.either_number) == (listed(either), len(either))
    if stretches:
        afters, untils, *_ = zip(*stretches, strict=True)
        assert (BEFORE_ALL_US, *untils) == (*afters, AFTER_ALL_US)


def test_a_fleet_in_step_has_few_stretches_however_many_devices_it_has():
    devices = tuple(AwaitedDevice(f"pi-{at}", 1_000 + at, 1_000 + at) for at in range(5_000))
    missing = MissingDevices(AwaitedDevices((AwaitedDevice("cellar", 100, 100), *devices), 0), None)
    stretches = list(missing.stretches(6_000, 10, [range(0, 20_000, 10_000), range(150, 900, 50)]))
    assert [each.devices for each in stretches] == ["", "cellar", ""]


def test_a_thousand_missing_devices_are_a_count_and_a_few_names():
    devices = tuple(AwaitedDevice(f"pi-{at}", 10 + at, 10 + at) for at in range(1_000))
    *_, found, _ = MissingDevices(AwaitedDevices(devices, 0), None).stretches(
        5_000, 10, [range(1_005, 1_006), range(6_000, 6_001)]
    )
    assert (found.devices.split(","), found.number) == (
        sorted(d.device for d in devices[:995])[:8],
        995,
    )
