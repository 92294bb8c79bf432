"""What must hold of the values that a device shows, and of what it does for them.

Each value is computed once more, the slow way, from what the device holds:

- a local fold is that of the samples of its set, and a value of the fleet that of the entries of
  all devices that are not retired, as the rows in these entries are: no total is out of date
- an entry of the device itself holds what its fold is
- a set holds no more samples than operators say, and nothing that it held before is news to it
- an alert with a level is on where its value is beyond the level that holds now, and else off
- nobody acts on a value of the fleet before as many devices are in it as the fleet had agreed on,
  unless the device has waited for them
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, Final

from crdts import BoundedLWWSet, ControlLog, Entry, Version
from crdts.control_log import FLEET, INHERITED, TAKEN_BACK
from device_agent.agent.core import Core
from lasp_edge.folds.columns import Partial
from lasp_edge.language.declarations import DynamicFold
from simulations.world.device import VirtualDevice
from simulations.world.programs import CALLED, LATELY, LEVEL, LEVEL_DEFAULT, LEVELLED

_MEAN, _MAX = "mean", "max"
_NO: Final = Version(-1, 0, 0)
LOCAL: Final = {"here": _MEAN, "rooms_here": _MAX, LATELY: _MEAN, "held_here": _MAX}
"""Local fold of the program -> what it is."""
OF_FLEET: Final = {"everywhere": _MEAN, "rooms_everywhere": _MAX}
"""The same of its folds over the fleet."""


NEWS_STEPS = 7
"""Steps between two looks at what a device held before."""


class ValueChecks:
    """Looks at what devices hold, and what they held before."""

    def __init__(self) -> None:
        self._before: dict[tuple[int, str, str], BoundedLWWSet] = {}

    def wrong(self, device: VirtualDevice, step: int) -> Iterator[str]:
        """Yield what is wrong with a device in a step."""
        yield from _local(device)
        yield from _of_fleet(device)
        yield from _of_present(device)
        if step % NEWS_STEPS == 0:
            yield from self._news(device)

    def _news(self, device: VirtualDevice) -> Iterator[str]:
        """Yield the sets to which something is news that they held some steps ago."""
        core = device.core
        for name, held in core.samples.sets.held.items():
            for key, state in held.items():
                if state.limits.max_age_us:
                    continue  # a key that is gone may come back, and begins again
                at = (core.replica.nonce, name, key)
                before = self._before.get(at)
                if before is not None and before.replica == state.replica:
                    joined = state.copy()
                    come, gone = joined.join_changes(before)
                    if come or gone or joined != state:
                        yield f"{device.name} held {come} of {name} before, and it is news"
                self._before[at] = state.copy()


def _local(device: VirtualDevice) -> Iterator[str]:
    """Yield the local folds that are not those of the samples."""
    samples, plan = device.core.samples, device.core.agent.plan
    if any(samples.sets.moved.values()):
        return  # the next tick folds what was read at the end of this one
    for name, fold in plan.local_folds.items():
        kind = LOCAL.get(name)
        if kind is None:
            continue
        held, found = samples.sets.held[fold.source.name], samples.partials(name)
        for key, state in held.items():
            made = folded(kind, [value for _, value, _ in state.samples()])
            if state.complete and found.get(key, made)[-len(made) :] != made:
                yield f"{device.name} folds {found[key]} of {name} {key!r}, and holds {made}"
        if not found.keys() <= held.keys():
            yield f"{device.name} has a value of {sorted(found)} of {name}, of {sorted(held)}"
        published = samples.published.get(name)
        own = {} if published is None else dict(own_rows(device.core, name))
        if published is not None and own != found and (own or any(map(any, found.values()))):
            yield f"{device.name} folds {found} of {name}, and its entries say {own}"


def own_rows(core: Core, name: str) -> Iterator[tuple[str, Partial]]:
    """Yield key and partial of a device's own entries of a fold."""
    entries = core.samples.published[name].entries
    for shard in entries.shards:
        entry = entries.entry(core.replica.device, shard)
        for key, _, partial in () if entry is None else entry.payload:
            yield key, partial


def _of_fleet(device: VirtualDevice) -> Iterator[str]:
    """Yield the values of the fleet that are not what the entries that count add up to."""
    core = device.core
    every, agreements = core.results.fleet(), core.agreements.all()
    for name, fold in core.agent.plan.dynamic_folds.items():
        kind = OF_FLEET.get(name)
        if kind is None:
            continue
        rows = partials_of_fleet(device, fold)
        found, having = every[name], _having(device, fold)
        if (agreed := agreements[name].devices) != having:
            yield f"{device.name} counts {agreed} devices of {name}, and {having} have an entry"
        if fold.keyed and found.keys() != rows.keys():
            yield f"{device.name} has {sorted(found)} of {name}, and its entries {sorted(rows)}"
        for key, result in found.items():
            total = combined(kind, rows.get(key, []))
            devices = sum(partial != combined(kind, []) for partial in rows.get(key, []))
            if (result.partial, result.devices) != (total, devices):
                yield f"{device.name} holds {result} of {name} {key!r}: {total} of {devices}"


def _of_present(device: VirtualDevice) -> Iterator[str]:
    """Yield the values that silent devices leave, and that are not what the others add up to."""
    core = device.core
    for name, fold in core.agent.plan.dynamic_folds.items():
        if fold.absence is None:
            continue
        versions, heard = defaultdict[str, list[Version]](list), dict[str, Version]()
        for shard in _counting(core, fold.source.name):
            heard |= {d: max(e.version, heard.get(d, e.version)) for d, e in shard.items()}
        for shard in _counting(core, fold.absence.name):
            for absent, _, partial in [row for each in shard.values() for row in each.payload]:
                versions[absent].append(Version(*partial))
        gone = {other for other, last in heard.items() if last <= max(versions[other], default=_NO)}
        shards = _counting(core, fold.source.name)
        present = [e for shard in shards for d, e in shard.items() if d not in gone]
        expected = combined(_MEAN, [row[2] for each in present for row in each.payload])
        found = core.results.fleet()[name].get("")
        if found is not None and found.partial != expected:
            yield f"{device.name} holds {found} of {name}, and {expected} without {sorted(gone)}"


def _counting(core: Core, name: str) -> list[dict[str, Entry]]:
    """Return by shard the entries of a fold of the devices that are not retired."""
    retired = core.commands.known.membership.retired
    shards = core.samples.published[name].entries._entries  # noqa: SLF001 - all
    return [{d: e for d, e in each.entries.items() if d not in retired} for each in shards]


def _having(device: VirtualDevice, fold: DynamicFold) -> int:
    """Return how many devices that are not retired have an entry."""
    entries = device.core.samples.published[fold.source.name].entries._entries  # noqa: SLF001 - all
    names = {other for shard in entries for other in shard.entries}
    return len(names.difference(device.core.commands.known.membership.retired))


def partials_of_fleet(device: VirtualDevice, fold: DynamicFold) -> dict[str, list[Any]]:
    """Return by key the partials of all devices that are not retired, as entries hold them."""
    core, rows = device.core, defaultdict[str, list[Any]](list)
    members = core.commands.known.membership.entries
    for shard in core.samples.published[fold.source.name].entries._entries:  # noqa: SLF001 - all
        for other, entry in shard.entries.items():
            if other not in members or not members[other].retired:
                for key, _, partial in entry.payload:
                    rows[key].append(partial)
    return rows


def folded(kind: str, values: Sequence[Any]) -> Partial:
    """Return what samples come to."""
    if kind == _MEAN:
        return (len(values), sum(values))
    return (max(values, default=None),)


def combined(kind: str, partials: Sequence[Partial]) -> Partial:
    """Return what the partials of several devices come to."""
    if kind == _MEAN:
        return (sum(count for count, _ in partials), sum(total for _, total in partials))
    return (max([each for (each,) in partials if each is not None], default=None),)


def level_of(device: VirtualDevice, now_us: int) -> Fraction:
    """Return the level of alerts that operators may change, as it is now."""
    log, clock = device.core.commands.known.control, device.core.agent.clock
    return Fraction(value_at(log, LEVEL, device.name, clock.time_us(now_us)) or LEVEL_DEFAULT)


def wrong_alerts(device: VirtualDevice, level: Fraction) -> Iterator[str]:
    """Yield the alerts that do not say what their value says, right after the tick of a device."""
    core = device.core
    assert core.acting.alerts is not None, "the program has alerts"
    states = core.acting.alerts.report()["alerts"]
    for name, variable in LEVELLED.items():
        if variable in LOCAL:
            partial: Any = core.samples.partials(variable).get("", (None,))
            number = partial[-1]
        elif not core.acting.values.is_ready(variable):
            continue
        else:
            count, total = core.results.fleet()[variable][""].partial
            number = Fraction(total, count) if count else None
        is_on = states.get(name, {"state": "off"})["state"] == "on"
        if is_on != (number is not None and number > level):
            yield f"{device.name}: {name} is on: {is_on}, at {number}, and the level is {level}"


def value_at(log: ControlLog, name: str, device: str, time_us: int) -> str:
    """Return what operators say of a parameter at a time; "" for nothing."""
    for scope in (device, FLEET):
        places = [
            (from_us, entry.value)
            for from_us, entry in log.places(name, scope)
            if from_us <= time_us and entry.value is not TAKEN_BACK
        ]
        if places and max(places)[1] != INHERITED:
            return str(max(places)[1])
    return ""


def wrong_calls(device: VirtualDevice, true_us: int) -> Iterator[str]:
    """Yield what is wrong with the calls of the handlers of a device in its turn."""
    for name, inputs in CALLED:
        if device.acted.get(name) == inputs:
            yield f"{device.name}: a handler was called twice for one inputs"
        device.acted[name] = inputs
    yield from hasty_acts(device, [name for name, _ in CALLED], true_us)
    _note_known(device)
    CALLED.clear()


def _note_known(device: VirtualDevice) -> None:
    """Note which values all are in that the fleet had agreed on: from now on devices may go."""
    core = device.core
    for name, agreed in (core.agent.facts.settled or {}).items():
        fold = core.agent.plan.dynamic_folds.get(name)
        if fold is None or name in device.well_known:
            continue
        if len(core.samples.counting(fold).devices) >= agreed.devices:
            device.well_known.add(name)


def hasty_acts(device: VirtualDevice, names: Sequence[str], true_us: int) -> Iterator[str]:
    """Yield the values of the fleet for which handlers were called, or alerts turned, too soon."""
    core = device.core
    waited_us = true_us - device.begun_us
    for name in names:
        fold = core.agent.plan.dynamic_folds.get(name)
        agreed = (core.agent.facts.settled or {}).get(name)
        if fold is None or agreed is None or waited_us >= core.agent.settings.grace_us:
            continue
        devices = len(core.samples.counting(fold).devices)
        if devices < agreed.devices and name not in device.well_known:
            yield f"{device.name} acts on {name} of {devices} devices, and had {agreed.devices}"
        device.well_known.add(name)
