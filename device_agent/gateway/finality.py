"""How far windows are final: in a turn, after a restart, and while rows are held back."""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from typing import Final

from crdts.frontier import Promise
from device_agent.gateway.kept import FleetState
from lasp_edge.language.declarations import Window
from lasp_edge.language.fleet_regimes import StartSpan
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.acceptance import Accepted, Begun
from lasp_edge.protocol.frontier import AwaitedDevices, Coverage, Liveness
from lasp_edge.protocol.limits import EARLIEST_PANE_US, LATEST_PANE_US
from lasp_edge.protocol.lost_stores import (
    EarlierLives,
    LackingStretches,
    LostStretch,
    is_renamed,
    made_since,
    touching,
)
from lasp_edge.protocol.owed import owing
from lasp_edge.protocol.spans import PassedFrontier
from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.protocol.waiting import WindowWaiting
from lasp_edge.protocol.window_rows import FleetRow, listed

EVERY_END: Final = range(EARLIEST_PANE_US, LATEST_PANE_US)
"""The ends of all windows: those at which is looked where a program before left some out."""


def begun_after(
    known: Mapping[str, Begun], accepted: Accepted, promises: Mapping[str, Promise]
) -> Mapping[str, Begun]:
    """Return which windows lack readings of devices, after some have spoken.

    Who connects states to which windows it sends nothing, and takes nothing else back.

    Args:
        known: device -> the windows that lack readings of it, and from when on all are there.
        accepted: what came.
        promises: the newest of each device: an older beat states nothing.
    """
    newest = {
        device: each
        for device, each in accepted.begun.items()
        if promises[device].version == accepted.promises.entries[device].version
    }
    found = {**known, **accepted.begun_before, **newest}
    for device, unsent in accepted.unsent.items():
        stated = (each for each in found.get(device, ()) if each[1] != LATEST_PANE_US)
        found[device] = (*stated, *unsent)
    found = {device: each for device, each in found.items() if each}
    return known if found == known else found


def lacking_stretches(
    lost: Mapping[str, LostStretch],
    before: Mapping[str, LostStretch],
    owed: Mapping[str, int],
    expected: Collection[str],
    known: Liveness,
    earlier: Mapping[str, EarlierLives],
    begun: tuple[Mapping[str, Begun], Mapping[str, Begun]],
) -> LackingStretches:
    """Return the stretches of which devices may lack readings, or still owe them.

    Rows are looked at again in the times that such a stretch takes only now, and in those in which
    a device has made since which readings of a window it lacked.

    Args:
        lost: see `lost_after`.
        before: the same before the present turn.
        owed: see `lasp_edge.protocol.owed`.
        expected: the devices that count.
        known: what is known of devices.
        earlier: see `earlier_after`.
        begun: which windows lack readings of devices, before the present turn and after it.
    """
    found = LackingStretches.of(lost, before, earlier, expected).with_those(owing(owed, known))
    return found.grown_by(made_since(*begun))


class TurnFinality:
    """How sure it is that a window is whole.

    Args:
        coverage: how far results are final, and over whom.
        waiting: which windows are due.
        awaited: returns for whom they wait; it is asked once, and in most turns never.
        promised_us: how far all have promised under the present log; None: nowhere, or no window
            is held for that.
        begun: device -> the windows that lack readings of it, and from when on all are there.
        promises: of each device, by `unvoided`.
        caught_up: the ends of windows that devices have promised past since F has passed them.
        lacking: of which devices readings may be missing.

    Attributes:
        promises: see above.
        lacking, lost, grown: see `LackingStretches`.
    """

    def __init__(
        self,
        coverage: Coverage,
        waiting: WindowWaiting,
        awaited: Callable[[], AwaitedDevices],
        promised_us: int | None,
        begun: Mapping[str, Begun],
        promises: Mapping[str, Promise],
        caught_up: range,
        lacking: LackingStretches,
    ) -> None:
        self.coverage, self.waiting, self.promised_us = coverage, waiting, promised_us
        self._awaited, self.promises, self.caught_up = awaited, promises, caught_up
        self._begun = {
            device: dict(each) for device, each in begun.items() if device in coverage.expected
        }
        self.lacking, self.lost, self.grown = lacking

    def excluded(self, window: Window, start_us: int, end_us: int) -> tuple[str, ...]:
        """Return who is left out of a window that was final, or in it with a part of its readings.

        As far as windows are passed: one that is longer now may not be over.
        """
        lacking = self._lacking(window, start_us, end_us)
        behind = [device for device, at_us in self._behind if at_us < end_us]
        return tuple(sorted({*behind, *lacking}) if lacking else behind)

    def _lacking(self, window: Window, start_us: int, end_us: int) -> set[str]:
        lacking = {
            device
            for device, begun in self._begun.items()
            if begun.get(window.stream, start_us) > start_us
        }
        return lacking | touching(self.lacking, start_us, end_us)

    def named(
        self, window: Window, row: FleetRow, wait_us: int, *, is_open: bool, is_held: bool
    ) -> tuple[str, ...]:
        """Return whom the next row of a window names in place of those of a row that is made.

        Args:
            window: of X.
            row: which has the start and the end.
            wait_us: X.
            is_open: it is tentative.
            is_held: devices have not promised past its end under the present log.
        """
        if is_open:
            return self.missing(wait_us, row.end_us)
        excluded = self.excluded(window, row.at.start_us, row.end_us)
        return (
            tuple(sorted({*excluded, *self.missing(wait_us, row.end_us)})) if is_held else excluded
        )

    def differs(
        self,
        current: FleetRow,
        made: FleetRow,
        window: Window,
        named: Callable[[], tuple[str, ...]],
    ) -> bool:
        """Return whether a row that is made has another result than the current one.

        Or whether it names others, where the window was final: no more a device that has sent all
        of it since, one whose readings it may lack, as is known now, and anybody else where the
        window is over again, as it had become longer.

        Args:
            current: the newest row.
            made: the next one.
            window: of both.
            named: returns whom the next one names.
        """
        if current.result() != made.result():
            return True
        if current.status == TENTATIVE or not made.was_over:
            return False
        if current.was_over and not self.renames(current, window):
            return False
        return listed(named()) != listed(current.excluded)

    def renames(self, row: FleetRow, window: Window) -> bool:
        """Return whether a row that is not tentative is to name others.

        A device that it names has sent all of the window since, or it may lack readings of another
        one, as is known now.
        """
        if row.status == TENTATIVE:
            return False
        at_us = (row.at.start_us, row.end_us)
        lost, lacking = touching(self.lost, *at_us), self._lacking(window, *at_us)
        return is_renamed(row.excluded, row.end_us, self.promises, lost, lacking)

    def awaited(self) -> AwaitedDevices:
        """Return for whom windows wait."""
        return self._devices

    @cached_property
    def _devices(self) -> AwaitedDevices:
        return self._awaited()

    @cached_property
    def _behind(self) -> tuple[tuple[str, int], ...]:
        """Who has not promised as far as windows are passed; mostly nobody."""
        frontier_us = self.coverage.frontier
        return () if frontier_us is None else self._devices.behind(frontier_us)

    def missing(self, wait_us: int, end_us: int) -> tuple[str, ...]:
        """Return who is missing in a window of this X that ends then."""
        led = self._devices.led_by(self.coverage.frontier, self.waiting.ends_us.get(wait_us))
        return led.before(end_us)


def served_by(plan: Plan) -> frozenset[int]:
    """Return the definitions by which it is kept over which windows a frontier was moved.

    And the streams of the results over the fleet.
    """
    results = [each.stream for each in plan.fleet_results.values()]
    return frozenset([*results, *(each.definition for each in plan.windows.values())])


def was_left_out(state: FleetState, served: frozenset[int]) -> bool:
    """Return whether a program before left out some of what this one serves."""
    return state.served is not None and not served <= state.served


def passed_of(state: FleetState, windows: Iterable[Window], retain_us: int) -> PassedFrontier:
    """Return how far the frontier of a restarted gateway has passed its windows for sure.

    Those that another program left out, or made by another definition, while it moved the frontier
    are passed up to the floor.
    """
    if state.frontier_us is None or state.served is None:
        return PassedFrontier(state.frontier_us)
    floor_us = state.frontier_us - retain_us - 1
    others = [each.name for each in windows if each.definition not in state.served]
    return PassedFrontier(state.frontier_us, dict.fromkeys(others, floor_us))


class HeldStarts:
    """The starts that wait.

    Args:
        spans: those that waited already.

    Attributes:
        spans: the starts, as they are kept over a restart.
    """

    def __init__(self, spans: Iterable[StartSpan]) -> None:
        self.spans = tuple(spans)

    def hold(self, touched: StartSpan, first_us: int, last_us: int) -> None:
        """Hold a touched span, as far as it is among the starts from one to another."""
        first_us, last_us = max(touched.first_us, first_us), min(touched.last_us, last_us)
        span = touched._replace(first_us=first_us, last_us=last_us)
        if first_us <= last_us and span not in self.spans:
            self.spans += (span,)

    def __contains__(self, at: tuple[str, int]) -> bool:
        """Return whether a window, by name and start, waits."""
        name, start_us = at
        return any(
            span.window == name and span.first_us <= start_us <= span.last_us for span in self.spans
        )

    def release(self, promised_us: int, longest_us: Callable[[str], int]) -> None:
        """Release the starts that all have promised past.

        Args:
            promised_us: how far.
            longest_us: gives how long windows of a name are, at most.
        """
        kept = []
        for span in self.spans:
            first_us = max(span.first_us, promised_us - longest_us(span.window))
            if first_us <= span.last_us and promised_us - longest_us(span.window) < span.last_us:
                kept.append(span._replace(first_us=first_us))
        self.spans = tuple(kept)

    def least_us(self, time_us: int) -> int:
        """Return the first start that waits, or a time if that is less."""
        return min([time_us, *(span.first_us for span in self.spans)])
