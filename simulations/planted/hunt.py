"""The hunt: seeds are run under a planted bug until one fails that does not fail without it.

>>> from simulations.planted.bug import BUGS
>>> from simulations.planted.of_delivery import the_lander_adds_what_comes_twice
>>> caught = hunt(BUGS[the_lander_adds_what_comes_twice.__name__], range(40))
>>> caught is not None and "committed again" in caught.trouble
True
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

from simulations import (
    alerted,
    control,
    healing,
    lake_landed,
    lake_landers,
    lake_order,
    lake_parted,
    left_traces,
    tentative,
)
from simulations.planted import (
    of_acting,
    of_answers,
    of_clocks,
    of_connections,
    of_control,
    of_delivery,
    of_fleet_order,
    of_healing,
    of_lake_landed,
    of_lake_landers,
    of_lake_order,
    of_leaving,
    of_left_traces,
    of_lives,
    of_parted,
    of_promises,
    of_row_alerts,
    of_scans,
    of_sinks,
    of_the_fleet,
    of_the_gateway,
    of_the_store,
    of_values,
    of_waiting,
    of_windows,
)
from simulations.planted.bug import USES, PlantedBug, unused
from simulations.world.faults import KINDS
from simulations.world.run import run
from simulations.world.scenario import scenario_of

SEEDS = 1_000
"""A planted bug that this many seeds do not find is not found."""
ROOMS = (
    *(of_the_store, of_delivery, of_the_fleet, of_acting, of_scans),
    *(of_windows, of_waiting, of_control, of_lives, of_promises, of_the_gateway, of_sinks),
    *(of_fleet_order, of_parted, of_lake_order, of_connections, of_row_alerts, of_leaving),
    *(of_answers, of_clocks, of_lake_landed, of_lake_landers),
    *(of_left_traces, of_healing, of_values),
)
"""The modules that fill the table of bugs."""


class Caught(NamedTuple):
    """How a planted bug was found.

    Attributes:
        unused: what it replaces, and was not used until then.
    """

    seed: int
    trouble: str
    unused: tuple[str, ...] = ()


@contextmanager
def _nothing() -> Iterator[None]:
    yield


CANARY = PlantedBug("canary", "Nothing is wrong, so nothing may be found.", _nothing)
"""A harness that finds it would find anything."""


def hunt(
    bug: PlantedBug, seeds: Iterable[int], kinds: tuple[str, ...] = tuple(KINDS)
) -> Caught | None:
    """Return the first seed that fails under a bug, and only under it; None if no seed does."""
    USES.clear()
    trouble = _trouble_of(bug.needs, kinds)
    for seed in seeds:
        with bug.plant():
            found = trouble(seed)
        if found and _holds(bug.needs, kinds, seed):
            return Caught(seed, found[0], tuple(unused()))
    return None


_LAWS: dict[str, Callable[[int], Sequence[str]]] = {
    of_waiting.LAW: lambda seed: tentative.troubles(tentative.draw_of(seed)),
    of_parted.LAW: of_parted.troubles,
    of_healing.LAW: healing.troubles,
    of_lake_landed.LAW: lake_landed.troubles,
    of_lake_landers.LAW: lake_landers.troubles,
    of_lake_order.LAW: lake_order.troubles,
    of_lake_order.BESIDE_LAW: lake_parted.troubles,
    of_left_traces.LAW: left_traces.troubles,
    of_row_alerts.LAW: alerted.troubles,
    of_control.LAW: lambda seed: control.troubles(seed, devices=4, steps=120),
}
"""What bugs break that need no world: gives the troubles of a seed."""


def _trouble_of(needs: str, kinds: tuple[str, ...]) -> Callable[[int], Sequence[str]]:
    """Return what gives the troubles of a seed; none where a bug with these needs cannot matter."""

    def trouble(seed: int) -> Sequence[str]:
        scenario = scenario_of(seed, kinds)
        is_needed = not needs or getattr(scenario, needs)
        return run(scenario).trouble if is_needed else ()

    return _LAWS.get(needs, trouble)


@cache
def _holds(needs: str, kinds: tuple[str, ...], seed: int) -> bool:
    """Return whether a seed has no trouble of its own: the same answer for all bugs that it has."""
    return not _trouble_of(needs, kinds)(seed)
