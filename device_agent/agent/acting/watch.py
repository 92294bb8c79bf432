"""Which keys of a watched value are to be looked at: those that moved, and those that wait."""

from collections.abc import Container, Iterator

from device_agent.agent.acting.current import CurrentValues
from device_agent.agent.acting.standing import TriggerState
from lasp_edge.language.acting import Watched


class Watch:
    """One watched value, key by key.

    Args:
        values: what each fold is worth.
        watched: which one, and for what.

    Attributes:
        standings: key -> how the condition stands.
        waiting: keys that are to be looked at again although their value has not moved.
    """

    def __init__(self, values: CurrentValues, watched: Watched) -> None:
        self.watched = watched
        self.standings: dict[str, TriggerState] = {}
        self.waiting: set[str] = set()
        self._values = values
        self._mark: tuple[int, bool] | None = None
        self._seen: dict[str, str] = {}

    @property
    def keys(self) -> Container[str]:
        """The keys that had a value when they were looked at last."""
        return self._seen.keys()

    def moved(self) -> Iterator[tuple[str, bool]]:
        """Yield (key, whether it has a value) of the keys to look at.

        Each is yielded once for each of its values, and as long as it waits.
        """
        name, values = self.watched.variable, self._values
        if not values.is_ready(name):
            return
        mark = (values.mark(name), values.is_complete(name))
        if mark == self._mark:
            yield from [(key, key in self._seen) for key in sorted(self.waiting)]
            return
        self._mark = mark
        keys = values.keys(name)
        known = self._seen.keys() | (self.standings.keys() if mark[1] else ())
        gone = sorted(known.difference(keys))
        for key in keys:
            inputs = values.inputs(name, key)
            if self._seen.get(key) != inputs or key in self.waiting:
                self._seen[key] = inputs
                yield key, True
        for key in gone:
            self._seen.pop(key, None)
            yield key, False
            self.standings.pop(key, None)
            self.waiting.discard(key)

    def step(self, key: str, *, has_value: bool, time_us: int | None) -> bool:
        """Look at the condition for a key; return whether it has fired, or is armed again, now.

        What a fold of the user's raises is passed on.
        """
        watched, trigger = self.watched, self.watched.trigger
        assert trigger is not None, "only what has a condition is stepped"
        standing = self.standings.setdefault(key, TriggerState())
        number = None
        if has_value:
            number = self._values.exact(watched.variable, key, watched.part)
        turned = standing.step(trigger, number, time_us)
        untimed = time_us is None and trigger.holds(number, fired=standing.fired)
        if standing.is_pending or (untimed and not standing.fired):
            self.waiting.add(key)
        else:
            self.waiting.discard(key)
        return turned
