"""Alerts on windows and results, beside what their conditions say of the oracle's final rows.

How a condition stands between its two levels depends on what came before, so there it may be on or
off; each device or sink is asked which it is.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction

from lasp_edge.folds.exactly import exact_part
from lasp_edge.folds.numbers import Resolution
from lasp_edge.language.acting import Watched
from lasp_edge.language.levels import trigger_at
from lasp_edge.language.streaming import FLEET
from simulations.oracle import Reading, rows, windows
from simulations.oracle.definitions import WindowDefinition
from simulations.world.world import World

AlertStates = dict[tuple[str, str], bool]
"""(Device, or `FLEET` for the first sink; key) -> whether the alert is on."""


def row_alerts(
    world: World,
    watched: Watched,
    readings: list[Reading],
    frontiers_us: Mapping[str, int],
    found: AlertStates,
) -> AlertStates:
    """Return which keys of an alert are to be on.

    Args:
        world: at rest.
        watched: what the alert watches.
        readings: all that count.
        frontiers_us: up to when streams are final, by device.
        found: which are on.
    """
    log, truth = world.operator.commands.control, AlertStates()
    of_window = watched.variable in world.plans[0].windows
    newest = _windows if of_window else _rows
    for device, key, at_us, number in newest(world, watched, readings, frontiers_us):
        is_of_fleet = device == FLEET
        trigger = trigger_at(watched, log, device, at_us if is_of_fleet else world.now_us)
        assert trigger is not None, "an alert has a condition"
        truth[device, key] = trigger.holds(number, fired=found.get((device, key), False))
    return truth


def _windows(
    world: World, watched: Watched, readings: list[Reading], frontiers_us: Mapping[str, int]
) -> Iterator[tuple[str, str, int, Fraction | None]]:
    """Yield sink, key, end and watched part of the newest final window of each key."""
    plan, log = world.plans[0], world.operator.commands.control
    window, final_us = plan.windows[watched.variable], world.sinks[0].lander.coverage.frontier
    definition = WindowDefinition(plan, window, log)
    newest: dict[str, tuple[int, Fraction | None]] = {}
    for (key, start_us), made in windows(plan, window.name, readings, log, frontiers_us).items():
        shape = definition.shape(start_us)
        end_us = start_us + shape.size_us
        if final_us is not None and end_us <= final_us:
            number = exact_part(shape.fold, made.partial, window.resolution, watched.part)
            newest[key] = max(newest.get(key, (end_us, number)), (end_us, number), key=_time)
    yield from ((FLEET, key, *each) for key, each in newest.items())


def _rows(
    world: World, watched: Watched, readings: list[Reading], frontiers_us: Mapping[str, int]
) -> Iterator[tuple[str, str, int, Fraction | None]]:
    """Yield device, key, time and watched part of the newest final row of each key."""
    plan = world.plans[0]
    result = plan.stream_results[watched.variable]
    at = [name for name, _ in result.parts].index(watched.part)
    step = Resolution(result.parts[at][1]).exact
    newest: dict[tuple[str, str], tuple[int, Fraction | None]] = {}
    log = world.operator.commands.control
    every = rows(plan, result.name, readings, frontiers_us, log)
    for (device, place), row in sorted(every.items(), key=lambda each: each[0][1]):
        if row.parts is not None and place[0] < frontiers_us.get(device, 0):
            newest[device, row.key] = (place[0], int(row.parts[at]) * step)
    yield from ((*of, *each) for of, each in newest.items())


def _time(found: tuple[int, Fraction | None]) -> int:
    return found[0]
