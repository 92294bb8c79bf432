"""The process of a gateway or a lander in a simulated world, around the run that is really used.

It has a link, a clock and a disk of the world's. Its power may go **between any two calls**. Then
what it had in memory is gone, and the next run finds what was durable.
"""

import sqlite3
from abc import abstractmethod
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from device_agent.gateway.core import WaitingTerms
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.checks import FrameError
from simulations.world.decoding import decoded
from simulations.world.landing import AnyLanded_co, Inbox, SinkMessage, VirtualSink
from simulations.world.power import Power, PowerLostError

_LOST = (PowerLostError, sqlite3.Error)
"""What a call raises when the power went in it."""


class SinkRun(Protocol):
    """What the runs of gateway and lander have alike."""

    def connected(self) -> None:
        """Begin to hear a broker."""

    def disconnected(self) -> None:
        """Note that nothing is heard any more."""

    def hear(self, topic: str, payload: bytes, *, retained: bool = False) -> None:
        """Take in a message."""


AnyRun = TypeVar("AnyRun", bound=SinkRun)


class SinkProcess(VirtualSink[AnyLanded_co], Generic[AnyLanded_co, AnyRun]):
    """One process with its disk, which is one sink.

    Args:
        plan: the program whose panes it takes.
        sink: the sink's name.
        name: the process's, as it answers.
        terms: for whom windows wait.
        start_us: when it begins.

    Attributes:
        power: of its machine.
    """

    def __init__(
        self, plan: Plan, sink: str, name: str, terms: WaitingTerms, start_us: int
    ) -> None:
        super().__init__(plan, sink, name, terms)
        self.power = Power()
        self._true_us = start_us
        self._run: AnyRun | None = None
        self._sent: list[SinkMessage] = []

    @abstractmethod
    def _begin(self) -> AnyRun:
        """Start a run on the disk."""

    @abstractmethod
    def _turn(self, run: AnyRun, inbox: Inbox) -> None:
        """Let the run take in what came, make it durable, and answer."""

    @abstractmethod
    def _lose_memory(self) -> None:
        """Leave of the disk what is durable."""

    def _wall_us(self) -> int:
        return self.clock.read(self._true_us)

    def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> bool:
        """Take a message of the run; return whether it left."""
        self.power.use()
        try:
            frame = decoded(payload)
        except FrameError:
            frame = None  # it is for people
        if not self.takes(frame):
            return False
        self._sent.append(SinkMessage(topic, payload, retain, frame))
        return True

    def take(self, inbox: Inbox, now_us: int) -> Iterator[SinkMessage]:
        """Let its process run once over what came in; yield what left before the power went."""
        self._true_us = now_us
        try:
            if self._run is None:
                self._run = self._begin()
            self._turn(self._run, inbox)
        except _LOST:
            self.end()
        sent, self._sent = self._sent, []
        yield from sent

    def _hear(self, run: AnyRun, inbox: Inbox) -> None:
        """Connect the run, and give it what came."""
        if not self.is_connected and self.has_broker:
            self.is_connected = True
            run.connected()
        for topic, payload, retained in inbox:
            run.hear(topic, payload, retained=retained)

    def disconnect(self) -> None:
        """Lose the connection until the next turn."""
        if self.is_connected and self._run is not None:
            self.is_connected = False
            try:
                self._run.disconnected()
            except _LOST:
                self.end()

    def end(self) -> None:
        """End the run: what it had in memory is gone."""
        self._lose_memory()
        self._run, self.is_connected, self.power.calls = None, False, None
        self.lander.listening = None
        self.ended = True
        self.unsent.clear()
        self._owed.clear()  # it may end between two frames of an answer

    def restart(self) -> None:
        self.end()
