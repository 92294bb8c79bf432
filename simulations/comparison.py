"""All that a fleet computed, beside the oracle: windows, rows, values, alerts, shared variables.

The fleet is at rest, and the readings are those that its devices have stored. What the oracle has
no definition for is not compared, and the comparison says so.

    >>> from lasp_edge.examples.greenhouse import program
    >>> from simulations.fleet import Fleet
    >>> from simulations.oracle import Reading
    >>> fleet = Fleet(program.plan(), size=1, seed=7)
    >>> fleet.read("pi-0", "temperature", 21.5, {"room": "attic"}, fleet.now_us)
    >>> readings = [Reading("pi-0", "temperature", 21.5, fleet.now_us, {"room": "attic"})]
    >>> fleet.settle()
    >>> found = compare(fleet.world, readings)
    >>> found.known["window temperature_by_room"], +found.differing, found.not_compared
    (6, Counter(), [])
    >>> fleet.close()
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from typing import Any

from crdts import BoundedLWWSet
from lasp_edge.folds.exactly import exact_part
from lasp_edge.language.acting import Watched
from lasp_edge.language.declarations import DynamicFold, LocalFold
from lasp_edge.language.halves import parted_scans
from lasp_edge.language.levels import trigger_at
from lasp_edge.language.plan import Plan
from lasp_edge.language.raising import fleet_alerts
from lasp_edge.language.streaming import FLEET, graph_of, plain_parts
from lasp_edge.ordered.oracle import outputs_of
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.sent_rows import SentRow
from lasp_edge.tool.times import shown_time
from lasp_edge.units import SECOND_US
from simulations.oracle import Reading, dynamic_partials, emptied, local_partials, rows, windows
from simulations.row_alerts import row_alerts
from simulations.shared_contents import shared_contents
from simulations.world.device import VirtualDevice
from simulations.world.fleet_items import content_of_items, landed_items
from simulations.world.fleet_outputs import content_of_outputs, landed_outputs
from simulations.world.world import World

KINDS = {
    "window": "windows",
    "result": "rows",
    "value": "values",
    "alert": "alerts",
    "shared": "parts of shared variables",
}
"""Kind of what is compared -> what it consists of, for people."""
_WAITS_S = 40
"""Seconds for which a fleet at rest with alerts is watched on: after a start devices wait half a
minute before they act on values."""
_HOLDS_S = 120
"""Seconds for which a condition is waited for that has to hold for a time, at most."""


def watched_on_s(plan: Plan) -> int:
    """Return for how many seconds a fleet at rest is watched on, until alerts have turned."""
    triggers = [each.trigger for each in plan.alerts.values() if each.trigger is not None]
    holds_s = [-(-each.for_us // SECOND_US) for each in triggers]
    waits_s = max((each for each in holds_s if each <= _HOLDS_S), default=0)
    return _WAITS_S + waits_s if plan.alerts else 0


@dataclass
class Comparison:
    """How much of a fleet's results is what the oracle says.

    Attributes:
        known: what is compared -> of how many windows, rows, values or alerts it consists.
        differing: what is compared -> how many of them are not what the oracle says.
        examples: what is compared -> the first that differs: where, the fleet's, the oracle's.
        not_compared: what the program has and nobody compared, and why.
        of_landed: what is compared with the oracle of the readings that landed, for others may be
            lost: nothing excuses a difference.
    """

    known: Counter[str] = field(default_factory=Counter)
    differing: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    not_compared: list[str] = field(default_factory=list)
    of_landed: set[str] = field(default_factory=set)

    @property
    def is_empty(self) -> bool:
        """Whether there was something to compare, and nothing of it agrees: all is excused."""
        return bool(self.known) and self.known.total() == self.differing.total()

    def add(self, what: str, found: Mapping[Any, Any], truth: Mapping[Any, Any]) -> None:
        """Compare what the fleet has of something with the oracle's."""
        places = {*found, *truth}
        different = [at for at in places if found.get(at) != truth.get(at)]
        self.known[what] += len(places)
        if different:
            at = min(different, key=repr)
            self.differing[what] += len(different)
            has, says = _shown(found.get(at)), _shown(truth.get(at))
            self.examples.setdefault(what, f"{_where(at)}: the fleet has {has}, the oracle {says}")

    def of(self, kind: str) -> tuple[int, int]:
        """Return how many of one kind there are, and how many of them differ."""
        several = [what for what in self.known if what.startswith(f"{kind} ")]
        return sum(self.known[each] for each in several), sum(
            self.differing[each] for each in several
        )

    def lines(self, lost_by: Sequence[str] = ()) -> list[str]:
        """Return what was found, for people; `lost_by`: faults by which readings may be lost."""
        found = []
        for kind, many in KINDS.items():
            known, differing = self.of(kind)
            if lost_by and known == differing > 0:
                found.append(
                    f"none of {known:,} {many} can be compared: readings were lost, or are there "
                    f"twice, by {', '.join(lost_by)}"
                )
            elif known:
                found.append(f"{known - differing:,} of {known:,} {many} are what the oracle says")
        empty = [what for what, count in self.known.items() if not count]
        found += [f"nothing to compare of {', '.join(empty)}: no reading counted"] if empty else []
        return found + [f"not compared: {each}" for each in self.not_compared]

    def wrong(self) -> list[str]:
        """Return a line for each kind of which some differ, with an example."""
        found = []
        for kind, many in KINDS.items():
            known, differing = self.of(kind)
            if differing:
                what = next(each for each in self.examples if each.startswith(f"{kind} "))
                found.append(
                    f"{differing:,} of {known:,} {many} are not what the oracle says, such as "
                    f"{what} at {self.examples[what]}"
                )
        return found

    def only_landed(self) -> "Comparison":
        """Return what of it was compared with the readings that landed."""
        chosen = self.of_landed
        return Comparison(
            Counter({what: count for what, count in self.known.items() if what in chosen}),
            Counter({what: count for what, count in self.differing.items() if what in chosen}),
            {what: example for what, example in self.examples.items() if what in chosen},
        )

    def __add__(self, other: "Comparison") -> "Comparison":
        """Return the comparison of two fleets of one program."""
        known = Counter(self.known)
        known.update(other.known)  # a sum of counters would leave out what is 0
        return Comparison(
            known,
            self.differing + other.differing,
            other.examples | self.examples,
            list(dict.fromkeys(self.not_compared + other.not_compared)),
            self.of_landed | other.of_landed,
        )


def _shown(found: Any) -> str:
    """Return something that is compared, for people."""
    if not isinstance(found, SentRow):
        return str(found)
    return f"{found.parts}{f' of key {found.key}' if found.key else ''}"


def _where(at: Any) -> str:
    """Return where something is that is compared, for people: a row at its time."""
    match at:
        case str(device), (int(time_us), str(), tuple(), tuple()):
            return f"{shown_time(time_us)}{f' of {device}' if device else ''}"
    return str(at)


def compare(world: World, readings: Iterable[Reading], *, are_lost: bool = False) -> Comparison:
    """Return how much of what a fleet at rest computed is what the oracle says.

    Args:
        world: the fleet.
        readings: those that its devices took in.
        are_lost: some of them may have been lost with a store, or be there twice. Then rows over
            the fleet are held against the oracle of the readings that landed.
    """
    found, plan = Comparison(), world.plans[0]
    for _ in range(watched_on_s(plan)):
        world.step()
    gone = world.operator.commands.membership.retired
    by_device: dict[str, list[Reading]] = {name: [] for name in world.devices if name not in gone}
    for reading in readings:
        if reading.device not in gone:
            by_device[reading.device].append(reading)
    frontiers_us = {device.name: _frontier_us(device) for device in world.running()}
    counting = [each for several in by_device.values() for each in several]
    log, lander = world.operator.commands.control, world.sinks[0].lander
    streams = lander.core.streams
    frontiers_us[FLEET] = 0 if streams is None else streams.frontier_us or 0
    for name in plan.windows:
        known = windows(plan, name, counting, log, frontiers_us)
        truth = {at: window.partial for at, window in known.items()}
        landed = lander.windows(plan, name, gone)
        truth |= emptied(plan, name, landed.keys() - truth, counting, log, frontiers_us)
        found.add(f"window {name}", landed, truth)
    _compare_rows(found, world, counting, frontiers_us, are_lost=are_lost)
    _compare_values(found, world, by_device)
    _compare_row_alerts(found, world, counting, frontiers_us)
    _compare_shared(found, world, counting, are_lost=are_lost)
    return found


def _compare_shared(
    found: Comparison, world: World, readings: list[Reading], *, are_lost: bool
) -> None:
    """Compare shared variables with what the updates of all devices mean."""
    gone = world.operator.commands.membership.retired
    why = "stores were lost" if are_lost else "a device was retired" if gone else ""
    for name, held, truth, left_out in shared_contents(world, readings, why):
        if held or truth or not left_out:
            found.add(f"shared {name}", held, truth)
        found.not_compared += [f"shared {name}: {left_out}"] if left_out else []


def _compare_rows(
    found: Comparison,
    world: World,
    readings: list[Reading],
    frontiers_us: Mapping[str, int],
    *,
    are_lost: bool,
) -> None:
    """Compare the rows of results."""
    plan, gone = world.plans[0], world.operator.commands.membership.retired
    log = world.operator.commands.control
    for name in plan.stream_results:
        landed = world.sinks[0].lander.rows(plan, name)
        counting = {at: each for at, each in landed.items() if at[0] not in gone}
        truth = rows(plan, name, readings, frontiers_us, log)
        if plan.streams[name].fleet and (gone or are_lost):
            why = "a device was retired" if gone else "stores were lost"
            if parted_scans(plan):
                found.not_compared.append(f"result {name}: {why}")
                continue
            found.not_compared.append(f"result {name}: what did not land, since {why}")
            found.of_landed.add(f"result {name}")
            truth = _rows_of_landed(world, name, frontiers_us[FLEET])
        found.add(f"result {name}", counting, truth)


def _rows_of_landed(world: World, name: str, frontier_us: int) -> dict[tuple[str, Place], SentRow]:
    """Return place -> the row of a result over the fleet, by the oracle of all that has landed."""
    plan, lander = world.plans[0], world.sinks[0].lander
    content = content_of_items(plan, landed_items(lander, plan), inf)
    content |= content_of_outputs(landed_outputs(lander, plan), inf)
    found: dict[tuple[str, Place], SentRow] = {}
    truth = outputs_of(graph_of(plan, FLEET).nodes, content, frontier_us)[name]
    for place, event in truth.items():
        with suppress(ValueError):  # it has not the parts of the result
            parts = plain_parts(plan.stream_results[name], event.value)
            found[FLEET, place] = SentRow(place, event.key, parts)
    return found


def _frontier_us(device: VirtualDevice) -> int:
    """Return up to which time a device's streams are final."""
    held = device.streams_held()
    return 0 if held is None or held.frontier_us is None else held.frontier_us


def _compare_values(
    found: Comparison, world: World, by_device: Mapping[str, list[Reading]]
) -> None:
    """Compare the values of local and dynamic folds, and the alerts on them."""
    plan, log = world.plans[0], world.operator.commands.control
    truths: dict[tuple[str, str], dict[str, Any]] = {}
    folds: list[LocalFold | DynamicFold] = [*plan.local_folds.values()]
    for fold in [*folds, *plan.dynamic_folds.values()]:
        why = why_not_compared(plan, fold)
        if why:
            found.not_compared.append(f"value {fold.name}: {why}")
            continue
        for device in world.running():
            if device.name not in by_device:
                continue
            if isinstance(fold, DynamicFold):
                held = {key: each.partial for key, each in device.results(fold.name).items()}
                truth = dynamic_partials(plan, fold.name, by_device, log=log)
            else:
                local = device.core.results.local()[fold.name]
                held = {key: each.partial for key, each in local.items()}
                truth = local_partials(plan, fold.name, by_device[device.name], log=log)
            truths[fold.name, device.name] = truth
            found.add(f"value {fold.name}", _on(device, held), _on(device, truth))
    for name, watched in plan.alerts.items():
        if watched.variable not in {**plan.windows, **plan.stream_results}:
            _compare_alert(found, world, name, watched, truths)


def _on(device: VirtualDevice, values: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    """Return (device, key) -> value."""
    return {(device.name, key): value for key, value in values.items()}


def why_not_compared(plan: Plan, fold: LocalFold | DynamicFold) -> str:
    """Return why the oracle cannot tell a value; empty text where it can."""
    local = fold.source if isinstance(fold, DynamicFold) else fold
    if isinstance(fold, DynamicFold) and fold.absence is not None:
        return "it depends on who is silent"
    of_others = next(filter(None, (why_not_compared(plan, each) for each in local.made_of)), "")
    bottom = local.source.bottom
    if of_others or not isinstance(bottom, BoundedLWWSet):
        return of_others or "it is no fold of a bounded set"
    if bottom.max_age_s is not None:
        return "its samples go by age"
    for writer in plan.meanings[local.source.name].events:
        if writer not in plan.events:
            return f"{writer} writes its samples"
        if writer in plan.reads:
            return f"a handler of {writer} reads what a device knows at that time"
    return ""


def _compare_alert(
    found: Comparison,
    world: World,
    name: str,
    watched: Watched,
    truths: Mapping[tuple[str, str], Mapping[str, Any]],
) -> None:
    """Compare the state of an alert with what its condition says of the oracle's value."""
    plan, log = world.plans[0], world.operator.commands.control
    assert watched.trigger is not None, "an alert has a condition"
    made = plan.dynamic_folds.get(watched.variable)
    local = made.source if made else plan.local_folds[watched.variable]
    values = {of: truth for (each, of), truth in truths.items() if each == watched.variable}
    if not values or watched.trigger.for_us > _HOLDS_S * SECOND_US:
        why = "its value is not compared" if not values else "its condition has to hold for long"
        found.not_compared.append(f"alert {name}: {why}")
        return
    states: dict[tuple[str, str], bool] = {}
    truth: dict[tuple[str, str], bool] = {}
    for device in world.running():
        known = _states(device, name)
        trigger = trigger_at(watched, log, device.name, world.now_us)
        assert trigger is not None, "an alert has a condition"
        for key, partial in values.get(device.name, {}).items():
            is_on = states[device.name, key] = known.get(key, False)
            exact = exact_part(local.fold, partial, local.resolution, watched.part)
            truth[device.name, key] = exact is not None and trigger.holds(exact, fired=is_on)
    found.add(f"alert {name}", states, truth)


def _compare_row_alerts(
    found: Comparison, world: World, readings: list[Reading], frontiers_us: Mapping[str, int]
) -> None:
    """Compare alerts on windows and results with what their conditions say of the oracle's rows."""
    plan, gone = world.plans[0], world.operator.commands.membership.retired
    for name, watched in plan.alerts.items():
        if watched.variable not in {**plan.windows, **plan.stream_results}:
            continue
        assert watched.trigger is not None, "an alert has a condition"
        if watched.trigger.for_us or gone:
            why = "a device was retired" if gone else "its condition has to hold for long"
            found.not_compared.append(f"alert {name}: {why}")
            continue
        states = _row_states(world, name)
        truth = row_alerts(world, watched, readings, frontiers_us, states)
        found.add(f"alert {name}", states, truth)


def _row_states(world: World, name: str) -> dict[tuple[str, str], bool]:
    """Return which keys of an alert on rows are on."""
    if name in fleet_alerts(world.plans[0]):
        statuses = world.sinks[0].lander.alerts.statuses
        return {(FLEET, at[1]): s["state"] == "on" for at, s in statuses.items() if at[0] == name}
    every = [(device.name, _states(device, name)) for device in world.running()]
    return {(device, key): is_on for device, states in every for key, is_on in states.items()}


def _states(device: VirtualDevice, name: str) -> dict[str, bool]:
    """Return key -> whether a device's alert is on."""
    status = device.report().get("alerts", {}).get(name, {})
    by_key = status.get("keys", {"": status} if status else {})
    return {key: each["state"] == "on" for key, each in by_key.items()}
