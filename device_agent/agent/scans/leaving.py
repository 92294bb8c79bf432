"""The part that sends readings as they are, for streams in one order over the fleet.

A cell of items is a pane entry, which lands like all others; so a promise waits for it, and what is
lost comes again. Each life writes what it has read. Whoever holds the entries of a device unites
them, those of all its lives. A cell that is too large for one entry has several, under keys "1",
"2" and so on: an item that was taken back may be in one, and taken back in another.
"""

from collections.abc import Iterator
from typing import Final

from device_agent.agent.agent import Agent
from device_agent.agent.intake.intake import Intake
from device_agent.agent.panes.panes import Panes
from device_agent.agent.parts import Part, StoreReader
from device_agent.agent.stored_rows import PaneId
from lasp_edge.language.streaming import Leaving
from lasp_edge.ordered.cells import (
    PRESENT,
    RETRACTED,
    Cell,
    cell_of,
    packed,
    unpacked,
)
from lasp_edge.ordered.sent_items import item_of, united

MOST_BYTES: Final = 16_000
"""Bytes of a packed cell, at most: more of it is in another entry."""


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
        self._agent, self._intake, self._panes = agent, intake, panes
        plan = agent.plan
        self._streams = {event: each.stream for event, each in plan.item_streams.items()}
        self._leaving = {event: Leaving(plan, event) for event in self._streams}

    def read(self, store: StoreReader, now_us: int) -> None:
        """Take the readings that came since the last time, before they are committed."""
        cells: dict[tuple[str, int], Cell] = {}
        for each in self._intake.items:
            leaving = self._leaving.get(each.event)
            if leaving is None:
                continue
            item = item_of(each)
            if leaving.leaves(item, each.device):
                cell = cells.setdefault((each.event, cell_of(item.time_us)), {})
                state = RETRACTED if each.retracted else PRESENT
                cell[item] = max(state, cell.get(item, PRESENT))
        for (event, cell_us), cell in sorted(cells.items()):
            for pane, content in self._entries(self._streams[event], cell_us, cell, store):
                self._panes.put(pane, (content,), now_us)

    def _entries(
        self, stream: int, cell_us: int, new: Cell, store: StoreReader
    ) -> Iterator[tuple[PaneId, bytes]]:
        """Yield the entries that hold the new items of a cell, as far as they are new."""
        number, last = self._last(stream, cell_us, store)
        whole = united([last, new])
        if whole == last:
            return
        content = packed(whole)
        if len(content) <= MOST_BYTES:
            yield self._pane(stream, cell_us, number), content
            return
        for at, part in enumerate(_parts(new), start=number + bool(last)):
            yield self._pane(stream, cell_us, at), part

    def _last(self, stream: int, cell_us: int, store: StoreReader) -> tuple[int, Cell]:
        """Return number and items of the last entry of a cell; 0 and no items before the first."""
        number, found = 0, self._panes.held(self._pane(stream, cell_us, 0), store)
        while found is not None:
            following = self._panes.held(self._pane(stream, cell_us, number + 1), store)
            if following is None:
                return number, unpacked(found[0])
            number, found = number + 1, following
        return 0, {}

    def _pane(self, stream: int, cell_us: int, number: int) -> PaneId:
        return self._panes.own(stream, str(number or ""), cell_us)


def _parts(cell: Cell) -> Iterator[bytes]:
    """Yield a cell in packed parts that fit."""
    content = packed(cell)
    if len(content) <= MOST_BYTES or len(cell) == 1:
        yield content
        return
    items = sorted(cell.items())
    for half in (items[: len(items) // 2], items[len(items) // 2 :]):
        yield from _parts(dict(half))
