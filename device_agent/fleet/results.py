"""Results for people: every fold's value as plain data, and as JSON on topics of its own.

A fold with keys has one topic a key, beside one that says how far the fleet agrees: so one key's
change is one small message, whatever the number of keys.
"""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from device_agent.fleet.variables import Agreement, Result, Variables
from lasp_edge.folds.columns import Partial
from lasp_edge.language.declarations import DynamicFold, LocalFold
from lasp_edge.language.plan import Plan


class Results:
    """The results of one device.

    Args:
        program: the program.
        variables: where its folds' values are.
    """

    __slots__ = ("_dynamic", "_local", "_said", "_variables")

    def __init__(self, program: Plan, variables: Variables) -> None:
        self._local = program.local_folds
        self._dynamic = program.dynamic_folds
        self._variables = variables
        self._said: dict[tuple[str, str | None], int] = {}

    def plain(self) -> dict[str, dict[str, Any]]:
        """Return every fold's value: parts, columns, inputs, agreement; by key if it has keys.

        Derived sets stand among them: how many elements, and which.
        """
        found = {
            name: _plain(self._local[name], result.partial)
            for name, result in self._variables.local().items()
        }
        for name, results in self._variables.local_by_key().items():
            fold = self._local[name]
            found[name] = {"keys": {key: _plain(fold, r.partial) for key, r in results.items()}}
        agreements = self._variables.agreements()
        for name, result in self._variables.fleet().items():
            found[name] = _plain(self._dynamic[name], result.partial) | _agreed(agreements[name])
        for name, results in self._variables.fleet_by_key().items():
            keys = {key: _of_key(self._dynamic[name], result) for key, result in results.items()}
            found[name] = {"keys": keys} | _agreed(agreements[name])
        derived = self._variables.derived
        return found | {name: derived.plain(name) for name in sorted(derived.moved)}

    def say_again(self) -> None:
        """Everything is to be said, whether it changed or not."""
        self._said = dict.fromkeys(self._said, 0)

    def news(self) -> Iterator[tuple[str, str | None, bytes]]:
        """Yield (name, key, text) of what changed; key None: of the whole, no text: it is gone."""
        said, self._said = self._said, {}
        for name, key, seen, value in self._values():
            at, known = (name, key), hash(seen)
            self._said[at] = known
            if said.pop(at, None) != known:
                yield name, key, json.dumps(value(), sort_keys=True).encode()
        for name, key in said:
            yield name, key, b""

    def _values(self) -> Iterator[tuple[str, str | None, Any, Any]]:
        """Yield (name, key, what tells it from others, function that gives it as plain data)."""
        variables, local, dynamic = self._variables, self._local, self._dynamic
        for name, result in variables.local().items():
            yield name, None, result, lambda n=name, r=result: _plain(local[n], r.partial)
        for name, results in variables.local_by_key().items():
            for key, result in results.items():
                yield name, key, result, lambda n=name, r=result: _plain(local[n], r.partial)
        agreements = variables.agreements()
        for name, result in variables.fleet().items():
            yield (
                name,
                None,
                result,
                lambda n=name, r=result: _plain(dynamic[n], r.partial) | _agreed(agreements[n]),
            )
        for name, results in variables.fleet_by_key().items():
            agreement = agreements[name]
            yield name, None, agreement, lambda a=agreement: _agreed(a)
            for key, result in results.items():
                seen = result[:3]
                yield name, key, seen, lambda n=name, r=result: _of_key(dynamic[n], r)
        derived = variables.derived
        for name, moved in sorted(derived.moved.items()):
            yield name, None, moved, partial(derived.plain, name)


def _plain(fold: LocalFold | DynamicFold, partial: Partial) -> dict[str, Any]:
    """Return a value for people: its parts, and the columns that they were read off."""
    columns = {
        name: part.hex() if isinstance(part, bytes) else part
        for name, part in zip(fold.fold.columns_named, partial, strict=True)
    }
    return {"parts": fold.fold.lower(partial, fold.resolution), **columns}


def _of_key(fold: DynamicFold, result: Result) -> dict[str, Any]:
    made_from = {"inputs": result.inputs, "devices": result.devices}
    return _plain(fold, result.partial) | made_from


def _agreed(agreement: Agreement) -> dict[str, Any]:
    return {
        "inputs": agreement.inputs,
        "devices": agreement.devices,
        "settled": agreement.settled,
        "except": list(agreement.offline),
    }
