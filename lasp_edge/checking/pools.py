"""Events that the laws of a synchronised scan are tried on: drawn, few or many, and made smaller.

What a function names is met: a number is a value, and how many events there are.

    >>> from lasp_edge.event import Event
    >>> pool = EventPool([Event("made", 3, 0, "pi-1", {})], {}, numbers=(40,))
    >>> pool.lengths[:4]
    [39, 40, 41, 21]
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import Any

from lasp_edge.checking.determinism import methods_of
from lasp_edge.checking.readings import constants_of, plausible
from lasp_edge.event import Event
from lasp_edge.folds.numbers import LIMIT
from lasp_edge.language.declarations import EventType
from lasp_edge.ordered.synchronised import Synchronised

DEVICES = ("pi-1", "pi-2", "pi-3")
MOST_BEFORE, MOST_OF_PART = 8, 3
"""Events of a short case, at most: before a law is asked, and of a part."""
LONGEST = 300
"""Events of a long part, at most."""
_LENGTHS = (0, 1, 20, 70, 150, LONGEST)
_NAMED = 6
"""Of this many values one is a number that the scan's functions name, or a step beside it."""
_WIDE = 4
"""Of this many slices one has values of an event's whole range, so that sums become large, too."""
_SMALLEST = 4
"""Values nearest to zero that are tried in place of another one."""


def numbers_of(scan: Synchronised) -> tuple[float, ...]:
    """Return the numbers that a scan's functions name: a case may hang on one."""
    found: dict[float, None] = {}
    for method in methods_of(scan):
        for constant in constants_of(method):
            if isinstance(constant, int | float) and not isinstance(constant, bool):
                found[constant] = None
    return tuple(found)


class EventPool:
    """Events of one key, by name, those with values near zero first.

    Attributes:
        lengths: of slices that are long, about those that the scan's functions name.
    """

    def __init__(
        self,
        events: Sequence[Event],
        types: Mapping[str, EventType],
        numbers: Sequence[float] = (),
    ) -> None:
        self._by_name: dict[str, list[Event]] = {}
        self._types, self._numbers = types, numbers
        named = [round(each) for each in numbers if MOST_BEFORE < each <= LONGEST]
        near = [length + more for length in named for more in (-1, 0, 1)]
        self.lengths = [*near, *[length // 2 + 1 for length in named], *_LENGTHS]
        for event in sorted(events, key=lambda each: _size(each.value)):
            self._by_name.setdefault(event.name, []).append(event)
        self.names = tuple(sorted(self._by_name))

    def drawn(
        self, random: Random, names: Sequence[str], most: int, device: str = ""
    ) -> tuple[Event, ...]:
        """Return up to `most` events of some names, of any device or of one."""
        longest, wide = most > LONGEST, not random.randrange(_WIDE)
        count = random.choice(self.lengths) if longest else random.randint(0, most)
        count = count if names else 0
        return tuple(
            self.one(random, random.choice(names), device, wide=wide) for _ in range(count)
        )

    def one(self, random: Random, name: str, device: str = "", *, wide: bool = False) -> Event:
        """Return an event of a name; `wide`: it may have any value of its range."""
        event, kind = random.choice(self._by_name[name]), self._types.get(name)
        if kind is not None and not kind.text:
            steps = kind.resolution.quantise(event.value) + random.randint(0, 9)
            low, high = plausible(kind, 1 - LIMIT), plausible(kind, LIMIT - 1)
            if wide and high - low < LIMIT:
                steps = random.randint(low, high)
            elif self._numbers and not random.randrange(_NAMED):
                with suppress(ValueError):
                    steps = kind.resolution.quantise(random.choice(self._numbers))
                    steps += random.choice((-1, 0, 1))
            event = event._replace(value=kind.resolution.real(plausible(kind, steps)))
        return event._replace(device=device or random.choice(DEVICES))

    def smaller(self, event: Event) -> Iterator[Event]:
        """Yield the event with values nearer to zero."""
        for each in self._by_name[event.name][:_SMALLEST]:
            if _size(each.value) < _size(event.value):
                yield event._replace(value=each.value)


def _size(value: Any) -> tuple[Any, ...]:
    """Return what orders values by how simple they are."""
    if isinstance(value, int | float):
        return (0, abs(value), value < 0, "")
    return (1, len(repr(value)), False, repr(value))
