"""Which keys of a watched value are to be looked at, and whether its condition has fired for them.

>>> warm, minute = Trigger.of("", above=28, below=27, for_s=60), 60_000_000
>>> state = TriggerState()
>>> [state.step(warm, Fraction(29), at_us) for at_us in (0, minute - 1, minute)]
[False, False, True]
>>> (state.fired, state.step(warm, Fraction(27), minute + 1), state.fired)
(True, True, False)
"""

from collections.abc import Container, Iterator
from fractions import Fraction

from device_agent.agent.acting.current import CurrentValues
from lasp_edge.language.acting import Watched
from lasp_edge.language.triggers import Trigger


class TriggerState:
    """How a condition stands for one key.

    Attributes:
        fired: it holds, and has held for long enough; until it is armed again.
        since_us: from when on it holds without a break, by a clock that is trusted; None: it does
            not hold, or the time is not known.
    """

    __slots__ = ("fired", "since_us")

    def __init__(self, *, fired: bool = False, since_us: int | None = None) -> None:
        self.fired = fired
        self.since_us = since_us

    def step(self, trigger: Trigger, number: Fraction | None, time_us: int | None) -> bool:
        """Take the value as it is now; return whether `fired` is another one.

        Args:
            trigger: the condition that is looked at.
            number: the value; None where no sample is.
            time_us: what time it is; None while no clock is trusted, and then nothing is known to
                have held for some time.
        """
        if not trigger.holds(number, fired=self.fired):
            turned, self.fired, self.since_us = self.fired, False, None
            return turned
        if self.fired:
            return False
        if time_us is None:
            self.fired = trigger.for_us == 0
            return self.fired
        if self.since_us is None or self.since_us > time_us:  # the clock was set back
            self.since_us = time_us
        self.fired = time_us - self.since_us >= trigger.for_us
        return self.fired

    @property
    def is_pending(self) -> bool:
        """Whether time alone may let it fire."""
        return not self.fired and self.since_us is not None


class Watch:
    """One watched value, key by key.

    Args:
        values: what each fold is worth.
        watched: which one, and for what.

    Attributes:
        trigger: the condition, as it is now; None: any change counts.
        states: key -> how the condition stands.
        waiting: keys that are to be looked at again although their value has not moved.
    """

    def __init__(self, values: CurrentValues, watched: Watched) -> None:
        self.watched = watched
        self.states: dict[str, TriggerState] = {}
        self.waiting: set[str] = set()
        self._values = values
        self.trigger = values.trigger(watched)
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
            number = self._values.exact(watched.variable, key, watched.part)
        turned = state.step(trigger, number, time_us)
        untimed = time_us is None and trigger.holds(number, fired=state.fired)
        if state.is_pending or (untimed and not state.fired):
            self.waiting.add(key)
        else:
            self.waiting.discard(key)
        return turned
