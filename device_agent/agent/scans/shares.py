"""Shares on a device: which gateway it follows, and the places that this one has published.

A device keeps what it has taken of them in its store, so a restart goes on from there. It follows
one gateway: the least name among those that were heard lately, as acknowledgements tell. What the
others publish is remembered, and taken where the one that is followed has fallen silent. A place of
another gateway stays until the followed one has published its cell: nothing is taken back before.
A gateway that was silent is followed again once it has published what the present one has.

A cell that lies before what the device retains is taken no more. The gateway publishes it again
while it waits for an answer: then this device states that it is over there, and goes on behind it
with what it retains (`lasp_edge.ordered.resuming`).
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from crdts.frontier import BOTTOM_US
from device_agent.agent.parts import FrameRefusedError, Handler, Part
from device_agent.agent.scans.parted_history import NO_CELL, PartedHistory, TakenCell
from lasp_edge.evaluation.history import Read
from lasp_edge.language.halves import (
    leaf_of,
    parted_scans,
    scan_of,
    shares_of,
    shares_stream,
)
from lasp_edge.language.plan import Plan
from lasp_edge.language.streaming import FLEET
from lasp_edge.ordered.answers import OVER
from lasp_edge.ordered.cells import CELL_US, cell_of
from lasp_edge.ordered.engine import StreamChanges, StreamEngine
from lasp_edge.ordered.inputs import PlacedCell, TakenItem, in_cells
from lasp_edge.ordered.item_store import FOR_EVER_US
from lasp_edge.ordered.parted import basis_of, sent_at
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.plain import same
from lasp_edge.ordered.resuming import is_resumption, resumption
from lasp_edge.ordered.sent_outputs import OutputItem
from lasp_edge.ordered.shared_places import SharedPlace, places_in
from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.shares import SharesFrame, replaces, short_stream
from lasp_edge.protocol.sinks import MAX_SINKS
from lasp_edge.protocol.waiting import DEAD_AFTER_US

MOST_CELLS: Final = 50_000
"""Cells of one gateway that are remembered, at most: 70 events in order an hour, for a month."""

LONG_US: Final = 3_600_000_000
"""In a time longer than this nobody looks for events in order: there is one."""


class Shares(Part):
    """Takes the places that gateways publish.

    Args:
        plan: the program.
        is_asking: returns whether no sink has answered yet what former lives had: until then
            this life takes no places, since its answers might lack readings and not say so.

    Attributes:
        plan: the program.
        followed: the gateway whose places count; "" before any is known.
        waits_since_us: since when readings wait for the next place; None while no reading does.
    """

    name = "shares"
    is_changed = has_notes = False

    def __init__(self, plan: Plan, is_asking: Callable[[], bool] = lambda: False) -> None:
        self.plan, self._is_asking = plan, is_asking
        self._events = {
            short_stream(shares_stream(plan, name)): shares_of(f"{name}: ")
            for name in parted_scans(plan)
        }
        self._names = {
            shares_of(f"{name}: "): each.events for name, each in parted_scans(plan).items()
        }
        self._frames: dict[str, dict[tuple[str, int], tuple[int, dict[Place, SharedPlace]]]] = {}
        self._heard_us: dict[str, int] = {}
        self.followed = ""
        self.waits_since_us: int | None = None
        self._pending: set[tuple[str, int]] = set()
        self._again: set[tuple[str, int]] = set()
        self._over: set[tuple[str, int]] = set()
        self._owed = (-1, BOTTOM_US)
        self._stored: dict[tuple[str, int], tuple[str, int]] = {}
        self._cells: dict[tuple[str, int], TakenCell] = {}
        self._differing = {
            shares_of(f"{name}: ")
            for name in parted_scans(plan)
            if not plan.functions.streams[name].is_share_constant
        }
        self._gone_on: dict[tuple[str, int], Collection[bytes]] = {}
        self._last_us = dict.fromkeys(self._events.values(), 0)

    def history(self, device: str, read: Read) -> PartedHistory:
        """Return what a device's store holds of the streams."""
        return PartedHistory(self.plan, device, read)

    @property
    def handlers(self) -> Mapping[type[Frame], Handler]:
        return {SharesFrame: self._receive, AckFrame: self._hear}

    @property
    def versions(self) -> dict[tuple[str, int], int]:
        """What is known of the gateway that is followed: input and cell -> its version."""
        came = {at: version for at, (version, _) in self._frames.get(self.followed, {}).items()}
        stored = {at: version for at, (of, version) in self._stored.items() if of == self.followed}
        return {**stored, **came}

    def report(self) -> dict[str, Any]:
        return {"shares": {"follows": self.followed, "cells": len(self.versions)}}

    def _hear(self, frame: AckFrame, now_us: int) -> None:
        if frame.sender.device in self._frames or len(self._heard_us) < MAX_SINKS:
            self._heard_us[frame.sender.device] = now_us

    def _receive(self, frame: SharesFrame, now_us: int) -> None:  # noqa: ARG002 - a handler
        event, gateway = self._events.get(frame.stream), frame.sender.device
        if event is None:
            return
        if gateway not in self._frames and len(self._frames) >= MAX_SINKS:
            raise FrameRefusedError("shares: of too many gateways")
        places = _published(frame, self._names[event])
        known = self._frames.setdefault(gateway, {})
        at = (event, frame.cell_us)
        if at in known:
            if not replaces(frame.version, known[at][0]):
                return
            self._again.add(at)
        known[at] = (frame.version, places)
        if len(known) > MOST_CELLS:
            del known[min(known, key=lambda each: each[1])]
        if gateway == self.followed or not self.followed:
            self._pending.add(at)

    def begin(self, history: PartedHistory, promised_us: int) -> None:
        """Follow the gateway that the store names; shares up to the last promise are owed again."""
        self._owed = (-1, promised_us)
        self._stored = {
            (event, cell_us): (cell.gateway, cell.version)
            for event in self._events.values()
            for cell_us, cell in history.taken(event, 0, FOR_EVER_US)
            if cell.version
        }
        for event, cell_us in self._stored:
            self._last_us[event] = max(self._last_us[event], cell_us)
        newest = [(cell_us, of) for (_, cell_us), (of, _) in self._stored.items()]
        self.followed = max(newest, default=(0, ""))[1]

    def is_waiting(self, now_us: int) -> bool:
        """Return whether something was published that was not taken yet."""
        self._follow(now_us)
        return bool(self._pending) and not self._is_asking()

    def _follow(self, now_us: int) -> None:
        """Follow the gateway whose name is the least of those that acknowledged lately.

        While the followed one is among them, another one has to have published the same. One that
        comes back has less at first: answers would be taken back of which rows are final.
        """
        if self._stored:  # after a start the one that was followed has its time, too
            self._heard_us.setdefault(self.followed, now_us)
        lately = [
            gateway
            for gateway in self._heard_us.keys() & (self._frames.keys() | {self.followed})
            if now_us - self._heard_us[gateway] < DEAD_AFTER_US
        ]
        if self.followed in lately:
            lately = [each for each in lately if each >= self.followed or self._has_caught_up(each)]
        followed = min(lately, default=self.followed or min(self._frames, default=""))
        if followed != self.followed:
            self.followed = followed
            self._pending |= self._frames.get(followed, {}).keys()

    def _has_caught_up(self, gateway: str) -> bool:
        """Return whether a gateway has published all that the followed one has."""
        followed, other = self._frames.get(self.followed, {}), self._frames[gateway]
        stored = {at for at, (of, _) in self._stored.items() if of == self.followed}
        return stored <= followed.keys() and all(
            at in other and other[at][1] == places for at, (_, places) in followed.items()
        )

    def has_places(self, least_us: int, end_us: int) -> bool:
        """Return whether there is an event in order with least_us <= time < end_us."""
        if end_us - least_us > LONG_US:
            return True
        frames = self._frames.get(self.followed, {})
        return any(
            least_us <= place[0] < end_us
            for event in self._events.values()
            for cell_us in range(cell_of(least_us), end_us, CELL_US)
            if (event, cell_us) in frames
            for place in frames[event, cell_us][1]
        )

    def answered(self, beats: int, promised_us: int) -> None:
        """Note that an answer leaves, or what is stated beside answers.

        Args:
            beats: how many beats were before it.
            promised_us: the greatest low watermark that they promised.
        """
        self._owed = (beats, promised_us)

    def is_owed(self, beats: int, before_us: int | None, low_us: int | None) -> bool:
        """Return whether a promise is owed again since an answer left: all it revised has landed.

        Args:
            beats: how many there were.
            before_us: the low watermark of the last one.
            low_us: what the next one would promise.
        """
        beats_then, promised_us = self._owed
        if low_us is None or low_us < promised_us:
            return False
        return beats == beats_then or before_us is None or before_us < promised_us

    def changes(self, history: PartedHistory, floor_us: int) -> list[TakenItem]:
        """Return how the places have changed, for the engine; `put` stores that afterwards."""
        found: list[TakenItem] = []
        if self._is_asking():
            return found
        frames = self._frames.get(self.followed, {})
        pending, self._pending = self._pending & frames.keys(), set()
        for event, cell_us in sorted(pending):
            version, places = frames[event, cell_us]
            before = dict(history.taken(event, cell_us, cell_us + 1)).get(cell_us, NO_CELL)
            if before.gateway == self.followed and not replaces(version, before.version):
                continue
            if cell_us < floor_us:
                differs = bool(before.gateway) and before.places != places
                self._over |= {(event, cell_us)} if differs else self._again & {(event, cell_us)}
                continue
            given = self.followed, version, before.number + 1, places
            cell = TakenCell(*given, before.resumed)
            self._cells[event, cell_us] = cell
            self._last_us[event] = max(self._last_us[event], cell_us)
            found += _differences(event, before, cell)
            bases = _bases(cell)
            is_asked = before.gateway == self.followed and before.places == places
            if event in self._differing and (is_asked or bases != _bases(before)):
                self._gone_on[leaf_of(scan_of(event)), cell_us] = bases
        return [*found, *self._resumed(history, -(-floor_us // CELL_US) * CELL_US)]

    def _resumed(self, history: PartedHistory, at_us: int) -> Iterator[TakenItem]:
        """Yield where this device goes on behind cells that it is asked for, and that are over.

        Args:
            history: holds what was taken.
            at_us: where the first cell begins whose readings it retains.
        """
        frames = self._frames.get(self.followed, {})
        for event, cell_us in self._over:
            self._gone_on[leaf_of(scan_of(event)), cell_us] = [OVER]
        for event in sorted({event for event, _ in self._over}):
            taken = {at: cell.places for at, cell in history.taken(event, 0, at_us)}
            published = {at: frames[of, at][1] for of, at in frames if of == event and at < at_us}
            known, over = taken | published, [at for of, at in self._over if of == event]
            several = [cells.get(at, {}) for cells in (taken, known) for at in over]
            keys = {each.key for places in several for each in places.values()}
            before = dict(history.taken(event, at_us, at_us + 1)).get(at_us, NO_CELL)
            before = self._cells.get((event, at_us), before)
            resumed = before.resumed | _resumptions(keys, known, at_us)
            gateway = before.gateway or self.followed
            cell = TakenCell(gateway, before.version, before.number + 1, before.places, resumed)
            self._cells[event, at_us] = cell
            yield from _differences(event, before, cell)

    def take_gone_on(self) -> dict[tuple[str, int], Collection[bytes]]:
        """Return, once, from which shares of each cell that has others the device has gone on.

        By its half of a scan and the cell; the bases of all that are known there. A cell that is
        published again as it was asks for it again.
        """
        found, self._gone_on = self._gone_on, {}
        return found

    def evaluated(
        self,
        engine: StreamEngine,
        history: PartedHistory,
        taken: Sequence[PlacedCell],
        low_us: int | None,
        floor_us: int,
        now_us: int,
        *,
        catches_up: bool = False,
    ) -> StreamChanges:
        """Let an engine take readings, and how the places have changed; store these.

        Args:
            engine: takes them.
            history: holds what was taken.
            taken: the readings.
            low_us: nothing older is expected.
            floor_us: places before it are over.
            now_us: the time.
            catches_up: the readings are of a time long ago, and more of them, or places, come: what
                lies behind the last place that is known waits for another one.
        """
        self._follow(now_us)  # where readings come all the time, nobody has asked `is_waiting`
        changes, known_us = self.changes(history, floor_us), min(self._last_us.values())
        engine.cuts.know(known_us)
        engine.waiting.behind_us = known_us if catches_up else None
        outcome = engine.take([*taken, *in_cells(changes)], low_us)
        if changes or self.waits_since_us is None:
            self.waits_since_us = now_us
        if engine.waiting.first_us is None:
            self.waits_since_us = None
        self.put(history)
        return outcome

    def put(self, history: PartedHistory) -> None:
        """Store what the engine has taken."""
        for (event, cell_us), cell in self._cells.items():
            history.put_taken(event, cell_us, cell)
        self._again -= self._over
        self._cells.clear()
        self._over.clear()

    def give_up(self) -> None:
        """What was taken is not stored: take it again."""
        self._pending |= self._cells.keys() | self._over
        self._cells.clear()
        self._over.clear()
        self._gone_on.clear()


def _published(frame: SharesFrame, names: Sequence[str]) -> dict[Place, SharedPlace]:
    """Return the events in order that a gateway has published.

    Raises:
        FrameRefusedError: it holds none, or a resumption: gateways publish events alone.
    """
    try:
        places = places_in(frame.content, frame.cell_us, names)
    except ValueError as error:
        raise FrameRefusedError(f"shares: {error}") from None
    if any(map(is_resumption, places)):
        raise FrameRefusedError("shares: of no event")
    return places


def _resumptions(
    keys: Collection[str], known: Mapping[int, Mapping[Place, SharedPlace]], at_us: int
) -> dict[Place, SharedPlace]:
    """Return where a device goes on of some keys, behind all events in order that are known."""
    last = {
        each.key: (place, each) for at in sorted(known) for place, each in sorted(known[at].items())
    }
    return dict(resumption(at_us, key, last.get(key)) for key in keys)


def _bases(cell: TakenCell) -> set[bytes]:
    """Return what names the shares of a cell that are known."""
    return {basis_of(place, each.share) for place, each in cell.places.items() if each.known}


def _differences(event: str, before: TakenCell, after: TakenCell) -> Iterator[TakenItem]:
    """Yield how the places of a cell differ, as an engine takes it."""
    version = (after.number, 0, 0)
    were, are = before.places | before.resumed, after.places | after.resumed
    for place in sorted(were.keys() | are.keys()):
        old, new = were.get(place), are.get(place)
        if old is not None and new is not None and same(tuple(old), tuple(new)):
            continue
        content = None if new is None else (event, (new.known, new.share), new.key, "")
        yield OutputItem(event, sent_at(place), FLEET, version, content)
