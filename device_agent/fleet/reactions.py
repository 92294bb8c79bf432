"""Handlers that wait for a threshold: run once it is reached, in a transaction like any other."""

from device_agent.fleet.derived import Derived
from device_agent.fleet.pending_updates import PendingUpdates
from device_agent.fleet.variables import Variables
from device_agent.parts import Part
from device_agent.state.counters import Counters, error_text
from lasp_edge.language.plan import Plan
from lasp_edge.language.updates import Update


class Reactions(Part):
    """Runs the handlers whose thresholds were reached.

    Args:
        plan: the program's plan.
        derived: tells which thresholds were reached.
        variables: what handlers change.
        counters: where failures are counted.
    """

    name = "reactions"

    def __init__(
        self, plan: Plan, derived: Derived, variables: Variables, counters: Counters
    ) -> None:
        self._plan = plan
        self._derived = derived
        self._variables = variables
        self._counters = counters

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
                self._variables.record(pending, now_us)
        for reason, times in self._derived.take_failures():
            self._counters.note(reason, times)
