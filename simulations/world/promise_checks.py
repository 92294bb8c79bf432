"""What must hold of promises: whatever a device says to have landed has landed.

- a low watermark never passes what has not landed
- nor the start of an entry that has not landed, nor been refused, unless a part of it has landed
- nor what a source may still give: lines that are so little older than the last one, or than it
  would be by now where it is silent and does not hold the promise, and readings that were given and
  are not durable yet; and one that is silent for long holds no promise
- nor does the time before which an entry that grows has landed, though a promise may not show it:
  another entry that waits holds it back most often
- who has ended is done for each sink that lacks nothing, whatever another one lacks
- the progress of a source is reported as it is: a later life may have nothing else to go by
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from device_agent.agent.panes.panes import NEVER_US
from device_agent.agent.stored_rows import BEFORE_ALL, PaneId, PaneRow
from lasp_edge.ordered.cells import unpacked
from lasp_edge.protocol.fencing import SourceHigh, source_id
from lasp_edge.protocol.frames import BeatFrame
from lasp_edge.protocol.limits import EARLIEST_PANE_US
from lasp_edge.units import SECOND_US
from simulations.world.device import OUTCOMES, RecordedLine, VirtualDevice
from simulations.world.keeper import PaneKey
from simulations.world.process import STORE_ERRORS
from simulations.world.programs import COLUMN_EARLIER_US, COLUMN_ROOM, COLUMNS, RECORDED, TIMED
from simulations.world.sinks import AnySink
from simulations.world.truth import (
    LONG_S,
    PANE_US,
    came_later,
    counted_lines,
    has_closed,
    is_closed,
    key_of,
    pane_of,
    time_of,
)
from simulations.world.world import World

_RECORDED = source_id(RECORDED)
SPARE_US: Final = 3 * SECOND_US
"""Microseconds by which a silent source may follow the clock later: a process first looks at it."""
MOST_ROWS: Final = 1_000
"""Entries of a store that are looked at."""


def check_promise(world: World, device: VirtualDevice, sink: AnySink, low_us: int) -> None:
    """Hold a low watermark against what has landed in the store that it is promised to."""
    if device.clock.wrong or device.name in world.operator.commands.membership.entries:
        return
    _check_sources(world, device, low_us)
    spoken = [line for line in _known(device, sink, device.acknowledged) if line.time_us < low_us]
    lacking = _lacking(world, device, sink, spoken, TIMED)
    if world.scenario.columns:
        in_columns = [
            line
            for line in _known(device, sink, device.in_columns)
            if line.room == COLUMN_ROOM and time_of(COLUMNS, line) < low_us
        ]
        lacking |= _lacking(world, device, sink, in_columns, COLUMNS)
    if len(lacking) > device.counted(*OUTCOMES):
        world.trouble.append(f"{device.name} promises {low_us}, and {min(lacking)} is not there")


def check_highs(world: World, device: VirtualDevice, highs: Iterable[SourceHigh]) -> None:
    """Hold how far a device says that its recording has come against the lines that it took in."""
    if device.forgot or device.is_copy or not device.reached_us or device.counted(*OUTCOMES):
        return
    reported_us = max([high.high_us for high in highs if high.source == _RECORDED], default=None)
    if reported_us is None or reported_us < device.reached_us:
        world.trouble.append(
            f"{device.name} came to {device.reached_us}, and tells of {reported_us}"
        )


def check_waiting(world: World, device: VirtualDevice, sink: AnySink, low_us: int) -> None:
    """Hold a low watermark against the entries that a store has neither taken nor refused."""
    memory = device.core.panes.memory
    alone = _in_the_store_alone(device) if memory.alone and not device.disk_until else []
    for known in device.core.panes.sinks if memory.dirty or alone else ():
        if known.store != sink.lander.lake:
            continue
        for pane, row in alone:
            if row.dirty & known.bit & ~row.refused and low_us > pane.pane_us:
                world.trouble.append(f"{device.name} promises {low_us}, and {pane} is in its store")
        since = memory.unlanded.since(known.bit)
        for pane in memory.dirty:
            entry = memory.entries[pane]
            waits = entry.dirty & known.bit and not entry.refused & known.bit
            if waits and low_us > since.get(pane, pane.pane_us):
                world.trouble.append(f"{device.name} promises {low_us}, and {pane} has not landed")


def _in_the_store_alone(device: VirtualDevice) -> list[tuple[PaneId, PaneRow]]:
    """Return the entries that have not landed everywhere, and are not in memory."""
    memory, store = device.core.panes.memory, device.disk.store
    assert store is not None, "a running process has opened its store"
    unstored, rows = device.core.panes.sinks.unstored, list[tuple[PaneId, PaneRow]]()
    with suppress(*STORE_ERRORS):  # what is damaged is not to be known
        rows = store.dirty_panes(BEFORE_ALL, MOST_ROWS, refused_too=True)
    return [
        (pane, memory.answered.get(pane, unstored.applied(pane, row)))
        for pane, row in rows
        if pane not in memory.entries
    ]


def check_done(world: World, device: VirtualDevice, sink: AnySink, frame: BeatFrame) -> None:
    """Demand that a device that has ended is done for a sink that lacks nothing, and no other."""
    core, missing = device.core, device.core.missing
    memory, intake = core.panes.memory, core.intake
    waits = core.agent.clock.waiting or (missing is not None and missing.waits)
    for known in core.panes.sinks:
        if known.store != sink.lander.lake:
            continue
        dirty = [memory.entries[pane] for pane in memory.dirty]
        lacks = any(entry.dirty & known.bit & ~entry.refused for entry in dirty)
        takes_all = not any(entry.dirty & known.bit for entry in dirty)
        is_done = frame.done or known.name in frame.done_for
        if is_done and lacks:
            world.trouble.append(f"{device.name} is done for {sink.sink}, which lacks entries")
        if is_done and intake.held_since_us is not None:
            world.trouble.append(f"{device.name} is done, and readings wait for their commit")
        if intake.finished and not waits and takes_all and not memory.alone and not is_done:
            world.trouble.append(f"{device.name} has ended, and is not done for {sink.sink}")


def _check_sources(world: World, device: VirtualDevice, low_us: int) -> None:
    """Hold a low watermark against what the sources of a device may still give."""
    if world.step_number > world.scenario.steps or device.is_copy or device.clock.was_wrong:
        return
    furthest_us, late_us = device.furthest_us, device.core.agent.settings.lateness_us
    if furthest_us is not None and world.scenario.silent_s:
        furthest_us += max(0, _silent_us(world, device.came_us))  # it follows the clock
    # Nothing is older than all readings; and what it promised while a source was silent stands.
    until_us = EARLIEST_PANE_US if furthest_us is None else furthest_us - late_us
    until_us = max(until_us, device.promisable_us)
    if device.records and low_us > until_us:
        world.trouble.append(f"{device.name} promises {low_us}, and a source came to {furthest_us}")
    if device.held_us and low_us > device.held_us[0]:
        world.trouble.append(f"{device.name} promises {low_us}, and holds what came before")


def _silent_us(world: World, since_us: int) -> int:
    """Return for how long the promise of a source follows the clock that is silent since then."""
    return world.now_us - since_us - world.scenario.silent_s * SECOND_US


def check_silence(world: World, device: VirtualDevice) -> None:
    """Demand that a source that is silent for long holds no promise, where nothing else does."""
    core, furthest_us = device.core, device.furthest_us
    waits = core.panes.memory.dirty or not core.panes.cache.is_complete or core.agent.clock.waiting
    is_known = furthest_us is not None and not (device.counted(*OUTCOMES) or device.forgot)
    is_known = is_known and not core.intake.sources.finished
    if not is_known or waits or core.intake.held_since_us or device.clock.was_wrong:
        return
    silent_us = _silent_us(world, max(device.came_us, device.begun_us)) - SPARE_US
    late_us = core.agent.settings.lateness_us + SPARE_US
    for low in core.panes.lows(device.now_us(world.now_us)) if silent_us > 0 else ():
        least_us = min((furthest_us or 0) + silent_us, world.now_us) - late_us
        if low.low_us is not None and low.low_us < least_us:
            world.trouble.append(f"{device.name} promises {low.low_us}, and {furthest_us} is old")


def check_landed_since(world: World, device: VirtualDevice) -> None:
    """Hold what a device takes for landed of entries that grow against what has landed."""
    panes = device.core.panes
    memory = panes.memory
    for known in panes.sinks:
        since = memory.unlanded.since(known.bit)
        for sink in world.sinks if since else ():
            if sink.lander.lake != known.store:
                continue
            for pane, since_us in since.items():
                if since_us > pane.pane_us and pane in memory.entries:
                    _check_entry(world, device, sink, pane, since_us)


def _check_entry(
    world: World, device: VirtualDevice, sink: AnySink, pane: PaneId, since_us: int
) -> None:
    """Hold an entry of which everything before a time has landed against what has landed of it."""
    pane_us, stream, key, *_ = pane
    plan = device.core.agent.plan
    of_world = (stream, key, pane_us, device.name, pane.incarnation, pane.nonce)
    for each in plan.item_streams.values():
        if each.stream == stream and not each.outputs:
            world.trouble += _lacking_items(device, sink, pane, of_world, since_us)
    looked_at = [w for w in (TIMED, COLUMNS) if w in plan.windows]
    window = next((w for w in looked_at if plan.windows[w].stream == stream), None)
    if window is None or has_closed(sink, pane_us, plan.windows[window].size_us):
        return
    _, here = device.core.panes.memory.entries[pane].partial
    _, (_, landed) = sink.lander.panes.get(of_world, (0, (0, 0)))
    if here == landed:
        return  # as most are
    early_us = COLUMN_EARLIER_US * (window == COLUMNS)
    lacking = [
        line
        for line in device.recording
        if pane_us <= line.time_us - early_us < since_us
        and (window == TIMED or line.room == COLUMN_ROOM)
        and (pane_of(window, line), key_of(window, line)) == (pane_us // PANE_US, key)
        and here // line.value % 4 > landed // line.value % 4
    ]
    if lacking:
        world.trouble.append(f"{device.name} takes {lacking[0]} for landed, and it is not there")


def _lacking_items(
    device: VirtualDevice, sink: AnySink, pane: PaneId, of_world: PaneKey, since_us: int
) -> Iterator[str]:
    """Yield the items of a cell that are older than a time, and have not landed as they are."""
    here = device.core.panes.memory.entries[pane].partial[0]
    _, (landed,) = sink.lander.panes.get(of_world, (0, (b"",)))
    assert isinstance(here, bytes), "a cell of items"
    assert isinstance(landed, bytes), "a cell of items"
    there = unpacked(landed) if landed else {}
    for item, state in unpacked(here).items():
        if item.time_us < since_us and there.get(item, 0) < state:
            yield f"{device.name} takes {item} for landed, and it is not there"


def _known(device: VirtualDevice, sink: AnySink, after: int) -> list[RecordedLine]:
    """Return the lines before one that it has taken in, and knows of.

    What is older than a short retention may have left the device for a former store.
    """
    lines = device.recording[device.sure_from : after]
    kept_us = device.core.intake.progress.pruned_us if came_later(device, sink) else NEVER_US
    return [line for line in lines if kept_us <= line.time_us]


def _lacking(
    world: World,
    device: VirtualDevice,
    sink: AnySink,
    lines: list[RecordedLine],
    window: str,
) -> set[RecordedLine]:
    """Return those lines that are not in a sink, nor in one before it where retention is short."""
    if not lines:
        return set()
    landed: dict[tuple[int, str], int] = defaultdict(int)
    of_window = device.core.agent.plan.windows[window]
    is_short = world.scenario.retain_s < LONG_S
    for lander in (sink.lander, *(sink.former if is_short else ())):
        for at, total in counted_lines(lander, of_window.stream, device.name).items():
            landed[at] |= total
    return {
        line
        for line in lines
        if not landed[pane_of(window, line), key_of(window, line)] // line.value % 4
        and not is_closed(sink, of_window, line)
    }
