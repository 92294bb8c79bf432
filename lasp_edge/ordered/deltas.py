"""Deltas: the difference of two contents. A revision is one, and so is all that streams exchange.

A **content** is what a stream holds: place -> event, one each. A **delta** is place -> (old, new);
None is absence. Insert, delete and replace are its three cases; an entry whose old and new are the
same says nothing, and never stands in a delta.

    >>> a, b = {1: "x", 2: "y"}, {2: "z", 3: "w"}
    >>> delta = minus(b, a, str.__eq__)
    >>> sorted(delta.items())
    [(1, ('x', None)), (2, ('y', 'z')), (3, (None, 'w'))]
    >>> applied(delta, a) == b
    True
    >>> composed(delta, minus(a, b, str.__eq__), str.__eq__)
    {}

`compose_into` changes a delta in place: adding up many small ones takes as long as they are.

Laws: `applied(minus(b, a), a) == b`; `composed` is associative, and `minus(a, b)` is the inverse of
`minus(b, a)`.

Source: revision records after Balazinska, Balakrishnan, Madden and Stonebraker, "Fault-Tolerance
in the Borealis Distributed Stream Processing System", SIGMOD 2005; as differences, never messages.
"""

from collections.abc import Callable, Mapping
from typing import Any

from lasp_edge.event import Event
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.plain import same

Content = dict[Place, Event[Any]]
Change = tuple[Event[Any] | None, Event[Any] | None]
Delta = dict[Place, tuple[Any, Any]]
"""Place -> what was there, and what is there now."""

Same = Callable[[Any, Any], bool]


def same_event(a: Event[Any] | None, b: Event[Any] | None) -> bool:
    """Return whether two events, or absences, are the same.

    Only the value can be equal and not the same: all else is text, and a time in whole numbers.
    """
    if a is None or b is None:
        return a is b
    return a is b or (a == b and same(a.value, b.value))


def applied(delta: Delta, content: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return the content after a delta."""
    after = dict(content)
    for place, (_, new) in delta.items():
        if new is None:
            after.pop(place, None)
        else:
            after[place] = new
    return after


def minus(after: Mapping[Any, Any], before: Mapping[Any, Any], alike: Same = same_event) -> Delta:
    """Return the delta that leads from one content to another."""
    delta = {place: (old, after.get(place)) for place, old in before.items()}
    delta |= {place: (None, new) for place, new in after.items() if place not in before}
    return without_same(delta, alike)


def composed(first: Delta, then: Delta, alike: Same = same_event) -> Delta:
    """Return the delta of two deltas, one after the other."""
    found = first | {
        place: (first[place][0] if place in first else old, new)
        for place, (old, new) in then.items()
    }
    return without_same(found, alike)


def compose_into(first: Delta, then: Delta) -> None:
    """Let another delta follow a delta of events: `composed` in place, at the price of the other.

    >>> first = {1: (None, "x"), 2: ("y", None)}
    >>> compose_into(first, {1: ("x", None), 3: (None, "z")})
    >>> first
    {2: ('y', None), 3: (None, 'z')}
    """
    for place, (old, new) in then.items():
        if place in first:
            old = first[place][0]  # noqa: PLW2901 - what was there before both
        if old is not new and (old is None or new is None or not same_event(old, new)):
            first[place] = (old, new)
        else:
            first.pop(place, None)


def join_into(found: Delta, other: Delta) -> None:
    """Add the delta of another part of one stream, such as a key.

    An event that moves from one part to another is deleted from one and inserted into the other, at
    one place.
    """
    twice = [place for place in other if place in found]
    if not twice:
        found |= other
        return
    for place, change in other.items():
        old, new = found.pop(place, (None, None))
        old, new = change[0] if old is None else old, change[1] if new is None else new
        if not same_event(old, new):
            found[place] = (old, new)


def netted(gone: Mapping[Place, Event[Any]], come: Mapping[Place, Event[Any]]) -> Delta:
    """Return the delta of outputs that are gone, and of those that are new.

    A timer's output may move from one item's account to another's within one replay, so both are
    collected apart, and netted once at its end.
    """
    if not gone:
        return {place: (None, event) for place, event in come.items()}
    return minus(come, gone)


def without_same(delta: Delta, alike: Same) -> Delta:
    """Return a delta without entries whose old and new are the same."""
    return {
        place: change
        for place, change in delta.items()
        if change[0] is not change[1]
        and (change[0] is None or change[1] is None or not alike(*change))
    }


def changed(inserted: Delta, delta: Delta) -> Delta:
    """Return what leads from nothing to a content and a delta of it; other events are the same.

    >>> changed({1: (None, "x"), 2: (None, "y")}, {1: ("x", None), 3: (None, "z")})
    {2: (None, 'y'), 3: (None, 'z')}
    """
    found = dict(inserted)
    for place, (_, new) in delta.items():
        if new is None:
            found.pop(place, None)
        else:
            found[place] = (None, new)
    return found


def differences(before: dict[str, Delta], after: dict[str, Delta]) -> dict[str, Delta]:
    """Return how the streams change, of which these were the outputs before and after."""
    found = dict[str, Delta]()
    for name in {**before, **after}:
        old, new, delta = before.get(name, {}), after.get(name, {}), Delta()
        for place, (_, was) in old.items():
            now = new[place][1] if place in new else None
            if not same_event(was, now):
                delta[place] = (was, now)
        delta |= {place: change for place, change in new.items() if place not in old}
        if delta:
            found[name] = delta
    return found


def follow(first: dict[str, Delta], then: dict[str, Delta]) -> dict[str, Delta]:
    """Return the changes of two batches, one after the other."""
    if not first:
        return then
    for name, delta in then.items():
        compose_into(first.setdefault(name, {}), delta)
    return first
