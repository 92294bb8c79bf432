"""The parts of an agent that act on values, in their order.

A program that watches no value, and an agent that remembers none of a former one, does without the
modules of handlers and alerts.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from device_agent.agent.acting.current import CurrentValues
from device_agent.agent.agent import Agent
from device_agent.agent.fleet.agreement import Agreements
from device_agent.agent.fleet.commands import OperatorCommands
from device_agent.agent.parts import Part
from device_agent.agent.variables.samples import Samples
from device_agent.agent.variables.variables import Variables
from lasp_edge.language.acting import Watched
from lasp_edge.language.raising import device_alerts

if TYPE_CHECKING:
    from device_agent.agent.acting.alerts import Alerts
    from device_agent.agent.acting.watch import WatchedValues
    from device_agent.agent.scans.streams import Streams


class Acting:
    """All that acts on values.

    Args:
        agent: what all parts share.
        samples: the local folds' partials, and the fleet's entries of them.
        variables: what handlers change.
        agreements: how far the fleet agrees.
        commands: the operators' entries of parameters.
        is_connected: returns whether there is a connection to the broker.
        streams: the rows of results; None where the program has no stream of a device.

    Attributes:
        values: what each fold is worth, for handlers that ask.
        alerts: the alerts; None where no value is watched.
        parts: in the order in which they are called, after all that takes in what was heard.
    """

    def __init__(
        self,
        agent: Agent,
        samples: Samples,
        variables: Variables,
        agreements: Agreements,
        commands: OperatorCommands,
        is_connected: Callable[[], bool],
        streams: "Streams | None",
    ) -> None:
        self.values = values = CurrentValues(agent, samples, agreements, commands, is_connected)
        self.alerts: Alerts | None = None
        self.parts: tuple[Part, ...] = (values,)
        if agent.plan.reactions or device_alerts(agent.plan) or agent.facts.acted:
            self._watch(agent, values, variables, streams)

    def _watch(
        self,
        agent: Agent,
        values: CurrentValues,
        variables: Variables,
        streams: "Streams | None",
    ) -> None:
        from device_agent.agent.acting.alerts import Alerts  # noqa: PLC0415 - see the module
        from device_agent.agent.acting.reactions import ValueReactions  # noqa: PLC0415
        from device_agent.agent.acting.records import Records  # noqa: PLC0415

        watched = (*agent.plan.reactions, *device_alerts(agent.plan).values())
        records = Records(agent, [each.identity for each in watched])
        reactions = ValueReactions(agent, values, variables, records)
        self.alerts = Alerts(agent, self._values_of(agent, values, streams), records)
        self.parts = (values, reactions, self.alerts, records)

    @staticmethod
    def _values_of(
        agent: Agent, values: CurrentValues, streams: "Streams | None"
    ) -> Callable[[Watched], "WatchedValues"]:
        """Return what gives the values that an alert watches: those of folds, or rows."""
        if streams is None:
            return lambda _watched: values
        from device_agent.agent.acting.newest_rows import NewestRows  # noqa: PLC0415 - few need it

        rows = NewestRows(agent, streams, values)
        results = agent.plan.device_results
        return lambda watched: rows if watched.variable in results else values
