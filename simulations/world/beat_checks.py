"""What must hold of a beat where it leaves: whatever it says is so, and is known to the device.

- a promise that leaves is noted before: what is read later and is older is late, whatever happens
  to the process while the link takes the beat; and it will be counted so
- what a beat says to be whole holds nothing that the device refuses as doubtful
"""

from collections.abc import Iterator

from lasp_edge.protocol.frames import EVERY_WINDOW, BeatFrame
from simulations.world.device import VirtualDevice


def hasty(device: VirtualDevice, frame: BeatFrame) -> Iterator[str]:
    """Yield what a beat that leaves says too soon, or of too much."""
    intake = device.core.intake
    for low in frame.lows:
        if low.low_us is not None and low.low_us > intake.progress.promised_us:
            yield f"{device.name} promises {low.low_us}, and has not noted that"
        elif low.low_us is not None and low.low_us > device.core.panes.memory.unlanded.watched_us:
            yield f"{device.name} promises {low.low_us}, and counts nothing before it as late"
    for stream, begun_us in frame.begun:
        if stream != EVERY_WINDOW:
            continue
        for doubt_us in intake.highs.doubts.values():
            if begun_us <= doubt_us:
                yield f"{device.name} has all from {begun_us} on, and refuses up to {doubt_us}"
