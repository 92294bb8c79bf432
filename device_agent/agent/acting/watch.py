"""Which keys of what is watched are to be looked at, and whether its condition has fired."""

from collections.abc import Container, Iterator
from fractions import Fraction
from typing import Any, Protocol

from lasp_edge.evaluation.conditions import TriggerState
from lasp_edge.language.acting import FoldValue, Watched
from lasp_edge.language.triggers import Trigger


class WatchedValues(Protocol):
    """What is watched, by name: the values of folds, or the newest final rows of results."""

    def is_ready(self, name: str) -> bool:
        """Return whether it is known what it is worth."""

    def is_complete(self, name: str) -> bool:
        """Return whether a key that is not here is certainly gone."""

    def is_keyed(self, name: str) -> bool:
        """Return whether it has a value for each key."""

    def keys(self, name: str) -> list[str]:
        """Return its keys that have a value, sorted; without keys the one key ""."""

    def mark(self, name: str) -> Any:
        """Return what differs where a value does."""

    def inputs(self, name: str, key: str) -> str:
        """Return a text of what a value was made from."""

    def exact(self, name: str, key: str, part: str) -> Fraction | None:
        """Return a part of a value, exactly; None without a sample."""

    def trigger(self, watched: Watched) -> Trigger | None:
        """Return the condition of what is watched, as it is now."""

    def value(self, name: str, key: str, part: str = "") -> FoldValue:
        """Return what a key is worth; `part` is the one that is watched, if any."""


class Watch:
    """One watched value, key by key.

    Args:
        values: what is watched.
        watched: which of them, and for what.

    Attributes:
        trigger: the condition, as it is now; None: any change counts.
        states: key -> how the condition stands.
        waiting: keys that are to be looked at again although their value has not moved.
        values: see there.
    """

    def __init__(self, values: WatchedValues, watched: Watched) -> None:
        self.watched = watched
        self.states: dict[str, TriggerState] = {}
        self.waiting: set[str] = set()
        self.values = values
        self.trigger = values.trigger(watched)
        self._mark: tuple[Any, bool] | None = None
        self._seen: dict[str, str] = {}

    @property
    def keys(self) -> Container[str]:
        """The keys that had a value when they were looked at last."""
        return self._seen.keys()

    def moved(self) -> Iterator[tuple[str, bool]]:
        """Yield (key, whether it has a value) of the keys to look at.

        Each is yielded once for each of its values, and as long as it waits.
        """
        name, values = self.watched.variable, self.values
        if not values.is_ready(name):
            return
        before, self.trigger = self.trigger, values.trigger(self.watched)
        if self.trigger != before:  # an operator has changed a level
            self.waiting |= self._seen.keys()
        mark = (values.mark(name), values.is_complete(name))
        if mark == self._mark:
            yield from [(key, key in self._seen) for key in sorted(self.waiting)]
            return
        self._mark = mark
        keys = values.keys(name)
        known = self._seen.keys() | (self.states.keys() if mark[1] else ())
        gone = sorted(known.difference(keys))
        for key in keys:
            inputs = values.inputs(name, key)
            if self._seen.get(key) != inputs or key in self.waiting:
                self._seen[key] = inputs
                yield key, True
        for key in gone:
            self._seen.pop(key, None)
            yield key, False
            self.states.pop(key, None)
            self.waiting.discard(key)

    def step(self, key: str, *, has_value: bool, time_us: int | None) -> bool:
        """Look at the condition for a key; return whether it has fired, or is armed again, now.

        What a fold of the user's raises is passed on.
        """
        watched, trigger = self.watched, self.trigger
        assert trigger is not None, "only what has a condition is stepped"
        state = self.states.setdefault(key, TriggerState())
        number = None
        if has_value:
            number = self.values.exact(watched.variable, key, watched.part)
        turned = state.step(trigger, number, time_us)
        untimed = time_us is None and trigger.holds(number, fired=state.fired)
        if state.is_pending or (untimed and not state.fired):
            self.waiting.add(key)
        else:
            self.waiting.discard(key)
        return turned
