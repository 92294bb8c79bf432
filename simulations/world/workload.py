"""What devices measure: a recording that grows line by line, late, out of order and repeated."""

from random import Random

from lasp_edge.units import SECOND_US
from simulations.world.device import RecordedLine, VirtualDevice
from simulations.world.programs import COLUMN, COLUMN_EARLIER_US, COLUMN_PANE_S, COLUMN_ROOM, SLOTS
from simulations.world.truth import PANE_US

LIVE_RATE = 0.2
"""Readings in a step that a device's second source gives."""
ALONE_RATE = 0.7
"""The same where it is the only source."""
RECORD_RATE = 0.4
"""Lines in a step that a device's recording grows by."""
EARLY_STEPS = 6
"""Steps in which sources give more often: a device promises nothing before each of them has given
something, and short runs are to have more than that."""
EARLY_RATE = 0.6
"""Readings of each source in such a step."""
REPEATED = 0.1
"""Lines that stand in the recording once more."""
BEHIND_RATE, BEHIND_US = 0.15, 2_000_000
"""Lines that are a little older than the time before which the device has promised no more, and how
much older they are at most, in microseconds."""
AT_BORDER = 0.1
"""Lines of the time of the nearest border of panes, or of a microsecond before or after it."""
ROOMS = (*"aaaaabbbb", "A", "ab", "\u00e1", "a\u0301")
"""From which a line's room is drawn: some differ by case, by length and by normal form alone."""
COLUMNS_LINES = 2
"""Lines that come in place of one where there are columns. There a line is to be late for an entry
that has landed and grows: so few are late, as each late one holds back what is promised."""


def rate_at(step: int, usual: float) -> float:
    """Return how many readings a source gives in a step."""
    return EARLY_RATE if step <= EARLY_STEPS else usual


def record(device: VirtualDevice, now_us: int, random: Random, *, punctual: bool = False) -> None:
    """Let a device's recording grow by a line, or by some where there are columns."""
    if punctual:
        _add(device, now_us, random.choice(ROOMS))
        return
    for _ in range(COLUMNS_LINES if COLUMN in device.plan.events else 1):
        _record(device, now_us, random)


def _record(device: VirtualDevice, now_us: int, random: Random) -> None:
    lines = device.recording
    if lines and random.random() < REPEATED:
        lines.append(random.choice(lines))
        return
    _add(device, _drawn_time(device, now_us, random), random.choice(ROOMS))


def _add(device: VirtualDevice, time_us: int, room: str) -> None:
    """Add a line to a recording, if its room has not had too many of that time."""
    panes = {(time_us // PANE_US, room)}
    if COLUMN in device.plan.events and room == COLUMN_ROOM:
        panes.add(((time_us - COLUMN_EARLIER_US) // (COLUMN_PANE_S * SECOND_US), COLUMN))
    slot = max(device.slots.get(pane, 0) for pane in panes)
    if slot < SLOTS:
        device.slots |= dict.fromkeys(panes, slot + 1)
        device.recording.append(RecordedLine(time_us, 4**slot, room))


def _drawn_time(device: VirtualDevice, now_us: int, random: Random) -> int:
    """Return the time of the next line: often now, or late, or right behind the last promise."""
    late_us = random.choice((0, 0, 0, 1, 30)) * random.randint(0, 1_000_000)
    is_border, is_behind = random.random() < AT_BORDER, random.random() < BEHIND_RATE
    if COLUMN in device.plan.events:
        late_us, is_border = 0, False
    if is_border:
        return (now_us - late_us) // PANE_US * PANE_US + random.randint(-1, 1)
    if not is_behind or device.durable is None:
        return now_us - late_us
    return min(device.core.intake.progress.promised_us, now_us) - random.randint(1, BEHIND_US)
