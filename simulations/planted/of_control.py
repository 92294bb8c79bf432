"""Bugs of windows with parameters: they break the law of `simulations.control`.

They cannot show in most worlds of the other bugs, in which no operator changes a parameter.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from crdts import ControlLog
from device_agent.agent.rebuilding.missing import MissingPanes
from device_agent.agent.state.store import Store
from device_agent.gateway.finality import HeldStarts
from device_agent.gateway.kept import FleetState
from device_agent.gateway.unfinished import UnfinishedWindows
from lasp_edge.language.fleet_regimes import FleetRegimes
from lasp_edge.language.forms import WindowForm
from lasp_edge.language.parameters import value_at
from lasp_edge.language.regimes import WindowRegimes
from lasp_edge.protocol.acceptance import Acceptance, Accepted, Record
from lasp_edge.protocol.commands import CommandFrame
from lasp_edge.protocol.frontier import Liveness
from lasp_edge.protocol.streams import stream_id
from lasp_edge.protocol.window_rows import WindowStart
from simulations.planted.bug import planted, replaced
from simulations.world.keeper import SimulatedKeeper

LAW: Final = "control"
"""What these bugs need: a seed of that proof, and no scenario."""
_planted = partial(planted, needs=LAW)


@_planted
def panes_are_named_by_values() -> Iterator[None]:
    """30, then 28, then 30 again: what came in between is not in the panes of the first time."""

    def stream(self: WindowRegimes, form: WindowForm, pane_us: int) -> int:
        end_us = pane_us + form.span_us
        inside = [time_us for time_us in self._seen_us if pane_us < time_us < end_us]
        values = [
            (time_us - pane_us, value_at(self._steps[histories[0].name], time_us))
            for time_us in (pane_us, *inside)
            for histories in self._seen
        ]
        return stream_id(self.window.stream, "piece", form.span_us, form.fingerprint, values)

    with replaced(WindowRegimes, "_stream", stream):
        yield


@_planted
def each_life_builds_panes_anew() -> Iterator[None]:
    """An agent restarts, builds a pane that a former life had built, and all of it counts twice."""
    with replaced(Store, "panes_between", lambda *_arguments: []):
        yield


@_planted
def a_promise_under_another_log_counts() -> Iterator[None]:
    """A device is deaf to entries alone: windows are final under the old ones, and revised."""
    right = Acceptance.take_beat

    def take_beat(self: Acceptance, *arguments: Any) -> None:
        known, self.control = self.control, None
        try:
            right(self, *arguments)
        finally:
            self.control = known

    with replaced(Acceptance, "take_beat", take_beat):
        yield


@_planted
def what_is_held_is_forgotten_at_a_restart() -> Iterator[None]:
    """A gateway is killed while it holds windows: they are never revised, or too soon."""
    right = SimulatedKeeper.restored

    def restored(self: SimulatedKeeper) -> FleetState:
        return right(self)._replace(held=())

    with replaced(SimulatedKeeper, "restored", restored):
        yield


@_planted
def held_windows_are_released_before_their_end() -> Iterator[None]:
    """All have promised past the start of a held window, and it is not made again at its end."""

    def release(self: HeldStarts, promised_us: int, longest_us: Callable[[str], int]) -> None:
        kept = [(max(span.first_us, promised_us), span) for span in self.spans]
        self.spans = tuple(
            span._replace(first_us=first_us)
            for first_us, span in kept
            if first_us <= span.last_us and promised_us - longest_us(span.window) < span.last_us
        )

    with replaced(HeldStarts, "release", release):
        yield


@_planted
def a_promise_passes_what_is_still_to_be_built() -> Iterator[None]:
    """A device is slow to build: its windows are revised without its panes, and once more."""

    def bounded_us(_self: MissingPanes, low_us: int | None) -> int | None:
        return low_us

    with replaced(MissingPanes, "bounded_us", bounded_us):
        yield


@_planted
def what_is_still_to_be_built_is_forgotten_with_the_next_entry() -> Iterator[None]:
    """An operator speaks once more while a device still builds panes: it never makes these."""
    right = MissingPanes.follow

    def follow(self: MissingPanes, log: ControlLog) -> None:
        for pieces in self._unbuilt.values():
            pieces.clear()
        right(self, log)

    with replaced(MissingPanes, "follow", follow):
        yield


@_planted
def what_is_said_of_one_device_is_not_known_to_the_gateway() -> Iterator[None]:
    """One device has an offset of its own: its panes are taken for those of no window."""

    def of(self: FleetRegimes, window: str, _device: str = "") -> WindowRegimes:
        return self._regimes[window, ""]

    with replaced(FleetRegimes, "of", of):
        yield


@_planted
def an_entry_is_numbered_by_what_was_heard_alone() -> Iterator[None]:
    """Somebody sets a parameter where nobody hears it: an entry from before it overrules it."""
    right = ControlLog.set

    def set_(self: ControlLog, *entry: Any, least: int = 1) -> ControlLog:
        return right(self, *entry, least=min(least, 1))

    with replaced(ControlLog, "set", set_):
        yield


@_planted
def a_window_that_waits_keeps_the_end_that_it_had() -> Iterator[None]:
    """An operator makes a window longer that has no row yet: it is due before it is over."""
    right = UnfinishedWindows.wait

    def wait(self: UnfinishedWindows, at: WindowStart, end_us: int) -> None:
        right(self, at, self.waiting.get(at, end_us))

    with replaced(UnfinishedWindows, "wait", wait):
        yield


@_planted
def an_entry_forgets_how_far_who_promises_less_had_promised() -> Iterator[None]:
    """A late reading comes, then an entry: rows name a device that had sent all before both."""
    right = Liveness.voided

    def voided(self: Liveness) -> Liveness:
        return right(self._replace(furthest_us={}))

    with replaced(Liveness, "voided", voided):
        yield


@_planted
def a_window_is_held_for_ever() -> Iterator[None]:
    """An operator spoke of the past once: no pane of that time is ever deleted."""

    def release(_self: HeldStarts, _promised_us: int, _longest_us: Callable[[str], int]) -> None:
        return None

    with replaced(HeldStarts, "release", release):
        yield


@partial(planted, needs="operated")
def a_promise_that_came_with_an_entry_is_under_it() -> Iterator[None]:
    """A promise and an entry come with one commit: the promise counts as if it knew the entry."""
    right = Acceptance.take_command

    def take_command(
        self: Acceptance, frame: CommandFrame, record: Record, accepted: Accepted
    ) -> None:
        before = accepted.promises, accepted.begun
        right(self, frame, record, accepted)
        accepted.promises, accepted.begun = before

    with replaced(Acceptance, "take_command", take_command):
        yield
