"""What a shared variable is worth after the updates of all devices: by definition, without a join.

Most updates mean the same whoever knows of them: what was added to a set is in it, and a counter is
the sum of what was counted. What a device takes out of an `ORSet` is what it knew of, so of several
devices nobody can tell by the readings alone; such elements are unknown here.

    >>> from crdts import ORSet
    >>> updates = [SharedUpdate("pi-1", "add", ("a",)), SharedUpdate("pi-1", "remove", ("a",)),
    ...            SharedUpdate("pi-1", "add", ("b",)), SharedUpdate("pi-2", "add", ("c",))]
    >>> shared_content(ORSet(), updates)
    SharedContent(known={'b': True, 'c': True}, unknown=frozenset())
    >>> shared_content(ORSet(), [*updates, SharedUpdate("pi-2", "remove", ("b",))]).unknown
    frozenset({'b'})
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from crdts import (
    DWFlag,
    EWFlag,
    GCounter,
    GSet,
    Lattice,
    LWWRegister,
    Max,
    Min,
    ORMap,
    ORSet,
    PNCounter,
    TwoPSet,
)
from lasp_edge.language.plan import Plan
from lasp_edge.language.updates import run_handlers
from simulations.oracle.readings import Reading, accepted

WHOLE = ""
"""The one place of what has no elements."""


class SharedUpdate(NamedTuple):
    """A call of a mutator, on one device."""

    device: str
    mutator: str
    arguments: tuple[Any, ...]


class SharedContent(NamedTuple):
    """What is known of a shared variable.

    Attributes:
        known: element, key or `WHOLE` -> what is there.
        unknown: elements and keys that depend on what a device knew when it took them out.
    """

    known: Mapping[Any, Any]
    unknown: frozenset[Any] = frozenset()


class NoDefinitionError(ValueError):
    """Why a value does not follow from the updates alone."""


def shared_updates(plan: Plan, readings: Iterable[Reading]) -> dict[str, list[SharedUpdate]]:
    """Return variable -> what handlers of events do with it, in the order of the readings."""
    found: dict[str, list[SharedUpdate]] = {name: [] for name in plan.shared_variables}
    for sample in accepted(plan, readings):
        for change in run_handlers(plan, sample.event):
            if change.variable in found:
                update = SharedUpdate(sample.event.device, change.mutator, change.arguments)
                found[change.variable].append(update)
    return found


def content_of(value: Any) -> dict[Any, Any]:
    """Return the value of a CRDT by its elements or keys; what has none, as a whole."""
    if isinstance(value, frozenset | set):
        return dict.fromkeys(value, True)
    return dict(value) if isinstance(value, dict) else {WHOLE: value}


def shared_content(bottom: Lattice, updates: Sequence[SharedUpdate]) -> SharedContent:
    """Return what is in a variable after all updates; those of one device are in their order.

    Raises:
        NoDefinitionError: it does not follow from the updates alone.
    """
    definition = _DEFINITIONS.get(type(bottom))
    if definition is None:
        raise NoDefinitionError(f"nobody recomputes a {type(bottom).__name__}")
    return definition(bottom, updates)


def _firsts(updates: Iterable[SharedUpdate], mutator: str) -> list[Any]:
    """Return the first arguments of the calls of one mutator; 1 where it has none."""
    return [(*each.arguments, 1)[0] for each in updates if each.mutator == mutator]


def _added(_bottom: Any, updates: Sequence[SharedUpdate]) -> SharedContent:
    left = {*_firsts(updates, "add")} - {*_firsts(updates, "remove")}
    return SharedContent(dict.fromkeys(left, True))


def _total(_bottom: Any, updates: Sequence[SharedUpdate]) -> SharedContent:
    up, down = (sum(_firsts(updates, each)) for each in ("increment", "decrement"))
    return SharedContent({WHOLE: up - down})


def _greatest(_bottom: Any, updates: Sequence[SharedUpdate]) -> SharedContent:
    return SharedContent({WHOLE: max(_firsts(updates, "record"), default=None)})


def _least(_bottom: Any, updates: Sequence[SharedUpdate]) -> SharedContent:
    return SharedContent({WHOLE: min(_firsts(updates, "record"), default=None)})


def _newest(_bottom: Any, updates: Sequence[SharedUpdate]) -> SharedContent:
    newest = max((each.arguments[1] for each in updates), default=0)
    values = [each.arguments[0] for each in updates if each.arguments[1] == newest]
    if any(each != values[0] for each in values):
        raise NoDefinitionError("several values were written at one time")
    return SharedContent({WHOLE: values[0] if values else None})


def _turned(bottom: Any, updates: Sequence[SharedUpdate]) -> SharedContent:
    """Return whether a switch is on: whoever turns it back turns back what it knew of."""
    turns = [each.mutator == "enable" for each in updates]
    if bottom.value not in turns:
        return SharedContent({WHOLE: bottom.value != bool(turns)})
    if len({each.device for each in updates}) > 1:
        raise NoDefinitionError("a device turns back what it knew of alone")
    return SharedContent({WHOLE: turns[-1]})


def _elements(_bottom: Any, updates: Sequence[SharedUpdate]) -> SharedContent:
    """Return the elements of a set, of which a device removes what it knew of alone."""
    by_element: dict[Any, list[SharedUpdate]] = {}
    for each in updates:
        if each.mutator == "clear":
            raise NoDefinitionError("a device clears what it knew of alone")
        by_element.setdefault(each.arguments[0], []).append(each)
    known, unknown = {}, set()
    for element, several in by_element.items():
        removes = any(each.mutator == "remove" for each in several)
        if removes and len({each.device for each in several}) > 1:
            unknown.add(element)
        elif several[-1].mutator == "add" or not removes:
            known[element] = True
    return SharedContent(known, frozenset(unknown))


def _below(bottom: Any, updates: Sequence[SharedUpdate]) -> SharedContent:
    """Return the values below the keys of a map that none is removed from."""
    by_key: dict[Any, list[SharedUpdate]] = {}
    for device, mutator, arguments in updates:
        if mutator != "update":
            raise NoDefinitionError("a device removes the keys that it knew of alone")
        key, function, *more = arguments
        by_key.setdefault(key, []).append(SharedUpdate(device, function.__name__, tuple(more)))
    known, unknown = {}, set()
    for key, several in by_key.items():
        try:
            content = shared_content(bottom.of, several)
        except NoDefinitionError:
            content = SharedContent({}, frozenset({WHOLE}))
        if content.unknown:
            unknown.add(key)
        elif isinstance(bottom.of, GSet | ORSet | TwoPSet):
            known[key] = frozenset(content.known)
        else:
            known[key] = content.known.get(WHOLE, content.known)
    return SharedContent(known, frozenset(unknown))


_DEFINITIONS: Mapping[type, Callable[[Any, Sequence[SharedUpdate]], SharedContent]] = {
    GSet: _added,
    TwoPSet: _added,
    GCounter: _total,
    PNCounter: _total,
    Max: _greatest,
    Min: _least,
    LWWRegister: _newest,
    EWFlag: _turned,
    DWFlag: _turned,
    ORSet: _elements,
    ORMap: _below,
}
