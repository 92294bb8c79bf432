"""Which events must be in order across devices, and which may stay where they are read.

Events are the nodes of a graph, and pairs that depend on each other its edges. If one event of each
pair is in order, all is: those are a *vertex cover*, and an event that depends on itself is in
each. All others are local. Of a cover that has another one inside, nobody has any use.

    >>> covers((("end", "made"), ("end", "end")))
    [('end',)]
    >>> covers((("a", "b"), ("b", "c")))
    [('b',), ('a', 'c')]

Source: dependence relations and plans after Flumina (`synchronised`).
"""

from collections.abc import Iterable
from itertools import combinations

MOST_EVENTS = 12
"""Events of which all choices are weighed: 4,096 at most."""

Pairs = Iterable[tuple[str, str]]


def covers(depends: Pairs) -> list[tuple[str, ...]]:
    """Return all minimal choices of events that are in order, those of fewest events first."""
    pairs = {frozenset(pair) for pair in depends}
    names = sorted({name for pair in pairs for name in pair})
    found: list[tuple[str, ...]] = []
    for count in range(len(names) + 1):
        for chosen in combinations(names, count):
            is_smaller_known = any(set(each) < set(chosen) for each in found)
            if not is_smaller_known and all(pair & set(chosen) for pair in pairs):
                found.append(chosen)
    return found
