"""What must have landed once a world is at rest, and what devices must hold then.

- of each line of a recording at least one copy, unless it is counted as refused, late or doubtful
- no more copies than were reported as possibly counted twice, or than no store can know of any more
- each reading that was stamped, once, and at the time at which it came
- samples and shared counters as the readings give them
"""

from collections import Counter
from collections.abc import Iterator

from lasp_edge.units import SECOND_US
from simulations.world.device import OUTCOMES, RecordedLine, VirtualDevice
from simulations.world.programs import BOUND, COLUMN_ROOM, COLUMNS, STAMPED, TIMED
from simulations.world.scenario import CLOCKS
from simulations.world.sinks import AnySink
from simulations.world.truth import (
    LONG_S,
    came_later,
    counted_lines,
    is_closed,
    live_landed,
    pane_of,
)
from simulations.world.world import World

SPARE_S = 5
"""Seconds by which a stamped reading may be placed elsewhere: a witness tells whole seconds."""


def check_landed(world: World, device: VirtualDevice, sink: AnySink, *, clones: bool) -> None:
    """Compare what has landed of a device in a sink with what its sources gave."""
    plan, lander = world.plans[-1], sink.lander
    is_short = came_later(device, sink) and world.scenario.retain_s < LONG_S
    came_late = bool(sink.former) or is_short or bool(world.scenario.sinks_retain_s)
    timed = plan.windows[TIMED]
    landed = counted_lines(lander, timed.stream, device.name)
    sure = _sure_lines(world, device, came_late=came_late)
    if world.scenario.columns:
        _columns(world, device, sink, sure)
    times = {
        line: landed.get((line.time_us // 10_000_000, line.room), 0) // line.value % 4
        for line in device.recording
    }
    missing = sum(times[line] == 0 and not is_closed(sink, timed, line) for line in sure)
    twice = Counter({line: each - 1 for line, each in times.items() if each})
    twice -= _twice_unreported(device)
    if len(+twice) > device.maybe_twice():
        world.trouble.append(
            f"{device.name}: {min(+twice)} counts twice, as {len(+twice)} readings do, "
            f"and it says that of at most {device.maybe_twice()}"
        )
    retired = device.name in world.operator.commands.membership.entries
    if missing > device.counted(*OUTCOMES) and not retired:
        world.trouble.append(f"{device.name}: {missing} readings are lost")
    live = live_landed(lander, plan.windows[STAMPED].stream, device.name)
    # What waited for the clock in a store may be placed once more from its older image.
    least, most = device.live, device.live + device.unsure + device.maybe_twice()
    if clones or retired or device.forgot or came_late:
        least = 0
    if not least - device.counted(*OUTCOMES) <= live <= most:
        world.trouble.append(
            f"{device.name}: {live} stamped readings landed, it read {least} to {most}"
        )


def misdated(world: World, device: VirtualDevice, sink: AnySink) -> Iterator[str]:
    """Yield the panes in which more stamped readings are than came while they lasted."""
    if world.seen.keys() & (CLOCKS - {"clock_1970"} | {"hours"}) or device.forgot:
        return  # what a wrong clock has dated is where it was; and so is what a slow message did
    window = world.plans[-1].windows[STAMPED]
    found = Counter[int]()
    for (stream, _, pane_us, name, *_), (_, (count, *_)) in sink.lander.panes.items():
        if stream == window.stream and name == device.name and isinstance(count, int):
            found[pane_us] += count
    spare_s = SPARE_S + world.scenario.faults.delay_steps
    spare_us = spare_s * SECOND_US
    for pane_us, count in found.items():
        end_us = pane_us + window.span_us + spare_us
        came = sum(pane_us - spare_us <= at_us < end_us for at_us in device.live_us)
        if count > came + device.maybe_twice():
            yield f"{device.name} has {count} stamped readings at {pane_us}, when {came} came"


def _columns(world: World, device: VirtualDevice, sink: AnySink, sure: set[RecordedLine]) -> None:
    """Demand that each line of one room landed, as it came in columns, too, and counts once."""
    window = world.plans[-1].windows[COLUMNS]
    landed = counted_lines(sink.lander, window.stream, device.name)
    twice = Counter[RecordedLine]()
    for line in {line for line in device.recording if line.room == COLUMN_ROOM}:
        twice[line] = landed.get((pane_of(COLUMNS, line), ""), 0) // line.value % 4 - 1
    twice = +twice - _twice_unreported(device)
    if len(twice) > device.maybe_twice():
        world.trouble.append(f"{device.name}: {min(twice)} counts twice, of a column")
    lost = [
        line
        for line in sure
        if line.room == COLUMN_ROOM
        and not is_closed(sink, window, line)
        and not landed.get((pane_of(COLUMNS, line), ""), 0) // line.value % 4
    ]
    retired = device.name in world.operator.commands.membership.entries
    if len(lost) > device.counted(*OUTCOMES) and not retired:
        world.trouble.append(f"{device.name}: {len(lost)} lines are lost that came in columns")


def check_own_samples(world: World, device: VirtualDevice) -> None:
    """Compare what a device folds of its samples with the last ones that it took in."""
    if device.forgot or device.uncertain or device.counted(*OUTCOMES):
        return
    taken = list(dict.fromkeys(device.order))[-BOUND:]
    (found,) = device.core.results.local()["here"].values()
    if found.partial != (len(taken), sum(line.value for line in taken)):
        world.trouble.append(f"{device.name} folds {found.partial}, and took in {taken}")


def check_shared(world: World) -> None:
    """Compare the shared counter with the number of readings that all devices took in."""
    devices = list(world.devices.values())
    if (
        not world.scenario.shared
        or world.scenario.stamped
        or any(each.forgot or each.uncertain for each in devices)
    ):
        return
    if any(device.counted(*OUTCOMES) for device in devices):
        return
    total = sum(len(set(device.order)) for device in devices)
    for device in devices:
        found = device.core.variables.shared()["total"]
        if found != total:
            world.trouble.append(f"{device.name} counts {found} readings of {total}")
    for sink in world.sinks:
        landed = sink.lander.shared["total"].value if sink.lander.keeps_all else total
        if landed != total:
            world.trouble.append(f"{sink.sink} counts {landed} readings of {total}")


def _sure_lines(world: World, device: VirtualDevice, *, came_late: bool) -> set[RecordedLine]:
    """Return the lines that were never lost with a store, nor too old for one that came late."""
    sure = set(device.recording[device.sure_from :])
    if not came_late:
        return sure
    newest_us = max([line.time_us for line in device.recording], default=0)
    oldest_us = newest_us - (world.scenario.retain_s - 20) * SECOND_US
    return {line for line in sure if line.time_us >= oldest_us}


def _twice_unreported(device: VirtualDevice) -> Counter[RecordedLine]:
    """Return of which lines nobody can say that they count twice, and how often they do."""
    found: Counter[RecordedLine] = Counter()
    for at, times in device.unreported.lost.items():
        found[device.recording[at]] = max(times, found[device.recording[at]])
    return found
