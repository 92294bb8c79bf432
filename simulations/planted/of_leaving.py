"""Bugs of what has left a device or a sink, of what is believed of it, and of what people see."""

from collections.abc import Iterator, Mapping
from functools import partial

from crdts.frontier import Promise
from device_agent.agent.intake.intake import Intake
from device_agent.agent.intake.source_highs import SourceHighs
from device_agent.agent.panes.flights import Flights
from device_agent.agent.panes.sender import PaneSender
from device_agent.agent.parts import StoreReader
from device_agent.agent.stored_rows import EntryKey, WaitingRow
from device_agent.agent.timing.waiting import Waiting
from device_agent.gateway import core as gateway_core
from device_agent.gateway.kept import WriterOfPanes
from device_agent.gateway.panes import KeyedPane
from device_agent.gateway.results import FleetResults
from lasp_edge.folds.columns import Partial
from lasp_edge.protocol import lost_stores
from lasp_edge.protocol.acceptance import Begun
from lasp_edge.protocol.frontier import Liveness, reach_us
from lasp_edge.protocol.lost_stores import EarlierLives, LostStretch
from simulations.planted.bug import planted, replaced

_of_gateways = partial(planted, needs="gateways")


@planted
def silence_outlives_a_connection() -> Iterator[None]:
    """A sink was away, and the device connects again: it goes on with the longest time-outs."""
    right = Flights.abandon_all

    def abandon_all(self: Flights) -> set[EntryKey]:
        misses = self._misses
        entries = right(self)
        self._misses = misses
        return entries

    with replaced(Flights, "abandon_all", abandon_all):
        yield


@planted
def what_a_link_refused_counts_as_tried() -> Iterator[None]:
    """The link is full for a second: what did not leave waits as if it had been sent again."""
    right = PaneSender.take_back

    def take_back(self: PaneSender, number: int) -> None:
        sent = self._sent
        right(self, number)
        for pane in sent:
            self._panes.entries[pane].tries += 1

    with replaced(PaneSender, "take_back", take_back):
        yield


@planted
def sources_hear_before_it_is_durable() -> Iterator[None]:
    """The power goes in a commit: its readings were acknowledged, and nobody gives them again."""
    right = Intake.read

    def read(self: Intake, store: StoreReader, now_us: int) -> None:
        right(self, store, now_us)
        self.committed()

    with replaced(Intake, "read", read):
        yield


@planted
def more_count_twice_than_were_accepted() -> Iterator[None]:
    """Two former lives report how far they had come: the sum is more than there is."""

    def count(self: SourceHighs, source: int, more: int) -> None:
        self._twice[source] = self._twice.get(source, 0) + more
        self.maybe_twice += more
        self._changed, self._is_twice_stored = True, False

    with replaced(SourceHighs, "_count_maybe_twice", count):
        yield


@planted
def readings_of_another_boot_are_dated_as_of_this_one() -> Iterator[None]:
    """A Pi without a clock loses its power twice: what came before the second time is misplaced."""
    right = Waiting._dated_us  # noqa: SLF001 - a bug is planted from outside

    def dated_us(self: Waiting, row: WaitingRow, now_us: int) -> int | None:
        return right(self, row._replace(boot=self._timing.boot), now_us)

    with replaced(Waiting, "_dated_us", dated_us):
        yield


@_of_gateways
def an_entry_of_the_same_seq_is_taken_again() -> Iterator[None]:
    """An answer is lost, and the entry comes again: it is committed once more."""
    right = KeyedPane.join

    def join(self: KeyedPane, writer: WriterOfPanes, seq: int, partial: Partial) -> bool:
        is_new = right(self, writer, seq, partial)
        return is_new or self._seqs[writer] == seq

    with replaced(KeyedPane, "join", join):
        yield


@planted
def the_stretch_of_a_lost_store_is_empty() -> Iterator[None]:
    """A card is lost with readings that landed nowhere: their window is final, and names nobody."""
    right = lost_stores.lost_after

    def lost_after(
        known: Mapping[str, LostStretch],
        begun: Mapping[str, Begun],
        earlier: Mapping[str, EarlierLives],
    ) -> Mapping[str, LostStretch]:
        found = right(known, begun, earlier)
        return {device: (until_us, until_us) for device, (_, until_us) in found.items()}

    with replaced(gateway_core, "lost_after", lost_after):
        yield


@_of_gateways
def results_are_not_shown_again() -> Iterator[None]:
    """Another broker takes the place of the one before: quiet rooms are shown nowhere."""

    def connected(self: FleetResults) -> None:
        if self._timer is not None:
            self._timer.restart()

    with replaced(FleetResults, "connected", connected):
        yield


@planted
def a_final_row_does_not_hear_of_a_lost_store() -> Iterator[None]:
    """A new life promises before it knows of the lost one: what is final by then names nobody."""
    with replaced(lost_stores, "grown", lambda _before, _after, _earlier: range(0)):
        yield


@planted
def what_the_present_life_promised_is_all_here() -> Iterator[None]:
    """A new life promises, and hears then of a lost one: its own promise stands for the former."""
    right = lost_stores.earlier_after

    def earlier_after(
        known: Mapping[str, EarlierLives],
        before: Liveness,
        came: Mapping[str, Promise],
        frontier_us: int | None,
    ) -> Mapping[str, EarlierLives]:
        found = right(known, before, came, frontier_us)
        promised = before.promises.entries
        return {
            device: each._replace(reached_us=max(each.reached_us, reach_us(promised.get(device))))
            for device, each in found.items()
        }

    with replaced(gateway_core, "earlier_after", earlier_after):
        yield
