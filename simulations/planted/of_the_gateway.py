"""Bugs of a gateway: its process, its file, its panes, and for whom its windows wait."""

from collections.abc import Collection, Iterable, Iterator
from functools import partial
from typing import Any, Final

from device_agent.gateway import store as gateway_store
from device_agent.gateway.alerts import FleetAlerts
from device_agent.gateway.core import GatewayCore
from device_agent.gateway.finality import TurnFinality
from device_agent.gateway.kept import FleetChanges, FleetState, KeptEntry
from device_agent.gateway.panes import FleetPanes
from device_agent.gateway.results import FleetResults
from device_agent.gateway.run import GatewayRun
from device_agent.gateway.store import FleetStore
from device_agent.gateway.windows import FleetWindows
from lasp_edge.protocol import frontier
from lasp_edge.protocol.acceptance import Acceptance, Accepted, PaneRows, Record
from lasp_edge.protocol.frames import BeatFrame
from lasp_edge.protocol.frontier import Liveness
from lasp_edge.protocol.replies import Replies
from lasp_edge.protocol.window_rows import FleetRow, WindowStart
from simulations.planted.bug import planted, replaced

NEEDED: Final = "gateways"
_of_gateways = partial(planted, needs=NEEDED)
_of_sinks = partial(planted, needs="sinks_retain_s")


@_of_gateways
def the_gateway_answers_before_its_commit() -> Iterator[None]:
    """The power goes after an answer and before the commit: a device forgets what nobody holds."""
    right_commit, right_send = GatewayRun._commit, GatewayRun._send  # noqa: SLF001
    late: dict[int, list[FleetChanges]] = {}

    def commit(self: GatewayRun) -> None:
        pending, store = late.setdefault(id(self), []), self._store
        vars(store)["commit"] = pending.append
        try:
            right_commit(self)
        finally:
            del vars(store)["commit"]

    def send(self: GatewayRun, link: Any) -> None:
        right_send(self, link)
        for changes in late.pop(id(self), ()):
            self._store.commit(changes)

    with replaced(GatewayRun, "_commit", commit), replaced(GatewayRun, "_send", send):
        yield


@planted
def keys_that_differ_in_case_are_one_to_the_gateway() -> Iterator[None]:
    """Two rooms are called Bad and bad: their windows are one, of both of them."""
    right = FleetPanes.join

    def join(self: FleetPanes, rows: PaneRows) -> Iterator[KeptEntry]:
        keys = tuple([key.casefold() for key in rows.block.keys])
        return right(self, rows._replace(block=rows.block._replace(keys=keys)))

    with replaced(FleetPanes, "join", join):
        yield


@_of_gateways
def the_gateway_prunes_panes_where_windows_are_final() -> Iterator[None]:
    """A reading comes late, its window is computed again, and what it held before is gone."""

    def panes_below(self: FleetWindows, frontier_us: int) -> dict[int, int]:
        return dict.fromkeys(_below(self, frontier_us), frontier_us)

    _below = FleetWindows.panes_below
    with replaced(FleetWindows, "panes_below", panes_below):
        yield


@planted
def a_device_of_the_roster_that_was_never_heard_is_not_waited_for() -> Iterator[None]:
    """A gateway starts, and a window is final before a device on the roster had time to speak."""
    right = frontier._standing  # noqa: SLF001 - a bug is planted from outside

    def standing(liveness: Liveness, roster: Collection[str] | None, dead_after_us: int) -> Any:
        return right(liveness, roster, dead_after_us)._replace(unheard=())

    with replaced(frontier, "_standing", standing):
        yield


@planted
def a_beat_that_the_broker_kept_is_a_promise() -> Iterator[None]:
    """Somebody kept an old beat at the broker: a device that is dead speaks at each connection."""
    right = Acceptance.take_beat

    def take_beat(self: Acceptance, frame: BeatFrame, record: Record, accepted: Accepted) -> None:
        right(self, frame, record._replace(retained=False), accepted)

    with replaced(Acceptance, "take_beat", take_beat):
        yield


@_of_gateways
def a_row_in_the_store_is_not_found_again() -> Iterator[None]:
    """A gateway restarts, a reading comes late, and its window begins with revision 0 once more."""

    def row(_self: FleetStore, _at: WindowStart) -> FleetRow | None:
        return None

    with replaced(FleetStore, "row", row):
        yield


@_of_gateways
def a_list_of_names_is_written_with_commas_alone() -> Iterator[None]:
    """A device has a comma in its name: who is missing in a window is two that nobody knows."""

    def names_text(names: Iterable[str]) -> str:
        return ",".join(names)

    with replaced(gateway_store, "names_text", names_text):
        yield


@_of_gateways
def a_gateway_keeps_the_members_that_it_began_with() -> Iterator[None]:
    """A device is retired, the gateway restarts, the broker has forgotten it: it is waited for."""
    right = GatewayCore._state_after  # noqa: SLF001

    def state_after(self: GatewayCore, accepted: Accepted) -> FleetState:
        return right(self, accepted)._replace(membership=self._state.membership)

    with replaced(GatewayCore, "_state_after", state_after):
        yield


@_of_gateways
def windows_without_a_row_are_forgotten_at_a_restart() -> Iterator[None]:
    """A window waits for a device that is off, and the gateway restarts: it never has a row."""
    right = FleetWindows._restore  # noqa: SLF001

    def restore(self: FleetWindows, name: str, passed_us: int | None) -> None:
        right(self, name, passed_us)
        self.unfinished.waiting.clear()

    with replaced(FleetWindows, "_restore", restore):
        yield


@_of_sinks
def late_readings_are_taken_until_a_windows_start_is_too_old() -> Iterator[None]:
    """A reading comes late, in the time for it, and is acknowledged: no window is made with it."""

    def starts_over(
        self: FleetWindows, stream: int, device: str, pane_us: int, frontier_us: int | None
    ) -> list[int]:
        every = right(self, stream, device, pane_us, frontier_us)
        if frontier_us is None:
            return every
        return [start_us for start_us in every if start_us >= frontier_us - self._retain_us]

    right = FleetWindows._starts_over  # noqa: SLF001
    with replaced(FleetWindows, "_starts_over", starts_over):
        yield


@_of_sinks
def panes_are_pruned_where_windows_that_begin_there_are_closed() -> Iterator[None]:
    """A window still takes late readings, and its first pane is gone: what that held is missing."""

    def panes_below(self: FleetWindows, frontier_us: int) -> dict[int, int]:
        return dict.fromkeys(right(self, frontier_us), frontier_us - self._retain_us)

    right = FleetWindows.panes_below
    with replaced(FleetWindows, "panes_below", panes_below):
        yield


@_of_sinks
def a_window_that_ends_at_the_floor_takes_no_late_reading() -> Iterator[None]:
    """A reading comes as late as it may, and the window that ends just there goes without it."""
    right = FleetWindows._starts_over  # noqa: SLF001

    def starts_over(
        self: FleetWindows, stream: int, device: str, pane_us: int, frontier_us: int | None
    ) -> list[int]:
        window = self._regimes.window_of(stream)
        found = right(self, stream, device, pane_us, frontier_us)
        if frontier_us is None or window is None:
            return found
        floor_us, regimes = frontier_us - self._retain_us, self._regimes.of(window.name, device)
        return [each for each in found if each + regimes.form_at(each).size_us != floor_us]

    with replaced(FleetWindows, "_starts_over", starts_over):
        yield


@_of_gateways
def an_answer_of_a_gateway_names_the_commit_before_it() -> Iterator[None]:
    """A gateway's file is cut by one commit, and a device takes what was in it for landed."""
    right = Replies.owe

    def owe(self: Replies, accepted: Accepted, now_us: int, commit: int = 1) -> None:
        right(self, accepted, now_us, commit - 1)

    with replaced(Replies, "owe", owe):
        yield


@_of_gateways
def a_gateway_counts_no_device_that_is_silent() -> Iterator[None]:
    """A device is silent for long, and people read that the fleet has one less."""
    right = FleetResults._standing  # noqa: SLF001 - a bug is planted from outside

    def standing(self: FleetResults) -> dict[str, Any]:
        found = right(self)
        return {**found, "devices": found["devices"] - len(found["except"])}

    with replaced(FleetResults, "_standing", standing):
        yield


@_of_gateways
def a_tentative_row_waits_for_nobody() -> Iterator[None]:
    """A device is behind the others, and nobody reads that windows wait for it."""
    with replaced(TurnFinality, "missing", lambda _self, _wait_us, _end_us: ()):
        yield


@_of_gateways
def a_gateway_remembers_of_no_alert_how_it_stood() -> Iterator[None]:
    """A gateway restarts while an alert is on, with a value between its levels: it is off again."""

    def remembered(_self: FleetAlerts) -> str:
        return ""

    with replaced(FleetAlerts, "remembered", remembered):
        yield
