"""Where the alerts of a program are raised: where what they watch is made.

A value, and a result of each device, is made on devices; a window, and a result of the order over
the fleet, by gateways.
"""

from collections.abc import Mapping

from lasp_edge.language.acting import Watched
from lasp_edge.language.plan import Plan


def device_alerts(plan: Plan) -> Mapping[str, Watched]:
    """Return the alerts of devices, by name."""
    of_gateways = fleet_alerts(plan)
    return {name: each for name, each in plan.alerts.items() if name not in of_gateways}


def fleet_alerts(plan: Plan) -> Mapping[str, Watched]:
    """Return the alerts of gateways, by name."""
    made = {*plan.windows, *plan.fleet_results} if plan.alerts else set()
    return {name: each for name, each in plan.alerts.items() if each.variable in made}


def has_keys(plan: Plan, stream: str) -> bool:
    """Return whether the items of a stream have keys: those of the scan that gave them."""
    each = plan.streams[stream]
    if each.operator == "scan":
        return each.keyed
    return any(source in plan.streams and has_keys(plan, source) for source in each.sources)
