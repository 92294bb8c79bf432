"""Bounds that operators change: how many samples each key's set keeps, as its samples come.

The bound of a set is that at the greatest time of the samples that came to it. So samples are cut
where their times pass a change, and are added under the bound of their time, however they were
batched.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

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
    """

    def __init__(
        self, variables: Iterable[Variable], parameters: Mapping[str, Parameter], log: ControlLog
    ) -> None:
        self._parameters = {v.name: parameters[v.bound] for v in variables if v.bound}
        self._steps: dict[str, BoundSteps] = {}
        self._greatest_us: dict[VariableId, int] = {}
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
        """Take what the store holds: its times, and the bound that it had reached.

        The sample that reached it may have left since, where later ones had earlier times.
        """
        if not state:
            return
        greatest_us = max(time_us for time_us, _, _ in state.samples())
        steps = self._steps[where[0]]
        if bound_at(steps, greatest_us).samples != state.bound:
            later = (
                from_us
                for from_us, bound in steps
                if from_us > greatest_us and bound.samples == state.bound
            )
            greatest_us = next(later, greatest_us)
        self._greatest_us[where] = greatest_us

    def forget(self, where: VariableId) -> None:
        """A key is gone."""
        self._greatest_us.pop(where, None)

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
