"""The network: messages in flight between the devices and the broker, with the faults of a leg."""

import heapq
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from simulations.fleet.faults import Faults


class Parcel(NamedTuple):
    """A message on one leg.

    Attributes:
        to: the device that it goes to; "" for the broker.
        retain: the broker is to keep it.
    """

    to: str
    topic: str
    payload: bytes
    retain: bool = False


class SimulatedNetwork:
    """Messages in flight, in the order of their arrival."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._flying: list[tuple[int, int, Parcel]] = []
        self._sent = 0

    def send(self, message: Parcel, now_us: int, faults: Faults) -> None:
        """Put a message on one leg, where it may be lost, doubled and delayed."""
        if self._random.random() < faults.loss:
            return
        copies = 1 + (self._random.random() < faults.doubled)
        for _ in range(copies):
            arrives_us = now_us + self._random.randint(0, faults.delay_us)
            self._sent += 1
            heapq.heappush(self._flying, (arrives_us, self._sent, message))

    def arrivals(self, now_us: int) -> Iterator[Parcel]:
        """Yield what has arrived by now; what is sent meanwhile may arrive too."""
        while self._flying and self._flying[0][0] <= now_us:
            yield heapq.heappop(self._flying)[2]

    def clear(self) -> None:
        """Lose everything in flight."""
        self._flying.clear()
