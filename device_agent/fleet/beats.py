"""Beats and presence: what a device periodically says of itself.

A beat says what the device holds of each variable, and up to when its readings are complete. It is
sent when it says something new, and else one in five times. Presence is retained: it says that
the device is connected; the broker says as its Last Will that it is not any more.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from crdts import Replica
from device_agent.fleet.exchange import Exchange
from device_agent.fleet.schedule import Schedule
from device_agent.parts import Handler, Part, Publication
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import BeatFrame, PresenceFrame
from lasp_edge.protocol.topics import Topics

IDLE_BEATS = 5
"""One of this many unchanged beats is sent: an idle device sends a fifth of the bytes."""


class OwnPromise(NamedTuple):
    """What a beat says of the device's readings, see `BeatFrame`."""

    low_us: int | None
    done: bool
    seq: int


class Beats(Part):
    """Publishes this device's presence and beats.

    Args:
        replica: this device's replica.
        topics: where they are published.
        schedule: when.
        exchange: the variables that a beat reports.
        promise: gives what the device may promise at a time.
    """

    name = "beats"

    def __init__(
        self,
        replica: Replica,
        topics: Topics,
        schedule: Schedule,
        exchange: Exchange,
        promise: Callable[[int], OwnPromise],
    ) -> None:
        self._replica = replica
        self._topics = topics
        self._schedule = schedule
        self._exchange = exchange
        self._promise = promise
        self._last: BeatFrame | None = None
        self._announced = False
        self._beats = self._presences = self._unchanged = 0

    @property
    def handlers(self) -> Mapping[type[Frame], Handler]:
        return {PresenceFrame: self._contradict}

    def _contradict(self, frame: PresenceFrame, _now_us: int) -> None:
        """Say that this device is connected where a late Last Will says that it is not."""
        sender = frame.sender
        if sender.device == self._replica.device and sender <= self._replica and not frame.online:
            self._say_again()

    def connected(self, _now_us: int) -> None:
        self._say_again()

    def _say_again(self) -> None:
        self._last, self._announced = None, False

    def become(self, replica: Replica) -> None:
        self._replica = replica
        self._say_again()
        self._beats = 0

    def publications(self, now_us: int) -> Iterator[Publication]:
        if not self._schedule.beat_due:
            return
        low_us, done, seq = self._promise(now_us)
        number, reports = self._beats + 1, self._exchange.reports()
        beat = BeatFrame(self._replica, number, low_us, done, reports, seq)
        if not self._announced:
            yield self.presence(online=True)
            self._announced = True  # the link took it, or else it asked for no more
        same = self._last is not None and replace(self._last, number=number) == beat
        unchanged = self._unchanged + 1 if same else 0
        if unchanged % IDLE_BEATS == 0:
            yield Publication.of(beat, self._topics)
            self._last, self._beats = beat, number
        self._unchanged = unchanged

    def presence(self, *, online: bool) -> Publication:
        """Return what says whether this device is connected."""
        self._presences += 1
        frame = PresenceFrame(self._replica, self._presences, online)
        return Publication.of(frame, self._topics)
