"""How complete a device's readings are: its low watermark, and whether it is done."""

from device_agent.fleet.beats import OwnPromise
from device_agent.intake.intake import Intake
from device_agent.state.delivery import PaneDelivery
from device_agent.state.panes import NEVER_US


class Completeness:
    """What a device may promise of its readings.

    Args:
        intake: tells how far the sources are.
        panes: tells what has landed.
    """

    __slots__ = ("_intake", "_panes")

    def __init__(self, intake: Intake, panes: PaneDelivery) -> None:
        self._intake = intake
        self._panes = panes

    @property
    def done(self) -> bool:
        """Whether nothing more will be read and everything has landed."""
        return self._intake.sources.finished and self._panes.cache.all_landed

    def low_us(self, now_us: int) -> int | None:
        """Return the time before which nothing more will come, None while that is unknown.

        It is at most the start of the oldest pane that has not landed, here or in the store, so it
        goes back where a late reading came or another lake must be filled.
        """
        low_us, oldest_us = self._intake.low_us(now_us), self._panes.cache.oldest_dirty_us()
        if low_us is None or oldest_us == NEVER_US:
            return None
        return low_us if oldest_us is None else min(low_us, oldest_us)

    def promise(self, now_us: int) -> OwnPromise:
        """Return what a beat says; readings behind its low watermark are late from now on."""
        low_us, progress = self.low_us(now_us), self._intake.progress
        if low_us is not None:
            progress.promised_us = max(progress.promised_us, low_us)
        return OwnPromise(low_us, self.done, self._panes.memory.seq)
