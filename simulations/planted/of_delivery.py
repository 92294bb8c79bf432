"""Bugs of the way to the lake: frames, acknowledgements, promises, and the lander itself."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from device_agent.agent.changes import PaneId
from device_agent.agent.panes.cache import PaneCache
from device_agent.agent.panes.delivery import PaneDelivery
from device_agent.agent.panes.flights import Flights
from device_agent.agent.panes.panes import Panes
from device_agent.agent.panes.sender import PaneSender
from device_agent.agent.panes.sinks import Sinks
from device_agent.agent.panes.unlanded import Unlanded
from device_agent.gateway.kept import KeptEntry, WriterOfPanes
from device_agent.gateway.panes import FleetPanes, PaneCell
from lasp_edge.folds.columns import Partial
from lasp_edge.protocol.acceptance import Acceptance, PaneRows
from lasp_edge.protocol.acks import Seqs
from lasp_edge.protocol.sinks import MAX_SINKS
from simulations.planted.bug import planted, replaced
from simulations.world.landing import VirtualLander


@planted
def the_lander_acknowledges_before_its_commit() -> Iterator[None]:
    """The lander crashes after its answer: a device forgets what nobody holds."""
    right_commit, right_crash = VirtualLander.commit, VirtualLander.crash
    before: dict[int, Any] = {}

    def commit(self: VirtualLander, step: int, now_us: int) -> Iterator[Any]:
        before[id(self)] = dict(self.lander.panes)
        yield from right_commit(self, step, now_us)

    def crash(self: VirtualLander, until: int) -> int:
        self.lander._keeper.panes = before.get(id(self), {})  # noqa: SLF001
        return right_crash(self, until)

    with replaced(VirtualLander, "commit", commit), replaced(VirtualLander, "crash", crash):
        yield


@planted
def the_lander_keeps_the_frame_that_came_last() -> Iterator[None]:
    """Frames overtake each other: an older version of a pane replaces the newer one."""
    right = PaneCell.join

    def join(self: PaneCell, writer: WriterOfPanes, seq: int, partial: Any) -> bool:
        self._seqs[writer] = seq - 1
        return right(self, writer, seq, partial)

    with replaced(PaneCell, "join", join):
        yield


@planted
def the_lander_keeps_one_entry_a_device() -> Iterator[None]:
    """An agent restarts: its new entry of a pane takes the place of the former life's."""
    right = FleetPanes.join

    def join(self: FleetPanes, rows: PaneRows) -> Iterator[KeptEntry]:
        return right(self, rows._replace(block=rows.block._replace(incarnation=0, nonce=0)))

    with replaced(FleetPanes, "join", join):
        yield


@planted
def the_lander_adds_what_comes_twice() -> Iterator[None]:
    """A message arrives twice: its readings count twice."""
    right = FleetPanes.join
    known: dict[tuple[Any, ...], Partial] = {}

    def take(_cell: PaneCell, _writer: WriterOfPanes, _seq: int, _partial: Partial) -> bool:
        return True

    def join(self: FleetPanes, rows: PaneRows) -> Iterator[KeptEntry]:
        for entry in right(self, rows):
            at = (id(self), *entry[:-1])
            if at in known:
                fold = self._fold(entry.stream)
                entry = entry._replace(partial=fold.combine(known[at], entry.partial))  # noqa: PLW2901
            known[at] = entry.partial
            yield entry

    with replaced(PaneCell, "join", take), replaced(FleetPanes, "join", join):
        yield


@planted
def the_lander_refuses_what_former_lives_sent() -> Iterator[None]:
    """An agent restarts with panes that have not landed: nobody takes them under their name."""
    right = Acceptance.take_panes

    def take_panes(self: Acceptance, frame: Any, record: Any, accepted: Any) -> None:
        mine = [block for block in frame.blocks if block[2:4] == frame.sender[:2]]
        right(self, replace(frame, blocks=tuple(mine)), record, accepted)

    with replaced(Acceptance, "take_panes", take_panes):
        yield


@planted
def an_entry_is_sent_once_only() -> Iterator[None]:
    """The lander is away for a minute: what was sent to it is never sent again."""

    def due(self: PaneSender, _now_us: int, *, everything: bool) -> list[PaneId]:
        del everything
        panes = self._panes
        return sorted(pane for pane in panes.dirty if not panes.entries[pane].tries)

    with replaced(PaneSender, "_due", due):
        yield


@planted
def an_old_acknowledgement_cleans_a_newer_entry() -> Iterator[None]:
    """A pane changes while its frame is acknowledged: the change never lands."""

    def named(self: Panes, seqs: Any) -> list[PaneId]:
        of = (seqs.incarnation, seqs.nonce)
        return [pane for pane in self.dirty if pane[3:] == of]

    with replaced(Panes, "named", named):
        yield


@planted
def acknowledgements_of_a_former_life_count() -> Iterator[None]:
    """An agent restarts and counts its entries from 1: a late answer is taken for other ones."""

    def named(self: Panes, seqs: Any) -> list[PaneId]:
        entries = self.entries
        return [pane for pane in self.dirty if entries[pane].seq in seqs]

    with replaced(Panes, "named", named):
        yield


@planted
def a_frozen_entry_is_continued() -> Iterator[None]:
    """An agent restarts and goes on with the entries of its former life, under their name."""
    right = Panes.own
    first: dict[str, Any] = {}

    def own(self: Panes, stream: int, key: str, pane_us: int) -> PaneId:
        known = first.setdefault(self._agent.replica.device, self._agent.replica)
        pane = right(self, stream, key, pane_us)
        return pane._replace(incarnation=known.incarnation, nonce=known.nonce)

    with replaced(Panes, "own", own):
        yield


@planted
def a_pane_keeps_its_last_readings_only() -> Iterator[None]:
    """A pane is folded anew with each batch instead of being combined."""

    def changed(_self: Panes, _pane: PaneId, added: Partial, _store: Any, _gone: Any = None) -> Any:
        return added

    with replaced(Panes, "changed", changed):
        yield


@planted
def a_changed_entry_keeps_its_seq() -> Iterator[None]:
    """A pane changes and is sent under the number that it had: the lander takes it for the old."""
    right = Panes.put

    def put(self: Panes, pane: PaneId, partial: Any, since_us: int) -> None:
        entry = self.entries.get(pane)
        known = None if entry is None else entry.seq
        right(self, pane, partial, since_us)
        if known is not None:
            self.entries[pane].seq = known

    with replaced(Panes, "put", put):
        yield


@planted
def an_evicted_dirty_entry_is_forgotten() -> Iterator[None]:
    """Memory is full: dirty entries leave it, and nobody remembers that the store has them."""
    from device_agent.agent.panes import cache  # noqa: PLC0415

    def note_evicted(self: cache.PaneCache, panes: Any) -> None:
        del self, panes

    small = replaced(cache, "KEPT_ENTRIES", 3), replaced(cache, "PAGE", 2)
    with small[0], small[1], replaced(cache.PaneCache, "_note_evicted", note_evicted):
        yield


@planted
def what_the_link_did_not_take_counts_as_landed() -> Iterator[None]:
    """The link is full: a frame that never left is taken for acknowledged."""

    def take_back(self: PaneSender, _number: int) -> None:
        for sink in self._sinks:
            self._panes.landed([pane for pane in self._sent if pane in self._panes.dirty], sink.bit)

    with replaced(PaneSender, "take_back", take_back):
        yield


@planted
def a_promise_is_made_of_the_sources_alone() -> Iterator[None]:
    """A device promises what its sources are at, whatever has landed."""
    right = PaneDelivery.lows

    def lows(self: PaneDelivery, now_us: int) -> Any:
        source_us = self._low_us(now_us)
        return tuple([low._replace(low_us=source_us) for low in right(self, now_us)])

    with replaced(PaneDelivery, "lows", lows):
        yield


@planted
def what_a_sink_refuses_counts_as_landed() -> Iterator[None]:
    """A lander of an older program says what it cannot take: the device forgets it."""

    def not_taken(self: PaneDelivery, sink: Any, _reason: int, seqs: Any, _now_us: int) -> None:
        self.memory.landed(self.memory.named(seqs), sink.bit)

    with replaced(PaneDelivery, "_not_taken", not_taken):
        yield


@planted
def an_acknowledgement_of_one_sink_counts_for_all() -> Iterator[None]:
    """An archive is away for long: what the lake has never reaches it."""
    right = Panes.landed

    def landed(self: Panes, panes: Any, _bit: int) -> int:
        return right(self, panes, (1 << MAX_SINKS) - 1)

    with replaced(Panes, "landed", landed):
        yield


@planted
def a_new_sink_gets_only_what_comes_from_now_on() -> Iterator[None]:
    """An archive is set up beside the lake, and what devices had delivered never reaches it."""
    right = Sinks._add  # noqa: SLF001

    def add(self: Sinks, name: str) -> Any:
        with replaced(Sinks, "_make_dirty", lambda *_: None):
            return right(self, name)

    with replaced(Sinks, "_add", add):
        yield


@planted
def an_older_version_vouches_for_what_was_read_since() -> Iterator[None]:
    """An entry lands, and readings that it got after it had left count as landed too."""
    right = Unlanded.landed

    def landed(self: Unlanded, bit: int, seqs: Seqs) -> None:
        right(self, bit, seqs)
        since = self._since[bit]
        for pane in since:
            since[pane] = max(since[pane], self._latest_us)

    with replaced(Unlanded, "landed", landed):
        yield


@planted
def an_answer_ends_no_flight() -> Iterator[None]:
    """What was acknowledged is in flight until its time is over: few frames leave in that time."""

    def answer(self: Flights, _named: Any, now_us: int) -> None:
        self._answered_us = now_us

    with replaced(Flights, "answer", answer):
        yield


@planted
def a_refused_entry_that_grows_is_still_refused() -> Iterator[None]:
    """A lander refused an entry; it grows, and nobody waits for it, nor does a promise."""
    right = Panes.put

    def put(self: Panes, pane: PaneId, partial: Any, since_us: int) -> None:
        entry = self.entries.get(pane)
        refused = 0 if entry is None else entry.refused
        right(self, pane, partial, since_us)
        self.entries[pane].refused = refused

    with replaced(Panes, "put", put):
        yield


@planted
def what_one_sink_refuses_holds_no_promise_to_another() -> Iterator[None]:
    """The lake runs a former program, the archive is away, and is promised what it lacks."""
    right = PaneCache.oldest_dirty_us

    def oldest_dirty_us(self: PaneCache, bit: int, clock_us: int) -> int | None:
        entries = self._panes.entries
        kept = {pane: entries[pane].refused for pane in self._panes.dirty}
        for pane, refused in kept.items():
            entries[pane].refused = refused | bit if refused else refused
        try:
            return right(self, bit, clock_us)
        finally:
            for pane, refused in kept.items():
                entries[pane].refused = refused

    with replaced(PaneCache, "oldest_dirty_us", oldest_dirty_us):
        yield
