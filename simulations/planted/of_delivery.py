"""Bugs of the way to the lake: frames, acknowledgements, promises, and the lander itself."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from device_agent.changes import Changes, PaneId
from device_agent.fleet.beats import Beats
from device_agent.panes.cache import PaneCache
from device_agent.panes.delivery import PaneDelivery
from device_agent.panes.flights import Flights
from device_agent.panes.panes import Panes
from lasp_edge.protocol.acceptance import Acceptance, PaneRows, RecordRefusedError
from simulations.fleet.lander import SimulatedLander
from simulations.planted.bug import planted, replaced
from simulations.world.landing import LanderProcess


@planted
def the_lander_acknowledges_before_its_commit() -> Iterator[None]:
    """The lander crashes after its answer: a device forgets what nobody holds."""
    right_commit, right_crash = LanderProcess.commit, LanderProcess.crash
    before: dict[int, Any] = {}

    def commit(self: LanderProcess, step: int, now_us: int) -> Iterator[Any]:
        before[id(self)] = dict(self.lander.panes)
        yield from right_commit(self, step, now_us)

    def crash(self: LanderProcess, until: int) -> int:
        self.lander.panes = before.get(id(self), {})
        return right_crash(self, until)

    with replaced(LanderProcess, "commit", commit), replaced(LanderProcess, "crash", crash):
        yield


@planted
def the_lander_keeps_the_frame_that_came_last() -> Iterator[None]:
    """Frames overtake each other: an older version of a pane replaces the newer one."""

    def join(self: SimulatedLander, rows: PaneRows) -> None:
        block = rows.block
        for key, pane_us, seq, partial in zip(
            block.keys,
            block.panes_us,
            block.seqs,
            zip(*block.columns, strict=True),
            strict=True,
        ):
            at = (block.stream, key, pane_us, rows.device, block.incarnation, block.nonce)
            self.panes[at] = (seq, partial)

    with replaced(SimulatedLander, "_join", join):
        yield


@planted
def the_lander_keeps_one_entry_a_device() -> Iterator[None]:
    """An agent restarts: its new entry of a pane takes the place of the former life's."""
    right = SimulatedLander._join  # noqa: SLF001

    def join(self: SimulatedLander, rows: PaneRows) -> None:
        right(self, rows._replace(block=rows.block._replace(incarnation=0, nonce=0)))

    with replaced(SimulatedLander, "_join", join):
        yield


@planted
def the_lander_adds_what_comes_twice() -> Iterator[None]:
    """A message arrives twice: its readings count twice."""
    right = SimulatedLander._join  # noqa: SLF001

    def join(self: SimulatedLander, rows: PaneRows) -> None:
        block = rows.block
        for key, pane_us, seq, partial in zip(
            block.keys,
            block.panes_us,
            block.seqs,
            zip(*block.columns, strict=True),
            strict=True,
        ):
            at = (block.stream, key, pane_us, rows.device, block.incarnation, block.nonce)
            known = self.panes.get(at)
            if known is not None and known[0] == seq:
                twice = tuple(2 * part if isinstance(part, int) else part for part in partial)
                self.panes[at] = (seq, twice)
        right(self, rows)

    with replaced(SimulatedLander, "_join", join):
        yield


@planted
def the_lander_refuses_what_former_lives_sent() -> Iterator[None]:
    """An agent restarts with panes that have not landed: nobody takes them under their name."""
    right = Acceptance._check_block  # noqa: SLF001

    def check(self: Acceptance, block: Any, sender: Any, received_us: int) -> Any:
        if (block.incarnation, block.nonce) != sender[:2]:
            raise RecordRefusedError("panes of an earlier replica")
        return right(self, block, sender, received_us)

    with replaced(Acceptance, "_check_block", check):
        yield


@planted
def a_promise_does_not_wait_for_acknowledgements() -> Iterator[None]:
    """A device promises that nothing older comes, and then sends what had not landed."""

    def oldest_dirty_us(self: PaneCache, *_: Any) -> None:
        del self

    with replaced(PaneCache, "oldest_dirty_us", oldest_dirty_us):
        yield


@planted
def done_does_not_wait_for_acknowledgements() -> Iterator[None]:
    """`--exit-when-done` ends an agent whose last panes nobody has."""

    def all_landed(self: PaneCache) -> bool:
        del self
        return True

    with replaced(PaneCache, "all_landed", property(all_landed)):
        yield


@planted
def nothing_is_sent_again_at_a_new_connection() -> Iterator[None]:
    """The broker lost what was in flight: for minutes nobody sends it."""

    def connected(self: PaneDelivery, _now_us: int) -> None:
        del self

    with replaced(PaneDelivery, "connected", connected):
        yield


@planted
def a_time_out_counts_as_an_acknowledgement() -> Iterator[None]:
    """The lander is away for a minute: what was sent to it is never sent again."""
    right = Panes.due

    def due(self: Panes, now_us: int, *, everything: bool) -> list[PaneId]:
        found = right(self, now_us, everything=everything)
        fresh = [pane for pane in found if (pane, self.entries[pane].seq) not in sent]
        sent.update((pane, self.entries[pane].seq) for pane in fresh)
        return fresh

    sent: set[Any] = set()
    with replaced(Panes, "due", due):
        yield


@planted
def an_old_acknowledgement_cleans_a_newer_entry() -> Iterator[None]:
    """A pane changes while its frame is acknowledged: the change never lands."""
    right = Flights.acknowledge

    def acknowledge(self: Flights, numbers: Any) -> Any:
        return [(pane, _Any()) for pane, _ in right(self, numbers)]

    with replaced(Flights, "acknowledge", acknowledge):
        yield


class _Any:
    """Equals everything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


@planted
def acknowledgements_of_a_former_life_count() -> Iterator[None]:
    """An agent restarts and counts its frames from 1: a late answer is taken for another frame."""
    right = PaneDelivery.acknowledged

    def acknowledged(self: PaneDelivery, frame: Any, now_us: int) -> None:
        me = self._agent.replica
        if frame.about == me.device:
            frame = replace(frame, addressee=me)
        right(self, frame, now_us)

    with replaced(PaneDelivery, "acknowledged", acknowledged):
        yield


@planted
def another_lake_is_not_noticed() -> Iterator[None]:
    """The lake is lost: what the former one had is never sent to the new one."""

    def send_all_again(self: PaneDelivery) -> None:
        del self

    with replaced(PaneDelivery, "_send_all_again", send_all_again):
        yield


@planted
def another_lake_gets_only_what_is_in_memory() -> Iterator[None]:
    """The lake is lost after a restart: clean entries of the store are not sent to the new one."""

    def make_all_dirty(self: Changes) -> None:
        del self

    with replaced(Changes, "make_all_dirty", make_all_dirty):
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
    right = Panes.fold_in

    def fold_in(self: Panes, pane: PaneId, partial: Any, now_us: int) -> None:
        entry = self.entries.get(pane)
        if entry is not None:
            entry.partial = self._windows[pane.stream].fold.zero
        right(self, pane, partial, now_us)

    with replaced(Panes, "fold_in", fold_in):
        yield


@planted
def a_changed_entry_keeps_its_seq() -> Iterator[None]:
    """A pane changes and is sent under the number that it had: the lander takes it for the old."""
    right = Panes.fold_in

    def fold_in(self: Panes, pane: PaneId, partial: Any, now_us: int) -> None:
        entry = self.entries.get(pane)
        known = None if entry is None else entry.seq
        right(self, pane, partial, now_us)
        if known is not None:
            self.entries[pane].seq = known

    with replaced(Panes, "fold_in", fold_in):
        yield


@planted
def an_evicted_dirty_entry_is_forgotten() -> Iterator[None]:
    """Memory is full: dirty entries leave it, and nobody remembers that the store has them."""
    from device_agent.panes import cache  # noqa: PLC0415

    def evict(self: Panes, panes: Any) -> set[PaneId]:
        for pane in panes:
            del self.entries[pane]
        self.dirty.difference_update(panes)
        return set()

    small = replaced(cache, "KEPT_ENTRIES", 3), replaced(cache, "PAGE", 2)
    with small[0], small[1], replaced(Panes, "evict", evict):
        yield


@planted
def what_the_link_did_not_take_counts_as_landed() -> Iterator[None]:
    """The link is full: a frame that never left is taken for acknowledged."""

    def unsent(self: PaneDelivery, publication: Any) -> None:
        for pane, seq in self.flights.acknowledge([publication.pane_frame]):
            self.memory.landed(pane, seq)

    with replaced(PaneDelivery, "unsent", unsent):
        yield


@planted
def a_promise_is_made_of_the_clock_alone() -> Iterator[None]:
    """A device promises now, whatever its sources and panes are at."""

    def low_us(self: Beats, now_us: int) -> int:
        del self
        return now_us

    with replaced(Beats, "low_us", low_us):
        yield
