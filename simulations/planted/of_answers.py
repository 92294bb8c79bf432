"""Bugs of what sinks answer, and of what they show of windows that are no more."""

from collections.abc import Iterator
from functools import partial

from device_agent.gateway.results import FleetResults
from lasp_edge.protocol.acks import Answer
from lasp_edge.protocol.window_rows import FleetRow
from simulations.planted.bug import planted, replaced

_of_gateways = partial(planted, needs="gateways")


@planted
def what_is_refused_is_not_answered() -> Iterator[None]:
    """A sink cannot take what a device sends, and says nothing: it comes again and again."""

    def add(self: Answer, other: Answer) -> None:
        for (incarnation, nonce), seqs in other.taken.items():
            self.take(incarnation, nonce, seqs)

    with replaced(Answer, "add", add):
        yield


@_of_gateways
def a_row_that_is_gone_is_still_shown() -> Iterator[None]:
    """Operators change what counts in a window: people see a number that no reading is in."""

    def leave(_self: FleetResults, _row: FleetRow) -> None:
        return None

    with replaced(FleetResults, "_leave", leave):
        yield
