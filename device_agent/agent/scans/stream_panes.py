"""What streams say as panes: of windows over them, and the rows of results, one pane each.

What a stream says is folded into its window's pane, and what it takes back is folded out of it
again, where the fold has an inverse. A row is replaced by what is said at its place afterwards, or
by a note that there is nothing any more (`lasp_edge.ordered.said`).
"""

from collections.abc import Iterable
from typing import Protocol

from crdts import Replica
from device_agent.agent.agent import Agent
from device_agent.agent.changes import PaneId, PaneRow
from device_agent.agent.intake.pending import StreamItem
from device_agent.agent.panes.cache import PaneCache
from device_agent.agent.panes.panes import Panes
from device_agent.agent.scans.items import Item
from lasp_edge.event import Event
from lasp_edge.folds.columns import Partial
from lasp_edge.language.declarations import StreamResult, Window
from lasp_edge.language.streaming import plain_parts
from lasp_edge.ordered.deltas import Delta
from lasp_edge.ordered.said import packed_row, row_name


class PaneReader(Protocol):
    """What the streams read of the store."""

    def own_panes(
        self, replica: Replica, stream: int, least_us: int, end_us: int
    ) -> list[tuple[PaneId, PaneRow]]:
        """Return a replica's entries of a stream with least_us <= pane start < end_us."""

    def panes_named(self, panes: Iterable[PaneId]) -> list[tuple[PaneId, PaneRow]]:
        """Return those of these entries that are here."""

    def newest_panes(self, stream: int, span_us: int) -> list[tuple[PaneId, PaneRow]]:
        """Return all replicas' entries of a stream that start within a span before its last one."""


class StreamPanes:
    """Brings what streams say into pane entries.

    Args:
        agent: what all parts share.
        panes, cache: the entries.

    Attributes:
        now_us: the time.
    """

    def __init__(self, agent: Agent, panes: Panes, cache: PaneCache) -> None:
        self._agent, self._panes, self._cache = agent, panes, cache
        plan = agent.plan
        self._raw = [w for w in plan.windows.values() if w.source.name in plan.streamed_events]
        self.now_us = 0

    def fold(
        self,
        window: Window,
        delta: Delta,
        store: PaneReader,
        held_before: Iterable[tuple[PaneId, PaneRow]] = (),
    ) -> None:
        """Fold what a stream says into a window's panes, and what it takes back out of them.

        And what they have held before, if the change is from nothing.
        """
        fold, partials = window.fold, dict[PaneId, Partial]()
        for at, row in held_before:
            pane = self._panes.own(window.stream, at.key, at.pane_us)
            held = partials.get(pane, fold.zero)
            partials[pane] = fold.retract(held, row.partial)
        for place in sorted(delta):
            for event, into in zip(delta[place], (False, True), strict=True):
                if event is None:
                    continue
                try:
                    pane, lifted = self._lifted(window, event)
                except BaseException as error:  # noqa: BLE001 - a user's key may raise anything
                    if into:
                        self._agent.guard.failed(f"window {window.name}", error)
                    continue
                held = partials.get(pane, fold.zero)
                partials[pane] = fold.combine(held, lifted) if into else fold.retract(held, lifted)
        self._fold_in(window, partials, store)

    def _lifted(self, window: Window, event: Event) -> tuple[PaneId, Partial]:
        """Return the pane and the partial of what is said.

        Raises:
            ValueError: its value is no number with a step, or its key no text.
        """
        key = self._agent.plan.functions.key(window.name, event)
        lifted = window.fold.lift(window.resolution.quantise(event.value), event.time_us)
        start_us = event.time_us - event.time_us % window.span_us
        return self._panes.own(window.stream, key, start_us), lifted

    def _fold_in(self, window: Window, partials: dict[PaneId, Partial], store: PaneReader) -> None:
        fold, panes = window.fold, self._panes
        self._recall(partials, window.span_us, store)
        for pane, lifted in sorted(partials.items()):
            if lifted == fold.zero:
                continue  # as much was taken back as came
            held = panes.partial(pane)
            joined = lifted if held is None else fold.combine(held, lifted)
            if fold.within_limits(joined):
                panes.fold_in(pane, joined, self.now_us, joined=True)
            else:
                self._agent.counters.note(f"failed: window {window.name}: the partial is too large")

    def take_back(self, taken: StreamItem, store: PaneReader) -> None:
        """Take a reading that was retracted out of the windows over its event."""
        event = self._agent.plan.events[taken.event]
        item = Item(taken.time_us, taken.value, taken.tags)
        made = item.event(event.name, self._agent.replica.device, event.resolution)
        place = item.place(event.name, self._agent.replica.device)
        for window in self._raw:
            if window.source.name == event.name:
                self.fold(window, {place: (made, None)}, store)

    def deliver(self, result: StreamResult, delta: Delta, store: PaneReader) -> None:
        """Let the rows that a result says now, and those that it takes back, land."""
        panes, said = self._panes, dict[PaneId, Partial]()
        for place, (old, new) in delta.items():
            event = new or old
            if event is None:
                continue
            parts = None if new is None else plain_parts(result, new.value)
            pane = panes.own(result.stream, row_name(place), place[0])
            said[pane] = (packed_row(place, event.key, parts),)
        self._recall(said, result.span_us, store)
        for pane, row in sorted(said.items()):
            panes.fold_in(pane, row, self.now_us, joined=True)

    def _recall(self, panes: Iterable[PaneId], span_us: int, store: PaneReader) -> None:
        """Bring entries into memory that may be in the store alone."""
        memory = self._panes
        gone = [
            pane
            for pane in panes
            if pane not in memory.entries and pane.pane_us + span_us <= memory.evicted_us
        ]
        if gone:
            self._cache.restore(store.panes_named(gone))
