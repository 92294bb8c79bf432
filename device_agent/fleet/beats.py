"""Beats and presence: what a device periodically says of itself.

A beat says what the device holds of each variable, and up to when its readings are complete. It is
sent when it says something new, and else one in five times. Presence is retained: it says that
the device is connected; the broker says as its Last Will that it is not any more.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from device_agent.agent import Agent
from device_agent.fleet.exchange import Exchange
from device_agent.fleet.fence import Fence
from device_agent.intake.intake import Intake
from device_agent.panes.delivery import PaneDelivery
from device_agent.panes.panes import NEVER_US
from device_agent.parts import Handler, Part, Publication
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import BeatFrame, PresenceFrame

IDLE_BEATS = 5
"""One of this many unchanged beats is sent: an idle device sends a fifth of the bytes."""


class Beats(Part):
    """Publishes this device's presence and beats.

    Args:
        agent: what all parts share.
        exchange: the variables that a beat reports, and when a beat is due.
        intake: tells how far the sources are.
        panes: tells what has landed.
        fence: tells how far the sources have come, for all who may be asked one day.
    """

    name = "beats"

    def __init__(
        self,
        agent: Agent,
        exchange: Exchange,
        intake: Intake,
        panes: PaneDelivery,
        fence: Fence,
    ) -> None:
        self._agent = agent
        self._exchange = exchange
        self._intake = intake
        self._panes = panes
        self._fence = fence
        self._last: BeatFrame | None = None
        self._announced = False
        self._beats = self._presences = self._unchanged = 0

    @property
    def handlers(self) -> Mapping[type[Frame], Handler]:
        return {PresenceFrame: self._contradict}

    def _contradict(self, frame: PresenceFrame, _now_us: int) -> None:
        """Say that this device is connected where a late Last Will says that it is not."""
        sender, me = frame.sender, self._agent.replica
        if sender.device == me.device and sender <= me and not frame.online:
            self._say_again()

    def connected(self, _now_us: int) -> None:
        self._say_again()

    def _say_again(self) -> None:
        self._last, self._announced = None, False

    def succeed(self) -> None:
        self._say_again()
        self._beats = 0

    def publications(self, now_us: int) -> Iterator[Publication]:
        if not self._exchange.beat_due:
            return
        number, beat = self._beats + 1, self._beat(now_us)
        if not self._announced:
            yield self.presence(online=True)
            self._announced = True  # the link took it, or else it asked for no more
        same = self._last is not None and replace(self._last, number=number) == beat
        unchanged = self._unchanged + 1 if same else 0
        if unchanged % IDLE_BEATS == 0:
            yield Publication.of(beat, self._agent.topics)
            self._last, self._beats = beat, number
        self._unchanged = unchanged

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

    def _beat(self, now_us: int) -> BeatFrame:
        """Return the next beat; readings behind its low watermark are late from now on."""
        low_us, progress = self.low_us(now_us), self._intake.progress
        if low_us is not None:
            progress.promised_us = max(progress.promised_us, low_us)
        reports, seq = self._exchange.reports(), self._panes.memory.seq
        highs = self._fence.told_highs()
        number, said = self._beats + 1, (low_us, self.done, reports, seq)
        return BeatFrame(self._agent.replica, number, *said, highs=highs)

    def presence(self, *, online: bool) -> Publication:
        """Return what says whether this device is connected."""
        self._presences += 1
        frame = PresenceFrame(self._agent.replica, self._presences, online)
        return Publication.of(frame, self._agent.topics)
