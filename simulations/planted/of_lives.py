"""Bugs of a device's lives and of its sources: what counts, what is reported, and what is kept."""

from collections.abc import Callable, Iterator
from typing import Any

from device_agent.agent.fleet.answers import Answers
from device_agent.agent.fleet.fence import Fence
from device_agent.agent.intake.progress import SourceProgress
from device_agent.agent.intake.source_highs import SourceHighs
from device_agent.agent.variables.samples import Sets
from device_agent.gateway.kept import FleetChanges
from lasp_edge.protocol import witness
from lasp_edge.protocol.fencing import ProcessReport, SourceHigh
from simulations.planted.bug import planted, replaced
from simulations.world.keeper import SimulatedKeeper


@planted
def a_later_life_reads_before_a_lander_has_heard_of_it() -> Iterator[None]:
    """A store is lost; what the life before had sent comes late, and its lines are read again."""

    def lets_read(self: Fence) -> bool:
        return self._waited or not self.closed

    with replaced(Fence, "lets_read", property(lets_read)):
        yield


@planted
def what_a_process_said_itself_makes_its_readings_doubtful() -> Iterator[None]:
    """A device connects again, receives its own report, and refuses what comes a little late."""

    def reports(self: Answers, _own: int, *, is_young: bool) -> Iterator[ProcessReport]:  # noqa: ARG001
        return (report for vouch in self._vouches.values() for report in vouch.reports)

    with replaced(Answers, "reports", reports):
        yield


@planted
def a_source_is_told_to_have_come_as_far_as_its_last_batch() -> Iterator[None]:
    """The last line was a late one: a later life on a lost store reads those before it again."""
    right = SourceHighs.advance

    def advance(self: SourceHighs, source: str, high_us: int, *counted: int) -> None:
        right(self, source, high_us, *counted)
        at = self._id(source)
        self._highs[at] = SourceHigh(at, high_us, self._highs[at].accepted)

    with replaced(SourceHighs, "advance", advance):
        yield


@planted
def a_source_that_gave_nothing_yet_holds_no_promise() -> Iterator[None]:
    """A file is read only after a while, and a sensor has promised the time of its lines."""

    def low_us(
        self: SourceProgress,
        now_us: int,
        end_us: Callable[[], int | None],
        max_skew_us: int,
        counted_us: int,
    ) -> int | None:
        terms = now_us, end_us, max_skew_us, counted_us
        lows = [self._low_us(name, *terms) for name in self._live]
        return min([each for each in lows if each is not None], default=None)

    with replaced(SourceProgress, "low_us", low_us):
        yield


@planted
def a_lander_keeps_what_it_heard_of_a_device_first() -> Iterator[None]:
    """A lander restarts, and tells a device that lost its store of a time long ago."""
    right = SimulatedKeeper.commit

    def commit(self: SimulatedKeeper, changes: FleetChanges) -> None:
        if changes.state is not None:
            lines = {**changes.state.witnessed, **self.state.witnessed}
            changes.state = changes.state._replace(witnessed=lines)
        right(self, changes)

    with replaced(SimulatedKeeper, "commit", commit):
        yield


@planted
def a_restarted_lander_has_forgotten_who_is_retired() -> Iterator[None]:
    """A lander restarts, and counts a device on that an operator had retired."""
    right = SimulatedKeeper.commit

    def commit(self: SimulatedKeeper, changes: FleetChanges) -> None:
        if changes.state is not None:
            changes.state = changes.state._replace(membership=self.state.membership)
        right(self, changes)

    with replaced(SimulatedKeeper, "commit", commit):
        yield


def _aged_from(shift_us: Callable[[list[int], int], int]) -> Callable[..., None]:
    right = Sets._add  # noqa: SLF001

    def add(
        self: Sets, where: tuple[str, str], values: Any, times_us: list[int], accepted_us: int
    ) -> None:
        right(self, where, values, times_us, shift_us(times_us, accepted_us))

    return add


@planted
def samples_age_from_their_own_time() -> Iterator[None]:
    """A reading comes late: it goes before it was kept for as long as the program says."""
    with replaced(Sets, "_add", _aged_from(lambda times_us, _accepted_us: times_us[0])):
        yield


@planted
def of_a_process_the_report_that_came_last_counts() -> Iterator[None]:
    """A frame is overtaken, a card is lost, and what was accepted meanwhile is read again."""
    right = witness._joined  # noqa: SLF001

    def joined(known: tuple[ProcessReport, ...], new: ProcessReport) -> tuple[ProcessReport, ...]:
        others = [each for each in known if each.reporter.nonce != new.reporter.nonce]
        return right(tuple(others), new)

    with replaced(witness, "_joined", joined):
        yield
