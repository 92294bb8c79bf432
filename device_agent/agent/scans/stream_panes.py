"""Outputs of streams as panes: of windows over them, and the rows of results, one pane each.

An output of a stream is folded into its window's pane, and one that it takes back is folded out
again, where the fold has an inverse. A row is replaced by a later one at its place, or by a
note that there is nothing any more (`lasp_edge.ordered.sent_rows`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from crdts import ControlLog
from device_agent.agent.agent import Agent
from device_agent.agent.panes.panes import Panes
from device_agent.agent.parts import StoreReader
from device_agent.agent.stored_rows import PaneId, PaneRow
from lasp_edge.errors import pass_interrupt
from lasp_edge.event import Event, StreamItem
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.fields import FieldsFold
from lasp_edge.language.declarations import StreamResult, Window
from lasp_edge.language.plan import windows_of_streams
from lasp_edge.language.regimes import PanePiece, WindowRegimes, difference
from lasp_edge.language.streaming import plain_parts
from lasp_edge.ordered.cells import Item
from lasp_edge.ordered.deltas import Delta
from lasp_edge.ordered.item_store import FOR_EVER_US
from lasp_edge.ordered.sent_rows import packed_row, row_name

Renewing = dict[str, list[PanePiece]]
"""Window -> the panes that are made again, since they mean something else."""


class StreamPanes:
    """Brings the outputs of streams into pane entries.

    Args:
        agent: what all parts share.
        panes: the entries.

    Attributes:
        now_us: the time.
        leaves_out: tells of the start of a pane under parameters that nothing is to be made of it.
    """

    def __init__(self, agent: Agent, panes: Panes) -> None:
        self._agent, self._panes = agent, panes
        plan = agent.plan
        self._raw = [
            window
            for window in plan.windows.values()
            if window.is_plain and window.source.name in plan.evaluated_events
        ]
        self._regimes = {
            w.name: WindowRegimes(w, plan.functions, ControlLog())
            for w in plan.windows.values()
            if not w.is_plain and w.source.name in plan.streams
        }
        self.now_us = 0
        self.leaves_out: Callable[[int], bool] = lambda _pane_us: False

    def follow(self, log: ControlLog) -> Renewing:
        """Take the operators' entries; return which panes begin again.

        Panes of another meaning are deleted elsewhere (`device_agent.agent.rebuilding.missing`).
        """
        functions, device = self._agent.plan.functions, self._agent.replica.device
        renewed: Renewing = {}
        for window in windows_of_streams(self._agent.plan):
            new = WindowRegimes(window, functions, log, device)
            come = difference(new.pieces, self._regimes[window.name].pieces)
            self._regimes[window.name] = new
            renewed[window.name] = come
        return renewed

    def renew(
        self, window: Window, pieces: list[PanePiece], content: Delta, store: StoreReader
    ) -> None:
        """Make panes of a stream's present outputs."""
        inside = {
            place: change
            for place, change in content.items()
            if any(piece.first_us <= place[0] < piece.end_us for piece in pieces)
        }
        self.fold(window, inside, store, only=pieces)

    def fold(
        self,
        window: Window,
        delta: Delta,
        store: StoreReader,
        *,
        only: Sequence[PanePiece] | None = None,
        without: Sequence[PanePiece] = (),
    ) -> None:
        """Fold a stream's outputs into a window's panes, and those that it takes back out of them.

        Args:
            window: of the program.
            delta: how its stream has changed.
            store: gives what memory has let go.
            only: panes that are meant, and no others; None: all.
            without: panes that are made by themselves.
        """
        fold, sums = window.fold, (dict[PaneId, Partial](), dict[PaneId, Partial]())
        taken_back, added = sums
        for place in sorted(delta):
            for event, partials in zip(delta[place], sums, strict=True):
                found = self._tried(window, event, is_counted=partials is added)
                for pane, lifted in found:
                    is_meant = only is None or _is_in(pane, only)
                    if is_meant and not _is_in(pane, without):
                        partials[pane] = fold.combine(partials.get(pane, fold.zero), lifted)
        for pane in sorted(added.keys() | taken_back.keys()):
            self._change(pane, added.get(pane, fold.zero), taken_back.get(pane), store)

    def complete(
        self,
        windows: Iterable[Window],
        contents: Mapping[str, Delta],
        since_us: int,
        store: StoreReader,
    ) -> None:
        """Make the panes of windows that the last program did not have, of what streams give.

        A window may have panes of a program before the last one; a pane that began before there was
        anything stays as it is. A window whose panes cannot have all goes on to lack readings.

        Args:
            windows: over streams; they lack readings until now.
            contents: stream -> its outputs, from nothing.
            since_us: from when on these are known.
            store: gives what memory has let go.
        """
        for window in windows:
            first_us = -(-since_us // window.span_us) * window.span_us
            every = contents.get(window.source.name, {}).items()
            content = {place: change for place, change in every if place[0] >= first_us}
            held = [
                each
                for stream in self.streams_of(window)
                for each in store.newest_panes(stream, FOR_EVER_US)
                if each[0].pane_us >= first_us
            ]
            if self._complete(window, content, held, store):
                del self._panes.begun[window.stream]

    def _complete(
        self,
        window: Window,
        content: Delta,
        held: Iterable[tuple[PaneId, PaneRow]],
        store: StoreReader,
    ) -> bool:
        """Let a window's panes hold all outputs of a stream; return whether they do.

        Args:
            window: of the program.
            content: the outputs, from nothing; none lies in another pane than those that are given.
            held: what is in these panes, of all lives.
            store: gives what memory has let go.
        """
        from device_agent.agent.rebuilding.renewed import rest_of  # noqa: PLC0415 - seldom needed

        fold, there, every = window.fold, dict[PaneId, Partial](), dict[PaneId, Partial]()
        for at, row in held:
            pane = self._panes.own(at.stream, at.key, at.pane_us)
            there[pane] = fold.combine(there.get(pane, fold.zero), row.partial)
        for place in sorted(content):
            for pane, lifted in self._tried(window, content[place][1], is_counted=True):
                every[pane] = fold.combine(every.get(pane, fold.zero), lifted)
        is_whole = True
        for pane in sorted(every.keys() | there.keys()):
            added, before = every.get(pane, fold.zero), there.get(pane)
            if before is None or fold.invertible or added == before:
                self._change(pane, added, before, store)
            elif (missing := rest_of(fold, added, before)) is not None:
                self._change(pane, missing, None, store)
            else:
                is_whole = False
        return is_whole

    def _tried(
        self, window: Window, event: Event | None, *, is_counted: bool
    ) -> list[tuple[PaneId, Partial]]:
        """Return the panes and partials of an output; count a failure where that is asked for."""
        try:
            return [] if event is None else self._lifted(window, event)
        except BaseException as error:  # noqa: BLE001 - a user's key may raise anything
            pass_interrupt(error)
            if is_counted:
                self._agent.guard.failed(f"window {window.name}", error)
        return []

    def _lifted(self, window: Window, event: Event) -> list[tuple[PaneId, Partial]]:
        """Return the panes and partials of an output; nothing where it does not count.

        Raises:
            ValueError: its value is no number with a step, or its key no text.
        """
        source = self._agent.plan.streams.get(window.source.name)
        is_unstepped = source is not None and source.resolution is None
        of_event = is_unstepped or isinstance(window.fold, FieldsFold)
        counted: int | None = 0 if of_event else window.resolution.quantise(event.value)
        regimes = self._regimes.get(window.name)
        targets = [(window.stream, window.span_us, window.fold)]
        if regimes is not None and counted is not None:
            regime = regimes.regime_at(event.time_us)
            targets = [(each.stream, each.span_us, each.fold) for each in regime.pieces]
            counted = regimes.counted(event, counted, regime.at)
        if counted is None:
            return []
        key, found = self._agent.plan.functions.key(window.name, event), []
        for stream, span_us, fold in targets:
            if isinstance(fold, FieldsFold):
                lifted = fold.lift_event(event)
            else:
                lifted = fold.lift(counted, event.time_us)
            start_us = event.time_us - event.time_us % span_us
            if stream == window.stream or not self.leaves_out(start_us):
                found.append((self._panes.own(stream, key, start_us), lifted))
        return found

    def streams_of(self, window: Window) -> list[int]:
        """Return the streams of a window's panes."""
        regimes = self._regimes.get(window.name)
        return [window.stream] if regimes is None else [each.stream for each in regimes.pieces]

    def _change(
        self, pane: PaneId, added: Partial, taken_back: Partial | None, store: StoreReader
    ) -> None:
        if added == taken_back:
            return  # as much was taken back as came
        try:
            self._panes.change(pane, added, self.now_us, store, taken_back)
        except ValueError as error:
            self._agent.counters.note(f"failed: {error}")

    def take_back(self, taken: StreamItem, store: StoreReader) -> None:
        """Take a reading that was retracted out of the windows over its event."""
        event = self._agent.plan.events[taken.event]
        item = Item(taken.time_us, taken.value, taken.tags)
        made = item.event(event.name, taken.device, event.resolution)
        place = item.place(event.name, taken.device)
        for window in self._raw:
            if window.source.name == event.name:
                self.fold(window, {place: (made, None)}, store)

    def deliver(self, result: StreamResult, delta: Delta, store: StoreReader) -> None:
        """Let the rows of a result, and those that it takes back, land."""
        panes, packed = self._panes, dict[PaneId, Partial]()
        for place, (old, new) in delta.items():
            event = new or old
            if event is None:
                continue
            parts = None if new is None else plain_parts(result, new.value)
            pane = panes.own(result.stream, row_name(place), place[0])
            packed[pane] = (packed_row(place, event.key, parts),)
        for pane, row in sorted(packed.items()):
            self._panes.held(pane, store)  # a row is replaced where there is one
            self._panes.put(pane, row, self.now_us)


def _is_in(pane: PaneId, pieces: Iterable[PanePiece]) -> bool:
    return any(
        pane.stream == each.stream and each.first_us <= pane.pane_us < each.end_us
        for each in pieces
    )
