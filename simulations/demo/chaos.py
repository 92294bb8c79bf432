"""Seeded accidents: devices that are killed or cut off at random moments.

>>> accidents = accidents_of(7, ["a", "b"])
>>> next(accidents) == next(accidents_of(7, ["a", "b"]))
True
"""

import random
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

LARGEST_SEED = 2**32


class Kind(StrEnum):
    """What happens to the device."""

    KILL = "killed"
    CUT = "cut off"


class Accident(NamedTuple):
    """One accident.

    Attributes:
        after_s: how long after the one before.
        device: whom it happens to.
        kind: what happens.
        lasts_s: how long until the device is started or let in again.
    """

    after_s: float
    device: str
    kind: Kind
    lasts_s: float


def accidents_of(seed: int, devices: Sequence[str]) -> Iterator[Accident]:
    """Yield accidents without end, the same ones for the same seed and devices."""
    chance = random.Random(seed)
    while True:
        device, kind = chance.choice(devices), chance.choice(list(Kind))
        yield Accident(chance.uniform(0.5, 2.5), device, kind, chance.uniform(0.2, 3.0))


def new_seed() -> int:
    """Return a seed that differs from run to run."""
    return random.SystemRandom().randrange(LARGEST_SEED)
