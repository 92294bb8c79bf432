"""What must hold of a window that operators change, once a world is at rest.

- each of its rows is what its readings give, each with the parameters at its own time, in each
  window that has it; and each window with a reading has a row

The readings are those that count in a window which nobody changes. Left out are windows that wait
for X, or until all have promised past them under the present entries; and whole worlds in which a
device may not know a reading any more that counts there, or a sink takes it no more.
"""

from collections.abc import Iterator

from lasp_edge.protocol.window_rows import WindowStart
from simulations.oracle import Reading, WindowTruth, windows
from simulations.world.device import VirtualDevice
from simulations.world.programs import OPERATED, TIMED
from simulations.world.sinks import AnySink
from simulations.world.truth import counted_lines, pane_of
from simulations.world.world import World


def wrong_operated(world: World) -> Iterator[str]:
    """Yield the rows that are not what the readings give under all entries."""
    scenario, commands = world.scenario, world.operator.commands
    is_sure = all(map(_knows_all, world.devices.values())) and not scenario.sinks_retain_s
    if not (scenario.operated and is_sure) or commands.membership.entries:
        return
    for sink in world.sinks:
        counted = list(_readings(world, sink))
        if any(times > 1 for _, times in counted):
            continue  # it is made again as one
        readings = [reading for reading, times in counted if times]
        right = windows(world.plans[-1], OPERATED, readings, commands.control)
        found = {
            (at.key, at.start_us): WindowTruth(rows[-1].partial, rows[-1].devices_in)
            for at, rows in sink.lander.revisions.items()
            if at.window == OPERATED and rows[-1].devices_in
        }
        core = sink.lander.core.windows
        for at in sorted(found.keys() | right.keys()):
            is_waiting = WindowStart(OPERATED, *at) in core.unfinished.waiting
            is_waiting = is_waiting or (OPERATED, at[1]) in core.held
            if found.get(at) != right.get(at) and not is_waiting:
                yield f"{sink.sink}: {at} of {OPERATED} is {found.get(at)}, not {right.get(at)}"


def _knows_all(device: VirtualDevice) -> bool:
    """Return whether a device can make panes of all readings that it ever took in."""
    if device.forgot or device.uncertain or device.is_copy:
        return False
    floor_us = device.core.intake.progress.floor_us
    return all(line.time_us >= floor_us for line in device.recording)


def _readings(world: World, sink: AnySink) -> Iterator[tuple[Reading, int]]:
    """Yield the lines of recordings, and how often each counts in a sink."""
    stream = world.plans[-1].windows[TIMED].stream
    for device in world.devices.values():
        landed = counted_lines(sink.lander, stream, device.name)
        for line in dict.fromkeys(device.recording):
            total = landed.get((pane_of(TIMED, line), line.room), 0)
            reading = Reading(device.name, "timed", line.value, line.time_us, {"room": line.room})
            yield reading, total // line.value % 4
