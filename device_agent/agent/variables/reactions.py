"""Handlers that wait for a threshold: run once it is reached, in a transaction like any other."""

from device_agent.agent.agent import Agent
from device_agent.agent.parts import Part
from device_agent.agent.variables.derived import Derived
from device_agent.agent.variables.variables import PendingUpdates, Variables
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
