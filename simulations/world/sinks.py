"""The sinks of a world: which there are."""

from device_agent.gateway.core import WaitingTerms
from lasp_edge.language.halves import parted_scans
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.sinks import DEFAULT_SINK
from lasp_edge.units import SECOND_US
from simulations.world.fleet_streamed import order_of
from simulations.world.gateway import VirtualGateway
from simulations.world.landed import LandedState
from simulations.world.lander_process import VirtualLanderProcess
from simulations.world.landing import VirtualLander, VirtualSink
from simulations.world.scenario import ARCHIVE, Scenario

SOON_US = 8 * SECOND_US
"""Microseconds for which every third world's gateways wait for a silent device, and listen first:
then windows are final in short runs, too."""
AnySink = VirtualSink[LandedState]
"""A lander or a gateway."""


def sinks_of(scenario: Scenario, plan: Plan, terms: WaitingTerms, start_us: int) -> list[AnySink]:
    """Return the sinks of a scenario."""
    terms = terms if scenario.expected is None else terms._replace(roster=scenario.expected)
    wait_s = order_of(scenario).wait_s if scenario.ordered else scenario.wait_s
    if scenario.ordered or wait_s:
        terms = terms._replace(tentative_after_us=wait_s * SECOND_US)
    if scenario.sinks_retain_s and not (scenario.ordered or scenario.scans):
        terms = terms._replace(retain_us=scenario.sinks_retain_s * SECOND_US)
    soon = terms._replace(dead_after_us=SOON_US) if scenario.seed % 3 == 0 else terms
    names = (DEFAULT_SINK, ARCHIVE) if scenario.archive else (DEFAULT_SINK,)

    # Events that stay on their devices need a gateway, which publishes the others.
    gateways = scenario.gateways or ((DEFAULT_SINK,) if parted_scans(plan) else ())

    def sink(name: str) -> AnySink:
        if name in gateways:
            return VirtualGateway(plan, name, soon, scenario.seed, start_us)
        if name in scenario.landers:
            return VirtualLanderProcess(plan, name, terms, scenario.seed, start_us)
        return VirtualLander(plan, name, terms)

    found = [sink(name) for name in names]
    found[-1].down_until = scenario.joins_at
    return found
