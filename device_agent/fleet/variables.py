"""The one way to change a variable: what one reading asks for is taken whole, or not at all.

Handlers and collections ask for changes (`PendingUpdates`) while a batch is taken in; samples and
deltas become part of this device's variables together, when the batch is joined.
"""

from collections.abc import Sequence
from typing import Any

from crdts import Lattice, Replica
from device_agent.fleet.derived import Derived
from device_agent.fleet.pending_updates import PendingUpdates
from device_agent.fleet.samples import Samples, count_set_aside
from device_agent.fleet.states import OwnState, SharedState
from device_agent.parts import Part
from device_agent.state.counters import Counters
from device_agent.state.stored import Stored
from lasp_edge.language.plan import Plan
from lasp_edge.language.updates import Mutation


class Variables(Part):
    """The variables that this device writes.

    Args:
        plan: the program's plan.
        replica: this device's replica.
        stored: what the store holds of variables, and where changes go.
        samples: the variables that hold samples.
        derived: is given what is joined into shared variables.
        counters: where stored states are counted that do not fit the program any more.

    Attributes:
        shared_states: the shared variables by name.
    """

    name = "variables"

    def __init__(
        self,
        plan: Plan,
        replica: Replica,
        stored: Stored,
        samples: Samples,
        derived: Derived,
        counters: Counters,
    ) -> None:
        self._replica = replica
        self._samples = samples
        self._sampled = samples.variables
        self.shared_states = {
            name: SharedState(variable, replica, stored, derived.follow)
            for name, variable in plan.shared_variables.items()
        }
        self._states: dict[str, OwnState] = {
            name: self.shared_states.get(name) or OwnState(variable, stored)
            for name, variable in plan.own_variables.items()
            if name not in self._sampled
        }
        for state in self._states.values():
            count_set_aside(counters, state.set_aside)

    def shared(self) -> dict[str, object]:
        """Return the values of the shared variables, as this device has heard of them."""
        return {name: state.fleet.value for name, state in sorted(self.shared_states.items())}

    def become(self, replica: Replica) -> None:
        self._replica = replica

    def apply(self, requested: Sequence[Mutation], updates: PendingUpdates) -> None:
        """Take what was asked for one reading, all of it or, on an error, nothing.

        Raises:
            ValueError: a change does not fit.
        """
        samples: list[tuple[tuple[str, str], Any, int]] = []
        deltas: list[tuple[str, Lattice]] = []
        ahead: dict[str, Lattice] = {}
        for name, mutator, arguments, key in requested:
            if name in self._sampled:
                value, time_us, *_ = arguments
                self._samples.check(name, key, value, time_us)
                samples.append(((name, key), value, time_us))
                continue
            state = ahead[name] if name in ahead else self._states[name].whole
            deltas.append((name, getattr(state, mutator)(self._replica, *arguments)))
            if len(requested) > 1:
                ahead[name] = state | deltas[-1][1]
        columns = updates.samples
        for where, value, time_us in samples:
            known = columns.get(where)
            if known is None:
                known = columns[where] = ([], [])
            known[0].append(value)
            known[1].append(time_us)
        for name, delta in deltas:
            self._states[name].join(delta)
            updates.add(name, delta)

    def record(self, updates: PendingUpdates, accepted_us: int) -> None:
        """Join what a batch asked for; from now on it is this device's contribution.

        Args:
            updates: what the batch's handlers and collections asked for.
            accepted_us: when the batch was accepted.
        """
        for (name, key), (values, times_us) in sorted(updates.samples.items()):
            if values:
                self._samples.add(name, key, values, times_us, accepted_us)
        self._samples.settle_budgets()
        for name, delta in sorted(updates.deltas.items()):
            self._states[name].store(delta)
