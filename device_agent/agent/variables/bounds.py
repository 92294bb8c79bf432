"""Bounds that operators change: how many samples each key's set keeps, as its samples come.

The bound of a set is that at the greatest time of the samples that came to it. So samples are cut
where their times pass a change, and are added under the bound of their time, however they were
batched. The sample of that time may leave while others stay, where later ones had earlier times: so
the time at which a set reached its bound is stored.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from crdts import BoundedLWWSet, ControlLog
from crdts.control_log import BEFORE_ALL_US
from device_agent.agent.stored_rows import VariableId
from lasp_edge.folds.bounds import Bound
from lasp_edge.language.bounds import BoundSteps, bound_at, bounds_of
from lasp_edge.language.declarations import Parameter
from lasp_edge.variables import Variable


class SampleBounds:
    """The bounds of one device's sets.

    Args:
        variables: those that are bounded sets.
        parameters: of the program, by name.
        log: of operators' commands on parameters.
        reached: what the store held: variable -> key -> a time by which its bound was reached.
    """

    def __init__(
        self,
        variables: Iterable[Variable],
        parameters: Mapping[str, Parameter],
        log: ControlLog,
        reached: Mapping[str, Mapping[str, int]],
    ) -> None:
        self._parameters = {v.name: parameters[v.bound] for v in variables if v.bound}
        self._steps: dict[str, BoundSteps] = {}
        self._greatest_us: dict[VariableId, int] = {}
        self._reached = {name: {**reached.get(name, {})} for name in self._parameters}
        self._changed: set[str] = set()
        self.hear(log)

    def hear(self, log: ControlLog) -> None:
        """Take the operators' log."""
        self._steps = {name: bounds_of(log, each) for name, each in self._parameters.items()}

    def __contains__(self, name: str) -> bool:
        """Return whether the bound of a variable is a parameter."""
        return name in self._parameters

    def of(self, where: VariableId) -> Bound:
        """Return the bound of a key's set."""
        return bound_at(self._steps[where[0]], self._greatest_us.get(where, BEFORE_ALL_US))

    def restore(self, where: VariableId, state: BoundedLWWSet) -> None:
        """Take what the store holds: its times, and when it had reached its bound."""
        name, key = where
        known_us = [self._reached[name][key]] if key in self._reached[name] else []
        times_us = [time_us for time_us, _, _ in state.samples()]
        if found_us := [*known_us, *times_us]:
            self._greatest_us[where] = max(found_us)

    def keep(self, name: str, keys: Container[str]) -> None:
        """Forget what the store held of keys of a variable that are not among these."""
        for key in [each for each in self._reached[name] if each not in keys]:
            self.forget((name, key))

    def forget(self, where: VariableId) -> None:
        """A key is gone."""
        name, key = where
        self._greatest_us.pop(where, None)
        if self._reached.get(name, {}).pop(key, None) is not None:
            self._changed.add(name)

    def reach(self, where: VariableId) -> None:
        """The bound of a key's set became another one: when it was reached is to be stored."""
        self._reached[where[0]][where[1]] = self._greatest_us.get(where, BEFORE_ALL_US)
        self._changed.add(where[0])

    def take_changed(self) -> dict[str, dict[str, int]]:
        """Return what has changed of `reached`, by variable."""
        changed, self._changed = self._changed, set()
        return {name: dict(self._reached[name]) for name in sorted(changed)}

    def cut(self, where: VariableId, times_us: Sequence[int]) -> Iterator[tuple[int, int, Bound]]:
        """Yield which samples come under which bound, as (first, end, bound), in their order."""
        steps, first, bound = self._steps[where[0]], 0, self.of(where)
        greatest_us = self._greatest_us.get(where, BEFORE_ALL_US)
        self._greatest_us[where] = max(greatest_us, *times_us)
        if self.of(where) == bound:
            yield 0, len(times_us), bound
            return
        for at, time_us in enumerate(times_us):
            if time_us <= greatest_us:
                continue
            greatest_us = time_us
            reached = bound_at(steps, time_us)
            if reached != bound:
                if first < at:
                    yield first, at, bound
                first, bound = at, reached
        yield first, len(times_us), bound
