"""The sinks of a world: which there are."""

from device_agent.gateway.core import WaitingTerms
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.sinks import DEFAULT_SINK
from simulations.world.gateway import VirtualGateway
from simulations.world.landed import LandedState
from simulations.world.landing import VirtualLander, VirtualSink
from simulations.world.scenario import ARCHIVE, Scenario

AnySink = VirtualSink[LandedState]
"""A lander or a gateway."""


def sinks_of(scenario: Scenario, plan: Plan, terms: WaitingTerms, start_us: int) -> list[AnySink]:
    """Return the sinks of a scenario."""
    terms = terms if scenario.expected is None else terms._replace(roster=scenario.expected)
    names = (DEFAULT_SINK, ARCHIVE) if scenario.archive else (DEFAULT_SINK,)
    return [
        VirtualGateway(plan, name, terms, scenario.seed, start_us)
        if name in scenario.gateways
        else VirtualLander(plan, name, terms)
        for name in names
    ]
