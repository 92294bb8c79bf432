"""The table of checks: a new one is a function, and a row here."""

from collections.abc import Iterator, Mapping

from device_agent.console.command.checkup import machine, network, sensing, starting
from device_agent.console.command.checkup.result import Check, CheckResult, Level, Subject
from lasp_edge.reasons import reason_of

CHECKS: Mapping[str, Check] = {
    "options": starting.options,
    "program": starting.program,
    "clock": machine.clock,
    "data": starting.data,
    "room": machine.room,
    "wear": machine.wear,
    "sources": sensing.sensors,
    "broker": network.broker,
    "name": network.name,
    "fleet": network.fleet,
    "unit": machine.unit,
}
"""The name of each check, and the check, in the order in which they are made."""


def examined(subject: Subject) -> Iterator[tuple[str, CheckResult]]:
    """Yield the results of each check in order; one that fails is a result and ends no other."""
    for name, check in CHECKS.items():
        try:
            for result in check(subject):
                yield name, result
        except Exception as error:  # noqa: BLE001 - a machine may be broken in any way
            yield name, CheckResult(Level.WRONG, f"it cannot be looked at: {reason_of(error)}")
