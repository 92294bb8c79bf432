"""What must hold of readings that a lost life of a device had taken in, and that landed nowhere.

- a window that is final names the device whose readings it lacks, as far as the device knows that
  another life of it had come: up to there its readings are doubtful; unless it was final before the
  device had promised the sink anything
- the stretch in which a sink names it begins where its lives before had promised, or earlier
"""

from collections.abc import Iterator

from crdts.frontier import BOTTOM_US
from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.protocol.window_rows import FleetRow
from simulations.world.device import RecordedLine, VirtualDevice
from simulations.world.landed import LandedState
from simulations.world.programs import TIMED
from simulations.world.sinks import AnySink
from simulations.world.truth import counted_lines
from simulations.world.world import World


def unnamed(world: World, device: VirtualDevice, sink: AnySink) -> Iterator[str]:
    """Yield the final windows that lack lines of a device, and do not name it."""
    since_us, _ = sink.lander.lost.get(device.name, (BOTTOM_US, BOTTOM_US))
    if since_us > sink.lander.kept.earlier_us(device.name):
        yield f"{sink.sink} takes what {device.name} promises for what its lost store had promised"
    doubt_us = device.core.intake.highs.furthest_doubt_us()
    is_apart = _is_apart(world, device.name, sink)
    if doubt_us is None or is_apart or world.scenario.silent_s or sink.former:
        return  # a new store may have passed windows before it heard of the device
    if doubt_us < device.core.intake.progress.floor_us:
        return
    lander, timed = sink.lander, world.plans[-1].windows[TIMED]
    landed = counted_lines(lander, timed.stream, device.name)
    frontier_us = lander.coverage.frontier
    lacking = [line for line in _lost(device, doubt_us, landed) if frontier_us is not None]
    for at, rows in lander.revisions.items() if lacking else ():
        if at.window != TIMED or not _is_to_name(lander, rows[-1], device.name):
            continue
        for line in lacking:
            if line.room == at.key and at.start_us <= line.time_us < rows[-1].end_us:
                yield f"{at} lacks {line} of {device.name}, and does not name it"


def _is_to_name(lander: LandedState, row: FleetRow, device: str) -> bool:
    """Return whether a row is final, does not name a device, and was not final before it was known.

    A sink knows a device when it has promised it something.
    """
    if row.status == TENTATIVE or device in row.excluded:
        return False
    earlier = lander.kept.state.earlier.get(device)
    return earlier is None or row.end_us > earlier.unknown_us


def _is_apart(world: World, device: str, sink: AnySink) -> bool:
    """Return whether windows may be without a device: it was retired, or is not in the roster."""
    roster = sink.terms.roster
    is_listed = roster is None or device in roster
    return not is_listed or device in world.operator.commands.membership.entries


def _lost(
    device: VirtualDevice, doubt_us: int, landed: dict[tuple[int, str], int]
) -> Iterator[RecordedLine]:
    """Yield the lines up to a time that some life took in on time, and that have not landed."""
    late_us, furthest_us = device.core.agent.settings.lateness_us, -(2**62)
    for number, line in enumerate(device.recording):
        is_late = line.time_us < furthest_us - late_us  # it may be behind a promise
        furthest_us = max(furthest_us, line.time_us)
        total = landed.get((line.time_us // 10_000_000, line.room), 0)
        is_lost = number in device.unreported.taken and not total // line.value % 4
        if is_lost and line.time_us <= doubt_us and not is_late:
            yield line
