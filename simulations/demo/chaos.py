"""Seeded accidents: devices that are killed or cut off, and a cloud job that is killed.

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
    """What happens."""

    KILL = "killed"
    CUT_OFF = "cut off"
    KILL_CLOUD = "the cloud job is killed"


_WEIGHTS = {Kind.KILL: 4, Kind.CUT_OFF: 4, Kind.KILL_CLOUD: 1}  # a cloud job takes long to start


class Accident(NamedTuple):
    """One accident.

    Attributes:
        after_s: how long after the one before.
        device: whom it happens to; of no meaning where it happens to the cloud job.
        kind: what happens.
        lasts_s: how long until what was killed is started again, or who was cut off is let in.
    """

    after_s: float
    device: str
    kind: Kind
    lasts_s: float


def accidents_of(seed: int, devices: Sequence[str]) -> Iterator[Accident]:
    """Yield accidents without end, the same ones for the same seed and devices."""
    chance = random.Random(seed)
    while True:
        (kind,) = chance.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
        yield Accident(
            chance.uniform(0.5, 2.5), chance.choice(devices), kind, chance.uniform(0.2, 3.0)
        )


def new_seed() -> int:
    """Return a seed that differs from run to run."""
    return random.SystemRandom().randrange(LARGEST_SEED)
