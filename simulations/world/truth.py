"""What has landed of one device, reading by reading; see `programs` for how totals tell it."""

from collections import defaultdict

from device_agent.agent.panes.sinks import FORGOTTEN
from lasp_edge.folds.columns import Partial
from lasp_edge.language.declarations import Window
from lasp_edge.units import SECOND_US
from simulations.world.device import RecordedLine, VirtualDevice
from simulations.world.landed import LandedState
from simulations.world.programs import COLUMN_EARLIER_US, COLUMN_PANE_S, COLUMNS
from simulations.world.sinks import AnySink

PANE_US = 10_000_000
"""The span of the panes whose readings must be distinguished."""
LONG_S = 3_600
"""Seconds of retention that no run passes."""


def counted_lines(lander: LandedState, stream: int, device: str) -> dict[tuple[int, str], int]:
    """Return (pane, room) -> total over all replicas: each digit in base four is one reading."""
    found: dict[tuple[int, str], int] = defaultdict(int)
    for at, (_, partial) in lander.panes.items():  # of each beat, and of each sink
        if at[0] == stream and at[3] == device:
            total = partial[1]
            assert isinstance(total, int)
            found[at[2] // PANE_US, at[1]] += total
    return found


def key_of(window: str, line: RecordedLine) -> str:
    """Return the key of a line in a window: readings that come in columns have none."""
    return "" if window == COLUMNS else line.room


def time_of(window: str, line: RecordedLine) -> int:
    """Return the time of a line in a window."""
    return line.time_us - COLUMN_EARLIER_US * (window == COLUMNS)


def pane_of(window: str, line: RecordedLine) -> int:
    """Return the number of a line's pane in a window, as `counted_lines` gives it."""
    pane_s = COLUMN_PANE_S if window == COLUMNS else 10
    return time_of(window, line) // (pane_s * SECOND_US) * (pane_s // 10)


def has_closed(sink: AnySink, pane_us: int, size_us: int) -> bool:
    """Return whether a sink takes nothing more into a pane of a window: it may lack some of it."""
    frontier_us = sink.lander.coverage.frontier
    return frontier_us is not None and pane_us < frontier_us - sink.terms.retain_us - size_us


def is_closed(sink: AnySink, window: Window, line: RecordedLine) -> bool:
    """Return whether a sink takes nothing more into the pane of a line: it may lack the line."""
    return has_closed(sink, pane_of(window.name, line) * PANE_US, window.size_us)


def live_landed(lander: LandedState, stream: int, device: str) -> int:
    """Return how many readings of the second source have landed."""
    counts = [
        partial[0]
        for (of, _, _, name, *_), (_, partial) in lander.panes.items()
        if of == stream and name == device
    ]
    return sum(count for count in counts if isinstance(count, int))


def landed_partials(
    lander: LandedState, window: Window, stream: int, device: str
) -> dict[tuple[int, str], Partial]:
    """Return (pane start, key) -> what has landed of a device in panes of a window's stream."""
    found: dict[tuple[int, str], Partial] = {}
    for (of, key, pane_us, name, *_), (_, partial) in lander.panes.items():
        if of == stream and name == device:
            before = found.get((pane_us, key), window.fold.zero)
            found[pane_us, key] = window.fold.combine(before, partial)
    return {at: partial for at, partial in found.items() if any(partial)}


def came_later(device: VirtualDevice, sink: AnySink) -> bool:
    """Return whether a device heard another sink before this one, or had forgotten this one.

    What is older than the retention may have left the device by then, for that one had it.
    """
    first, *_ = device.core.panes.sinks
    return first.name != sink.sink or bool(device.counted(FORGOTTEN.format(sink.sink)))
