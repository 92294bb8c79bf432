"""The part that sends readings as they are, for streams in one order over the fleet.

A cell of items is a pane entry, which lands like all others; so a promise waits for it, and what is
lost comes again. Outputs of a device's streams leave in cells, too. Each life writes what it has
read. Whoever holds the entries of a device unites
them, those of all its lives. A cell that is too large for one entry has several, under keys "1",
"2" and so on: an item that was taken back may be in one, and taken back in another.
"""

import operator
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from device_agent.agent.agent import Agent
from device_agent.agent.intake.intake import Intake
from device_agent.agent.panes.panes import Panes
from device_agent.agent.parts import Part, StoreReader
from device_agent.agent.stored_rows import PaneId
from lasp_edge.folds.packed import MAX_BINARY_BYTES
from lasp_edge.language.halves import scan_of
from lasp_edge.language.item_stream import STATED, ItemStream
from lasp_edge.language.streaming import Leaving
from lasp_edge.ordered.answers import kept_answers, sent_answers, stated_at, statement
from lasp_edge.ordered.cells import (
    PRESENT,
    Cell,
    cell_of,
    packed,
    unpacked,
)
from lasp_edge.ordered.deltas import Delta
from lasp_edge.ordered.inputs import column_cells
from lasp_edge.ordered.parted import LeafStage, is_about_order
from lasp_edge.ordered.plain import PART_BYTES, encoded
from lasp_edge.ordered.sent_items import united
from lasp_edge.ordered.sent_outputs import (
    OutputAt,
    OutputContent,
    content_of,
    output_at,
    packed_outputs,
    sent_outputs,
)

if TYPE_CHECKING:
    from device_agent.agent.scans.incomplete import IncompleteAnswers
    from device_agent.agent.scans.shares import Shares

MOST_BYTES: Final = 16_000
"""Bytes of a packed cell, at most: more of it is in another entry."""


class CellForm(NamedTuple):
    """How cells of a kind are packed.

    Attributes:
        joined: of two cells, the second of which is newer.
    """

    packed: Callable[[Any], bytes]
    unpacked: Callable[[bytes], dict[Any, Any]]
    joined: Callable[[Any, Any], dict[Any, Any]]


ITEM_CELLS: Final = CellForm(packed, unpacked, lambda first, then: united([first, then]))
OUTPUT_CELLS: Final = CellForm(packed_outputs, sent_outputs, operator.or_)


class LeavingCells:
    """Puts what is new of cells into pane entries.

    Args:
        panes: the entries.
        form: of the cells.
    """

    def __init__(self, panes: Panes, form: CellForm) -> None:
        self._panes, self._form = panes, form

    def put(
        self, stream: int, cell_us: int, new: dict[Any, Any], store: StoreReader, since_us: int
    ) -> None:
        """Put the new items of a cell into entries of this life, as far as they are new.

        Args:
            stream: of the cell.
            cell_us: where it begins.
            new: the items.
            store: gives what memory has let go.
            since_us: when the first of them was read.
        """
        for pane, content in self._entries(stream, cell_us, new, store):
            self._panes.put(pane, (content,), since_us)

    def _entries(
        self, stream: int, cell_us: int, new: dict[Any, Any], store: StoreReader
    ) -> Iterator[tuple[PaneId, bytes]]:
        """Yield the entries that hold the new items of a cell."""
        number, last = self._last(stream, cell_us, store)
        whole = self._form.joined(last, new)
        if whole == last:
            return
        content = self._form.packed(whole)
        if len(content) <= MOST_BYTES:
            yield self._pane(stream, cell_us, number), content
            return
        for at, part in enumerate(self._parts(new), start=number + bool(last)):
            yield self._pane(stream, cell_us, at), part

    def _last(self, stream: int, cell_us: int, store: StoreReader) -> tuple[int, dict[Any, Any]]:
        """Return number and items of the last entry of a cell; 0 and no items before the first."""
        number, found = 0, self._panes.held(self._pane(stream, cell_us, 0), store)
        while found is not None:
            following = self._panes.held(self._pane(stream, cell_us, number + 1), store)
            if following is None:
                return number, self._form.unpacked(found[0])
            number, found = number + 1, following
        return 0, {}

    def _pane(self, stream: int, cell_us: int, number: int) -> PaneId:
        return self._panes.own(stream, str(number or ""), cell_us)

    def _parts(self, cell: dict[Any, Any]) -> Iterator[bytes]:
        """Yield a cell in packed parts that fit."""
        content = self._form.packed(cell)
        if len(content) <= MOST_BYTES or len(cell) == 1:
            yield content
            return
        items = sorted(cell.items())
        for half in (items[: len(items) // 2], items[len(items) // 2 :]):
            yield from self._parts(dict(half))


class LeavingItems(Part):
    """Puts readings that a stream over the fleet is made from into pane entries.

    Args:
        agent: what all parts share.
        intake: gives the readings.
        panes: the entries.
    """

    name = "leaving"
    is_changed = False

    def __init__(self, agent: Agent, intake: Intake, panes: Panes) -> None:
        self._intake, self._cells = intake, LeavingCells(panes, ITEM_CELLS)
        plan = agent.plan
        sent = plan.item_streams.items()
        self._streams = {name: each.stream for name, each in sent if not each.outputs}
        self._leaving = {event: Leaving(plan, event) for event in self._streams}

    def read(self, store: StoreReader, now_us: int) -> None:
        """Take the readings that came since the last time, before they are committed."""
        read: dict[tuple[str, str], Cell] = {}
        columns = [each for each in self._intake.columns if each.event in self._leaving]
        for (event, device, _), part in column_cells(columns):
            of_event = read.setdefault((event, device), {})
            for item, state in part.items():
                of_event[item] = max(state, of_event.get(item, PRESENT))
        cells: dict[tuple[str, int], Cell] = {}
        for (event, device), items in read.items():
            for item in self._leaving[event].leaving(items, device):
                cells.setdefault((event, cell_of(item.time_us)), {})[item] = items[item]
        for (event, cell_us), cell in sorted(cells.items()):
            self._cells.put(self._streams[event], cell_us, cell, store, now_us)


class LeavingOutputs:
    """Puts outputs of a device's streams, of which one over the fleet is made, into pane entries.

    Args:
        agent: what all parts share.
        panes: the entries.
        shares: what gateways publish; None where no scan has local events.
        incomplete: tells which answers are; None: all are complete.
    """

    def __init__(
        self,
        agent: Agent,
        panes: Panes,
        shares: "Shares | None" = None,
        incomplete: "IncompleteAnswers | None" = None,
    ) -> None:
        self._agent, self._panes, self._shares = agent, panes, shares
        self._incomplete = incomplete
        self._streams = agent.plan.item_streams
        self._cells = LeavingCells(panes, OUTPUT_CELLS)

    def leave(
        self, sent: list[ItemStream], deltas: Mapping[str, Delta], store: StoreReader, now_us: int
    ) -> int:
        """Let the outputs of streams leave that are new, have changed or are gone.

        Returns:
            How many answers left, and statements from which shares this device has gone on.
        """
        answers = sum(
            self._leave(each, delta, store, now_us)
            for each in sent
            if (delta := deltas.get(each.name))
        )
        if self._shares is None:
            return answers
        return answers + self._state(self._shares.take_gone_on(), store, now_us)

    def _state(
        self,
        gone_on: Mapping[tuple[str, int], Collection[bytes]],
        store: StoreReader,
        now_us: int,
    ) -> int:
        """State from which shares of some cells this device has gone on, beside its answers."""
        for (name, cell_us), bases in gone_on.items():
            pane = self._panes.own(self._streams[name].stream, STATED, cell_us)
            content = packed_outputs({stated_at(cell_us): statement(bases, self._life)})
            self._panes.held(pane, store)  # in memory from here on, if there is one
            self._panes.put(pane, (content,), now_us - self._panes.patience_us)
        return len(gone_on)

    @property
    def _life(self) -> tuple[int, int]:
        return self._agent.replica.incarnation, self._agent.beats

    def _leave(self, sent: ItemStream, delta: Delta, store: StoreReader, now_us: int) -> int:
        """Let the outputs of a stream leave, and return how many of them are answers."""
        is_leaf = self._agent.plan.streams[sent.name].operator == LeafStage.operator
        named = scan_of(sent.name) if is_leaf else sent.name
        if is_leaf:
            is_last = None if self._incomplete is None else self._incomplete.of(named)
            delta = sent_answers(kept_answers(delta), self._life, is_last)
        cells: dict[int, dict[OutputAt, OutputContent | None]] = {}
        answers: Counter[int] = Counter()
        for place, (_, event) in delta.items():
            at = output_at(place)
            content = None if event is None else self._small(named, at, content_of(event))
            cells.setdefault(cell_of(place[0]), {})[at] = content
            if is_leaf and is_about_order(place):
                answers[cell_of(place[0])] += 1
        for cell_us, outputs in sorted(cells.items()):
            # All wait for answers: they have waited long enough for others to go along.
            since_us = now_us - self._panes.patience_us if answers[cell_us] else now_us
            self._cells.put(sent.stream, cell_us, outputs, store, since_us)
        return answers.total()

    def _small(self, name: str, at: OutputAt, content: OutputContent) -> OutputContent | None:
        """Return an output; one that no entry can hold is left out, and counted.

        It is counted by its size in KiB: one that grows with every reading has few names.
        """
        size = len(encoded(content))
        whole = size if size <= MOST_BYTES // 2 else len(packed_outputs({at: content}))
        if size <= PART_BYTES and whole <= MAX_BINARY_BYTES:
            return content
        kib, most_kib = -(-max(size, whole) // 1024), PART_BYTES // 1024
        self._agent.counters.note(
            f"failed: {name}: an output of {kib} KiB is not sent, and no row is made of it: it may "
            f"have {most_kib} KiB; keep counts or sums in it, not all values"
        )
        return None
