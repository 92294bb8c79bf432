"""Links: messages on their way between devices, the broker and a lander, with the faults of a leg.

A message to many receivers is one parcel, as long as nothing disturbs it; then each goes alone.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from random import Random
from typing import Final, NamedTuple

from simulations.world.broker import Receivers
from simulations.world.faults import CALM, FaultRates


class LegMessage(NamedTuple):
    """A message on one leg.

    Attributes:
        to: keys of devices, or of sinks; empty for the broker.
    """

    to: tuple[str, ...]
    topic: str
    payload: bytes
    retain: bool = False


TO_BROKER: Final = ()


class Addresses:
    """The keys of the devices in a world: messages to the same of them share one tuple.

    Attributes:
        everybody: all of them.
        of: name -> the keys of the devices that are called so.
    """

    def __init__(self) -> None:
        self.everybody: tuple[str, ...] = ()
        self.of: dict[str, tuple[str, ...]] = {}

    def hearing(self, to: Receivers, *, apart: bool) -> tuple[str, ...]:
        """Return the keys of the devices that hear something.

        Args:
            to: whom it is for.
            apart: devices do not hear each other.
        """
        if to.device:
            return self.of.get(to.device, ())  # it may be a lander's name
        return self.everybody if to.everybody and (to.itself or not apart) else ()

    def note(self, names: Mapping[str, str]) -> None:
        """Take which devices there are: key -> name."""
        self.everybody, self.of = tuple(names), {}
        for key, name in names.items():
            self.of[name] = (*self.of.get(name, ()), key)


class Links:
    """Messages in flight, by the step in which they arrive.

    Args:
        random: what is lost, doubled and late is drawn from it.
        faults: what disturbs messages.
        seen: counts what befell them.

    Attributes:
        faults: see there.
    """

    def __init__(self, random: Random, faults: FaultRates, seen: Counter[str]) -> None:
        self._random, self.faults, self._seen = random, faults, seen
        self._disturbs = faults.disturbs_messages
        self._step = 1
        self._flying: dict[int, list[LegMessage]] = defaultdict(list)

    def send(self, parcel: LegMessage) -> None:
        """Put a message on a leg, where each copy may be lost, doubled and delayed."""
        if not self._disturbs:
            self._flying[self._step].append(parcel)
            return
        if len(parcel.to) < 2:  # noqa: PLR2004
            self._disturb(parcel)
            return
        _, topic, payload, retain = parcel
        for to in parcel.to:
            self._disturb(LegMessage((to,), topic, payload, retain))

    def _disturb(self, parcel: LegMessage) -> None:
        draw, faults = self._random.random, self.faults
        if draw() < faults.loss:
            self._seen["loss"] += 1
            return
        copies = 1 + (draw() < faults.doubled)
        self._seen["doubled"] += copies - 1
        for _ in range(copies):
            late = 0
            if draw() < faults.delayed:
                late = self._random.randint(1, faults.delay_steps)
                self._seen["delayed"] += 1
            self._flying[self._step + late].append(parcel)

    def arriving(self) -> list[LegMessage]:
        """Return what arrives in this step; what is sent meanwhile may be added to it."""
        return self._flying[self._step]

    def arrived(self) -> None:
        """End the step: what is sent from now on, even before the next one, arrives in that."""
        del self._flying[self._step]
        self._step += 1

    def drop(self) -> None:
        """Lose what is on its way."""
        self._flying.clear()

    def calm(self) -> None:
        """Disturb no message from now on; what is late stays late."""
        self.faults, self._disturbs = CALM, False
