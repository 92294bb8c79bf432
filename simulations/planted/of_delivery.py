"""Bugs of the way to the lake: frames, acknowledgements, promises, and the lander itself."""

from collections.abc import Iterator
from typing import Any

from device_agent.agent.changes import Changes
from device_agent.agent.panes.cache import PaneCache
from device_agent.agent.panes.delivery import PaneDelivery
from device_agent.agent.panes.flights import Flights
from device_agent.agent.panes.panes import Panes
from device_agent.agent.panes.unlanded import Unlanded
from device_agent.agent.stored_rows import PaneId
from device_agent.gateway.kept import KeptEntry, WriterOfPanes
from device_agent.gateway.panes import FleetPanes, KeyedPane
from lasp_edge.folds.columns import Partial
from lasp_edge.protocol.acceptance import PaneRows
from lasp_edge.protocol.acks import Seqs
from simulations.planted.bug import omitted, planted, replaced
from simulations.world.landing import Inbox, VirtualLander


@planted
def the_lander_acknowledges_before_its_commit() -> Iterator[None]:
    """The lander crashes after its answer: a device forgets what nobody holds."""
    right_take, right_restart = VirtualLander.take, VirtualLander.restart
    before: dict[int, Any] = {}

    def take(self: VirtualLander, inbox: Inbox, now_us: int) -> Iterator[Any]:
        before[id(self)] = dict(self.lander.panes)
        yield from right_take(self, inbox, now_us)

    def restart(self: VirtualLander) -> None:
        self.lander._keeper.panes = before.get(id(self), {})  # noqa: SLF001
        right_restart(self)

    with replaced(VirtualLander, "take", take), replaced(VirtualLander, "restart", restart):
        yield


@planted
def the_lander_adds_what_comes_twice() -> Iterator[None]:
    """A message arrives twice: its readings count twice."""
    right = FleetPanes.join
    known: dict[tuple[Any, ...], Partial] = {}

    def take(_cell: KeyedPane, _writer: WriterOfPanes, _seq: int, _partial: Partial) -> bool:
        return True

    def join(self: FleetPanes, rows: PaneRows) -> Iterator[KeptEntry]:
        for entry in right(self, rows):
            at = (id(self), *entry[:-1])
            if at in known:
                fold = self._fold(entry.stream)
                entry = entry._replace(partial=fold.combine(known[at], entry.partial))  # noqa: PLW2901
            known[at] = entry.partial
            yield entry

    with replaced(KeyedPane, "join", take), replaced(FleetPanes, "join", join):
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
def what_a_sink_refuses_counts_as_landed() -> Iterator[None]:
    """A lander of an older program says what it cannot take: the device forgets it."""

    def not_taken(self: PaneDelivery, sink: Any, _reason: int, seqs: Any, _now_us: int) -> None:
        self.memory.landed(self.memory.named(seqs), sink.bit)

    with replaced(PaneDelivery, "_not_taken", not_taken):
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


for _name, _history, _owner, _method, _result in (
    (
        "a_promise_does_not_wait_for_acknowledgements",
        "A device promises that nothing older comes, and then sends what had not landed.",
        PaneCache,
        "oldest_dirty_us",
        None,
    ),
    (
        "done_is_one_flag_for_all_sinks",
        "A second gateway is dead: a device that has ended holds windows up at the living one.",
        PaneCache,
        "landed_at",
        frozenset(),
    ),
    (
        "nothing_is_sent_again_at_a_new_connection",
        "The broker lost what was in flight: for minutes nobody sends it.",
        PaneDelivery,
        "connected",
        None,
    ),
    (
        "another_lake_gets_only_what_is_in_memory",
        "The lake is lost after a restart: clean entries of the store are not sent to the new one.",
        Changes,
        "make_dirty",
        None,
    ),
):
    omitted(_name, _history, _owner, _method, _result)
