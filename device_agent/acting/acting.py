"""The parts of an agent that act on values, in their order."""

from device_agent.acting.alerts import Alerts
from device_agent.acting.current import CurrentValues
from device_agent.acting.reactions import ValueReactions
from device_agent.acting.records import Records
from device_agent.agent import Agent
from device_agent.fleet.agreement import Agreements
from device_agent.parts import Part
from device_agent.variables.samples import Samples
from device_agent.variables.variables import Variables


class Acting:
    """All that acts on values; handlers of events may ask for them from now on.

    Args:
        agent: what all parts share.
        samples: the local folds' partials, and the fleet's entries of them.
        variables: what handlers change.
        agreements: how far the fleet agrees.

    Attributes:
        alerts: the alerts.
        parts: in the order in which they are called, after all that takes in what was heard.
    """

    def __init__(
        self, agent: Agent, samples: Samples, variables: Variables, agreements: Agreements
    ) -> None:
        plan = agent.plan
        watched = (*plan.reactions, *plan.alerts.values())
        records = Records(agent, [each.identity for each in watched])
        values = CurrentValues(agent, samples, agreements)
        agent.value_of = values.known
        reactions = ValueReactions(agent, values, variables, records)
        self.alerts = Alerts(agent, values, records)
        self.parts: tuple[Part, ...] = (values, reactions, self.alerts, records)
