"""The values of one device: every fold and derived set as plain data, by key.

A fold with keys has one value for each key, beside one that says how far the fleet agrees. So a
change of one key is one small message, whatever the number of keys. A fold without keys has the one
key "", and its value and agreement are one.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from device_agent.agent.agent import Agent
from device_agent.agent.fleet.agreement import Agreement, Agreements
from device_agent.agent.variables.derived import Derived
from device_agent.agent.variables.samples import Samples
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.lowered import lowered
from lasp_edge.language.declarations import AnyFold, DynamicFold
from lasp_edge.protocol.inputs import inputs_digest


class Result(NamedTuple):
    """The value of one key of a fold, as this device holds it.

    Attributes:
        partial: the integers and bytes.
        inputs: what it was made from; empty for a local fold.
        devices: how many devices have the key.
        settled: every connected device holds the same inputs.
        offline: devices that are not connected and last reported something else.
    """

    partial: Partial
    inputs: str = ""
    devices: int = 1
    settled: bool = True
    offline: tuple[str, ...] = ()


class FoldResults(NamedTuple):
    """All values of a fold; the agreement is None for a local fold."""

    fold: AnyFold
    by_key: dict[str, Result]
    agreement: Agreement | None


class CurrentValue(NamedTuple):
    """One value now, for one topic.

    Attributes:
        name: the variable's name.
        key: the key; None on the topic of the whole variable.
        mark: equal marks, equal values.
        plain: gives the value as plain data.
    """

    name: str
    key: str | None
    mark: Any
    plain: Callable[[], dict[str, Any]]


class Values:
    """The values of one device.

    Args:
        agent: what all parts share.
        samples: the local folds' partials, and the fleet's entries of them.
        agreements: how far the fleet agrees.
        derived: the derived sets.
    """

    def __init__(
        self, agent: Agent, samples: Samples, agreements: Agreements, derived: Derived
    ) -> None:
        self._agent = agent
        self._samples = samples
        self._agreements = agreements
        self._derived = derived

    def keys(self, name: str) -> list[str]:
        """Return the keys of a fold's value, sorted."""
        made = self._agent.plan.dynamic_folds.get(name)
        if made is None:
            return sorted(self._samples.partials(name))
        return self._samples.counting(made).keys

    def names(self) -> Iterator[tuple[str, str | None]]:
        """Yield name and key of each value of `current`."""
        plan = self._agent.plan
        folds: Mapping[str, AnyFold] = {**plan.local_folds, **plan.dynamic_folds}
        for name, fold in folds.items():
            if name in plan.dynamic_folds or (not fold.keyed and self.keys(name)):
                yield name, None
            if fold.keyed:
                yield from ((name, key) for key in self.keys(name))
        yield from ((name, None) for name in self._derived.moved)

    def local(self) -> dict[str, dict[str, Result]]:
        """Return target of a local fold -> key -> value."""
        return {fold.name: by_key for fold, by_key, _ in self._local()}

    def fleet(self) -> dict[str, dict[str, Result]]:
        """Return target of a dynamic fold -> key -> value."""
        return {fold.name: by_key for fold, by_key, _ in self._fleet()}

    def _local(self) -> Iterator[FoldResults]:
        for name, fold in sorted(self._agent.plan.local_folds.items()):
            partials = self._samples.partials(name)
            yield FoldResults(fold, {key: Result(p) for key, p in partials.items()}, None)

    def _fleet(self) -> Iterator[FoldResults]:
        for name, agreement in self._agreements.all().items():
            fold = self._agent.plan.dynamic_folds[name]
            yield FoldResults(fold, self._by_key(fold, agreement), agreement)

    def _by_key(self, fold: DynamicFold, agreement: Agreement) -> dict[str, Result]:
        entries, found = self._samples.counting(fold), {}
        for key in entries.keys if fold.keyed else ("",):
            try:
                total = entries.total(key)
            except BaseException as error:  # noqa: BLE001 - a user's fold may raise anything
                self._agent.guard.failed(f"fold {fold.name}", error)
                continue
            inputs = inputs_digest(total.digest, fold.stream)
            settled, offline = agreement.settled, agreement.offline
            found[key] = Result(total.partial, inputs, total.devices, settled, offline)
        return found

    def plain(self) -> dict[str, dict[str, Any]]:
        """Return every fold's value: parts, columns, inputs, agreement; by key if it has keys.

        Derived sets stand among them: how many elements, and which.
        """
        found: dict[str, dict[str, Any]] = {}
        for fold, by_key, agreement in chain(self._local(), self._fleet()):
            if fold.keyed:
                keys = {key: self._of_key(fold, result) for key, result in by_key.items()}
                found[fold.name] = {"keys": keys} | _agreed(agreement)
            elif by_key:
                found[fold.name] = self._whole(fold, by_key[""], agreement)
        return found | {name: self._of_derived(name) for name in sorted(self._derived.moved)}

    def current(self) -> Iterator[CurrentValue]:
        """Yield every value that this device has, with what tells a changed one."""
        for fold, by_key, agreement in chain(self._local(), self._fleet()):
            name = fold.name
            if not fold.keyed:
                for result in by_key.values():
                    yield CurrentValue(
                        name, None, result, partial(self._whole, fold, result, agreement)
                    )
                continue
            if agreement:
                yield CurrentValue(name, None, agreement, partial(_agreed, agreement))
            for key, result in by_key.items():
                mark = (result.partial, result.inputs, result.devices)
                yield CurrentValue(name, key, mark, partial(self._of_key, fold, result))
        for name, moved in sorted(self._derived.moved.items()):
            yield CurrentValue(name, None, moved, partial(self._of_derived, name))

    def _whole(self, fold: AnyFold, result: Result, agreement: Agreement | None) -> dict[str, Any]:
        agreed = _agreed(agreement)
        return self._value(fold, result) | agreed | ({"devices": result.devices} if agreed else {})

    def _of_key(self, fold: AnyFold, result: Result) -> dict[str, Any]:
        value = self._value(fold, result)
        if isinstance(fold, DynamicFold):
            value |= {"inputs": result.inputs, "devices": result.devices}
        return value

    def _value(self, fold: AnyFold, result: Result) -> dict[str, Any]:
        """Return a value for people: its parts, and the columns that they were read off."""
        columns = {
            name: part.hex() if isinstance(part, bytes) else part
            for name, part in zip(fold.fold.columns_named, result.partial, strict=True)
        }
        given = (fold.fold, result.partial, fold.resolution)
        return {
            "parts": self._agent.guard.run(f"fold {fold.name}", lowered, *given) or {},
            **columns,
        }

    def _of_derived(self, name: str) -> dict[str, Any]:
        return self._agent.guard.run(f"{name}", self._derived.plain, name) or {"parts": {}}


def _agreed(agreement: Agreement | None) -> dict[str, Any]:
    if agreement is None:
        return {}
    return {
        "inputs": agreement.inputs,
        "devices": agreement.devices,
        "settled": agreement.settled,
        "except": list(agreement.offline),
    }
