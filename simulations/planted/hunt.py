"""The hunt: seeds are run under a planted bug until one fails that does not fail without it.

>>> from simulations.planted.bug import BUGS
>>> from simulations.planted.of_delivery import the_lander_adds_what_comes_twice
>>> caught = hunt(BUGS[the_lander_adds_what_comes_twice.__name__], range(40))
>>> caught is not None and "counts twice" in caught.trouble
True
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from simulations.planted import (
    of_acting,
    of_delivery,
    of_omission,
    of_scans,
    of_the_fleet,
    of_the_store,
    of_windows,
)
from simulations.planted.bug import PlantedBug
from simulations.world.faults import KINDS
from simulations.world.run import run
from simulations.world.scenario import scenario_of

SEEDS = 1_000
"""A planted bug that this many seeds do not find is not found."""
ROOMS = (of_the_store, of_delivery, of_the_fleet, of_omission, of_acting, of_scans, of_windows)
"""The modules that fill the table of bugs."""


class Caught(NamedTuple):
    """How a planted bug was found."""

    seed: int
    trouble: str


@contextmanager
def _nothing() -> Iterator[None]:
    yield


CANARY = PlantedBug("canary", "Nothing is wrong, so nothing may be found.", _nothing)
"""A harness that finds it would find anything."""


def hunt(
    bug: PlantedBug, seeds: Iterable[int], kinds: tuple[str, ...] = tuple(KINDS)
) -> Caught | None:
    """Return the first seed that fails under a bug, and only under it; None if no seed does."""
    for seed in seeds:
        scenario = scenario_of(seed, kinds)
        if bug.needs and not getattr(scenario, bug.needs):
            continue
        with bug.plant():
            found = run(scenario)
        if found.trouble and not run(scenario).trouble:
            return Caught(seed, found.trouble[0])
    return None
