"""What devices measure: a recording that grows line by line, late, out of order and repeated."""

from random import Random

from simulations.world.device import RecordedLine, VirtualDevice
from simulations.world.programs import SLOTS

LIVE_RATE = 0.2
"""Readings in a step that a device's second source gives."""
RECORD_RATE = 0.4
"""Lines in a step that a device's recording grows by."""
REPEATED = 0.1
"""Lines that stand in the recording once more."""
PANE_US = 10_000_000
"""The span of the panes whose readings must be told apart."""


def record(device: VirtualDevice, now_us: int, random: Random) -> None:
    """Let a device's recording grow, most often by nothing."""
    if random.random() >= RECORD_RATE:
        return
    lines = device.recording
    if lines and random.random() < REPEATED:
        lines.append(random.choice(lines))
        return
    late_us = random.choice((0, 0, 0, 1, 30)) * random.randint(0, 1_000_000)
    time_us, room = now_us - late_us, random.choice("ab")
    slot = device.slots.get((time_us // PANE_US, room), 0)
    if slot < SLOTS:
        device.slots[time_us // PANE_US, room] = slot + 1
        lines.append(RecordedLine(time_us, 4**slot, room))
