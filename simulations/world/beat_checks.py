"""What must hold of a beat where it leaves: whatever it says is so, and is known to the device.

- a promise that leaves is noted before: what is read later and is older is late, whatever happens
  to the process while the link takes the beat; and it will be counted so
- what a beat says to be whole holds nothing that the device refuses as doubtful
- no promise is ahead of the clock by which the device goes, whatever its sources gave
- whoever has promised goes on to promise, as long as its clock counts
- whoever has answered at an event in order owes a beat: until then the event stays open
"""

from collections.abc import Iterator

from lasp_edge.protocol.frames import EVERY_WINDOW, BeatFrame
from lasp_edge.protocol.limits import EARLIEST_PANE_US
from simulations.world.device import VirtualDevice


def hasty(device: VirtualDevice, frame: BeatFrame) -> Iterator[str]:
    """Yield what a beat that leaves says too soon, or of too much."""
    intake = device.core.intake
    for low in frame.lows:
        if low.low_us is not None and low.low_us > intake.progress.promised_us:
            yield f"{device.name} promises {low.low_us}, and has not noted that"
        elif low.low_us is not None and low.low_us > device.core.panes.memory.unlanded.watched_us:
            yield f"{device.name} promises {low.low_us}, and counts nothing before it as late"
    yield from _ahead(device, frame)
    for stream, begun_us in frame.begun:
        if stream != EVERY_WINDOW:
            continue
        for doubt_us in intake.highs.doubts.values():
            if begun_us <= doubt_us:
                yield f"{device.name} has all from {begun_us} on, and refuses up to {doubt_us}"


def _ahead(device: VirtualDevice, frame: BeatFrame) -> Iterator[str]:
    """Yield what a beat promises ahead of the time by which the device goes."""
    core = device.core
    if core.intake.sources.finished or core.agent.clock.holds_back:
        return  # whoever has ended promises the end of a window
    time_us = core.agent.clock.time_us(core.agent.now_us)
    for low in frame.lows:
        if low.low_us is not None and low.low_us > time_us:
            yield f"{device.name} promises {low.low_us}, and its clock says {time_us}"


def ceased(device: VirtualDevice, frame: BeatFrame) -> Iterator[str]:
    """Yield the sinks to which a beat promises nothing, though the device has promised before."""
    core = device.core
    # Who begins promises the time before all readings, and nothing where none comes.
    if core.intake.progress.promised_us <= EARLIEST_PANE_US or core.agent.clock.holds_back:
        return
    if core.panes.cache.is_complete and any(low.low_us is None for low in frame.lows):
        yield f"{device.name} promises nothing, and had promised {core.intake.progress.promised_us}"


def unowed(device: VirtualDevice, now_us: int) -> Iterator[str]:
    """Yield that a device has answered at an event in order, and owes no beat after that."""
    core, shares = device.core, device.core.shares
    if shares is None:
        return
    beats, promised_us = shares._owed  # noqa: SLF001 - as of the last answer
    if beats != core.agent.beats:
        return
    for low in core.panes.lows(device.now_us(now_us)):
        at_us = low.low_us  # of the last beat, too
        if at_us is not None and at_us >= promised_us and not shares.is_owed(beats, at_us, at_us):
            yield f"{device.name} has answered, and owes no beat that promises {at_us}"
