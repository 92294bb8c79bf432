"""Handlers that wait for a threshold: run once it is reached, in a transaction like any other."""

from device_agent.agent import Agent
from device_agent.parts import Part
from device_agent.state.counters import error_text
from device_agent.variables.derived import Derived
from device_agent.variables.variables import PendingUpdates, Variables
from lasp_edge.language.updates import Update


class Reactions(Part):
    """Runs the handlers whose thresholds were reached.

    Args:
        agent: what all parts share.
        derived: tells which thresholds were reached.
        variables: what handlers change.
    """

    name = "reactions"

    def __init__(self, agent: Agent, derived: Derived, variables: Variables) -> None:
        self._plan, self._counters, self._clock = agent.plan, agent.counters, agent.clock
        self._derived = derived
        self._variables = variables

    def tick(self, now_us: int) -> None:
        """Run the handlers that are due, those too that one of them makes due."""
        for index, value in self._derived.take_reached():
            update, pending = Update(self._plan), PendingUpdates()
            try:
                self._plan.functions.reached[index](value, update)
                self._variables.apply(update.changes, pending)
            except Exception as error:  # noqa: BLE001 - a user's function may raise anything
                variable = self._plan.awaited[index].variable
                self._counters.note(f"on_threshold of {variable}: {error_text(error)}")
            else:
                self._variables.record(pending, self._clock.time_us(now_us))
        for reason, times in self._derived.take_failures():
            self._counters.note(reason, times)
