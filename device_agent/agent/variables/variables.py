"""The one way to change a variable: what one reading asks for is taken whole, or not at all.

Handlers and collections ask for changes (`PendingUpdates`) while a batch is taken in; samples and
deltas become part of this device's variables together, when the batch is joined. A handler that
waits for a threshold runs once that is reached, in a transaction like any other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from crdts import Lattice
from device_agent.agent.agent import Agent
from device_agent.agent.parts import Part
from device_agent.agent.variables.derived import Derived
from device_agent.agent.variables.samples import Samples
from device_agent.agent.variables.states import OwnState, SharedState
from lasp_edge.language.updates import Mutation, Update


@dataclass(slots=True)
class PendingUpdates:
    """The checked updates of one batch: samples by column, and joined deltas.

    Attributes:
        samples: (variable, key) -> quantised values and their times.
        deltas: variable -> delta; handlers already see it, the store does not have it yet.
    """

    samples: dict[tuple[str, str], tuple[list[int], list[int]]] = field(default_factory=dict)
    deltas: dict[str, Lattice] = field(default_factory=dict)

    def extend(self, name: str, key: str, values: Sequence[int], times_us: Sequence[int]) -> None:
        """Add quantised samples in the order of their acceptance, each one checked before."""
        known = self.samples.get((name, key))
        if known is None:
            known = self.samples[name, key] = ([], [])
        known[0].extend(values)
        known[1].extend(times_us)

    def add(self, name: str, delta: Lattice) -> None:
        """Add a delta of a variable."""
        if name in self.deltas:
            self.deltas[name] |= delta
        else:
            self.deltas[name] = delta


class Variables(Part):
    """The variables that this device writes.

    Args:
        agent: what all parts share.
        samples: the variables that hold samples.
        derived: is given what is joined into shared variables.

    Attributes:
        shared_states: the shared variables by name.
    """

    name = "variables"

    def __init__(self, agent: Agent, samples: Samples, derived: Derived) -> None:
        self._agent = agent
        self._samples = samples
        self._sampled = samples.variables
        self.shared_states = {
            name: SharedState(
                agent, variable, derived.follow if name in agent.plan.followed else None
            )
            for name, variable in agent.plan.shared_variables.items()
            if name not in self._sampled
        }
        self._states: dict[str, OwnState] = {
            name: self.shared_states.get(name) or OwnState(agent, variable)
            for name, variable in agent.plan.own_variables.items()
            if name not in self._sampled
        }

    def shared(self) -> dict[str, object]:
        """Return the values of the shared variables, as this device has heard of them."""
        return {name: state.whole.value for name, state in sorted(self.shared_states.items())}

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
            if len(requested) > 1 and name not in ahead:
                ahead[name] = self._states[name].whole.copy()
            state = ahead[name] if name in ahead else self._states[name].whole
            delta = getattr(state, mutator)(self._agent.replica, *arguments)
            deltas.append((name, delta))
            if name in ahead:
                ahead[name] |= delta
        for (name, key), value, time_us in samples:
            updates.extend(name, key, (value,), (time_us,))
        for name, delta in deltas:
            self._states[name].join(delta)
            updates.add(name, delta)

    def record(self, updates: PendingUpdates, accepted_us: int) -> None:
        """Join what a batch asked for; from now on it is this device's contribution.

        Args:
            updates: what the batch's handlers and collections asked for.
            accepted_us: when the batch was accepted.
        """
        self._samples.record(updates.samples, accepted_us)
        for name, delta in sorted(updates.deltas.items()):
            self._states[name].store(delta)


class Reactions(Part):
    """Runs the handlers whose thresholds were reached.

    Args:
        agent: what all parts share.
        derived: tells which thresholds were reached.
        variables: what handlers change.
    """

    name = "reactions"

    def __init__(self, agent: Agent, derived: Derived, variables: Variables) -> None:
        self._plan, self._guard, self._clock = agent.plan, agent.guard, agent.clock
        self._derived = derived
        self._variables = variables

    def tick(self, now_us: int) -> None:
        """Run the handlers that are due, those too that one of them makes due."""
        for index, value in self._derived.take_reached():
            update, pending = Update(self._plan), PendingUpdates()
            try:
                self._plan.functions.reached[index](value, update)
                self._variables.apply(update.changes, pending)
            except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
                self._guard.failed(f"on_threshold of {self._plan.awaited[index].variable}", error)
            else:
                self._variables.record(pending, self._clock.time_us(now_us))
        self._derived.count_failures()
