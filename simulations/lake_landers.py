"""Landers that share a lake with each other and with people, killed between any two of its commits.

One or two landers run as they are (`cloud_tier.lander.run`), over logs and a table `landing` on
disk, whose power may go before and after each commit and whenever they keep what they know. Others
commit between, and in the midst of a landing: somebody goes back to an earlier version, which loses
rows, or changes the table and loses none. A whole lake is put back to a copy, a log loses its
segments, a clock is set, a connection ends. Devices are as simple as can be: they send whatever the
store that spoke last has not acknowledged, and promise what it has.
What must hold, as a device and somebody who reads the tables see it:

- once all is well, every entry of a device is there as it was sent, and what was refused is counted
  once
- a promise that lands speaks of what is in the table
- a lake that lost rows has another id as soon as a lander has landed a segment, and no other cause
  gives it one
- of a lander's clock: it has listened since its connection began, and for as long as that lasted
- a process knows how far sources had come, as it was reported to one before it

    >>> troubles(1)
    []
"""

import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

from deltalake import DeltaTable

from cloud_tier.lake.store_id import store_id
from cloud_tier.lake.tables import PANE, PROMISE, TICK, LakeTables
from crdts import Replica
from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.fencing import SourceHigh
from lasp_edge.protocol.frames import BeatFrame, PaneFrame
from lasp_edge.protocol.sinks import DEFAULT_SINK, SinkLow, store_tag
from lasp_edge.protocol.topics import Topics, topic_of
from lasp_edge.units import SECOND_US
from simulations.lake_landed import DEVICES, NO_FRAME, warmth
from simulations.lander_on_disk import LakePlace, OneLander

STEPS, CALM_STEPS, SEEN_STEPS = 10, 8, 2
"""Steps of a run with faults, and after them at most until all is there; and those after which each
device has shown each lander by a beat what it takes for landed."""
STEP_US: Final = 4 * SECOND_US
"""Microseconds from one step to the next: longer than a lander waits until it closes a segment."""
_TWO, _KILLED, _BAD, _ENDS = 0.5, 0.3, 0.2, 0.25
"""How often there are two landers, one is killed in a step, a frame is bad, a connection ends."""
_OTHERS: Final = ("goes back", "goes back", "changes", "put back", "log lost", "clock set")
_OTHER, _WITHIN = 0.35, 0.5
"""How often somebody does one of these in a step, and how often that is in the midst of a landing.
"""
_CALLS: Final = 9
"""Calls that a lander's power lasts at most, where it goes: a turn with a start has some more."""
_COMES: Final = 0.7
"""How often a message reaches a lander: not each one hears all."""
CLOCK_US: Final = 600 * SECOND_US
"""Microseconds by which a clock is set."""
_COLUMNS: Final = (
    *("kind", "device", "incarnation", "nonce", "seq", "pane_us", "total_q", "low_us"),
    *("lander", "since_us", "now_us"),
)
_SOURCE: Final = 7
"""The id of a device's one source."""
Entry = tuple[str, int, int, int, int]
"""Device, incarnation, seq, start of its pane, and its value."""


class PlainDevice:
    """A device that sends what the store that spoke last lacks.

    Attributes:
        sent: all its entries.
        number: of its last frame.
    """

    def __init__(self, name: str, random: Random, stream: int, span_us: int) -> None:
        self.name, self._random, self._stream, self._span_us = name, random, stream, span_us
        self.sent: list[Entry] = []
        self._taken = set[Entry]()
        self._store, self._commit, self._life, self.number = "", 0, 1, 0

    @property
    def lacking(self) -> list[Entry]:
        """The entries that its store has not acknowledged."""
        return [each for each in self.sent if each not in self._taken]

    def reads(self, now_us: int) -> None:
        """Take in a reading; now and then by another process."""
        self._life += self._random.random() < 0.1  # noqa: PLR2004 - one of ten
        pane_us = now_us // self._span_us * self._span_us
        self.sent.append((self.name, self._life, len(self.sent) + 1, pane_us, len(self.sent)))

    def frames(self, now_us: int) -> Iterator[Frame]:
        """Yield what it sends: what is lacking, and a beat."""
        me = Replica(self._life, self._life, self.name)
        lives = defaultdict[int, list[Entry]](list)
        for each in self.lacking:
            lives[each[1]].append(each)
        if lives:
            self.number += 1
            blocks = [self._block(life, several) for life, several in sorted(lives.items())]
            yield PaneFrame(me, self.number, tuple(blocks))
        self.number += 1
        low_us = min([pane_us for *_, pane_us, _ in self.lacking], default=now_us)
        low = SinkLow(DEFAULT_SINK, store_tag(self._store), low_us, self._commit)
        high = SourceHigh(_SOURCE, now_us, len(self.sent))
        yield BeatFrame(me, self.number, (low,), done=False, reports=(), highs=(high,))

    def _block(self, life: int, entries: list[Entry]) -> PaneEntries:
        return PaneEntries(
            stream=self._stream,
            span_us=self._span_us,
            incarnation=life,
            nonce=life,
            columns=((1,) * len(entries), tuple([value for *_, value in entries])),
            keys=("",) * len(entries),
            panes_us=tuple([pane_us for *_, pane_us, _ in entries]),
            seqs=tuple([seq for _, _, seq, *_ in entries]),
        )

    def hear(self, answer: AckFrame) -> None:
        """Note which entries a store has; another one has none."""
        if answer.store != self._store:
            self._store, self._commit, self._taken = answer.store, 0, set()
        for seqs in answer.taken:
            self._taken |= {e for e in self.sent if e[1] == seqs.incarnation and e[2] in seqs}
            self._commit = max(self._commit, answer.commit)


class SharedLake:
    """A lake, its landers and devices, and whoever else changes it.

    Args:
        place: of it; its tables are made.

    Attributes:
        place: see there.
        landers: its landers.
    """

    def __init__(self, place: LakePlace) -> None:
        self.place, plan, random = place, place.plan, place.random
        place.lake.create(plan.columns)
        window = plan.windows["by_room"]
        self.devices = [PlainDevice(n, random, window.stream, window.span_us) for n in DEVICES]
        self.landers = [OneLander(place, n) for n in range(1 + (random.random() < _TWO))]
        self._bad = self._losses = 0
        self._stores, self._lost = set[str](), set[str]()
        self._sent_before_loss: dict[str, int] = {}
        self._counts = True
        self._topics = Topics(plan.name)

    def _table(self) -> DeltaTable:
        return DeltaTable(self.place.lake.landing)

    def step(self, *, calm: bool) -> None:
        """Let time pass, messages come, and something befall."""
        self.place.now_us += STEP_US
        chance, lander = self.place.random.random, self.place.random.choice(self.landers)
        if not calm:
            for device in self.devices:
                device.reads(self.place.now_us)
            if chance() < _OTHER:
                self._happens(self.place.random.choice(_OTHERS), lander)
            if chance() < _KILLED:
                lander.power.calls = self.place.random.randint(0, _CALLS)
            lander.breaks = chance() < _ENDS
        sent = [(d, topic_of(f, self._topics), f.encode()) for d, f in self._frames()]
        for each in self.landers:
            came = [(topic, payload) for _, topic, payload in sent if calm or chance() < _COMES]
            if came and not calm and chance() < _BAD:
                came.append((came[0][0], NO_FRAME))
                self._bad += 1
            self._turn(each, came)

    def _frames(self) -> Iterator[tuple[PlainDevice, Frame]]:
        for device in self.devices:
            yield from ((device, frame) for frame in device.frames(self.place.now_us))

    def _turn(self, lander: OneLander, came: list[tuple[str, bytes]]) -> None:
        before = self._table().transaction_version(lander.name)
        lost = set(self._lost)  # what is lost in the midst of a landing is found in it, or later
        for answer in lander.turn(came):
            next(each for each in self.devices if each.name == answer.about).hear(answer)
        table = self._table()
        store = store_id(table)
        self._stores.add(store)
        if table.transaction_version(lander.name) != before and lander.landing is not None:
            if store in lost:
                self.place.trouble.append(f"{lander.name} landed in {store}, which has lost rows")
            self.place.trouble += self._wrong(table)

    def _happens(self, kind: str, lander: OneLander) -> None:
        """Let somebody do something."""
        if kind == "clock set":
            lander.off_us += self.place.random.choice([-1, 1]) * CLOCK_US
        elif kind == "log lost":
            self._counts = False
            lander.lose_log()
        elif kind == "put back":
            self._put_back()
        elif lander.landing is not None and self.place.random.random() < _WITHIN:
            lander.landing.beside = self._goes_back if kind == "goes back" else self._changes
        else:
            (self._goes_back if kind == "goes back" else self._changes)()

    def _changes(self) -> None:
        """Change the table, and lose nothing."""
        table = self._table()
        if self.place.random.random() < 1 / 2:
            table.optimize.compact()
        else:
            table.alter.set_table_properties({"delta.appendOnly": "false"})

    def _goes_back(self) -> None:
        """Put an earlier version of the table in its place; perhaps change something then."""
        table = self._table()
        if table.version():
            self._lost.add(store_id(table))
            self._lose()
            table.restore(self.place.random.randrange(table.version()))
            if self.place.random.random() < 1 / 2:
                self._changes()

    def _put_back(self) -> None:
        """Put a copy of the lake in its place, if there is one; else make it.

        Another lander's commits would hide what is missing: with two there is no copy.
        """
        image = self.place.folder / "image"
        if len(self.landers) > 1:
            return
        self.landers[0].end()
        if not image.exists():
            shutil.copytree(self.place.lake.root, image)
            return
        shutil.rmtree(self.place.lake.root)
        image.rename(self.place.lake.root)
        self._counts = False
        self._lose()

    def _lose(self) -> None:
        self._losses += 1
        self._sent_before_loss = {each.name: each.number for each in self.devices}

    def _wrong(self, table: DeltaTable) -> Iterator[str]:
        """Yield the promises that speak of what is not there, and the clocks that are wrong."""
        rows = table.to_pyarrow_table(columns=list(_COLUMNS)).to_pylist()
        there = {_entry(row) for row in rows if row["kind"] == PANE}
        for device in self.devices:
            several = [r for r in rows if r["kind"] == PROMISE and r["device"] == device.name]
            newest = max(several, key=_version, default=None)
            if newest is None or newest["seq"] <= self._sent_before_loss.get(device.name, 0):
                continue
            for each in device.sent:
                if each[3] < newest["low_us"] and each not in there:
                    yield f"{device.name} has promised {newest['low_us']}, and {each} is not there"
        for row in rows:
            if row["kind"] == TICK:
                yield from self._wrong_clock(row)

    def _wrong_clock(self, tick: Mapping[str, Any]) -> Iterator[str]:
        lander = next(each for each in self.landers if each.name == tick["lander"])
        since_us, now_us = tick["since_us"], tick["now_us"]
        began_us = lander.connections.get(since_us)
        if began_us is None:
            yield f"{lander.name} has listened since {since_us}, when no connection began"
        elif not 0 <= now_us - since_us <= self.place.now_us - began_us:
            yield f"{lander.name} has listened from {since_us} to {now_us}: for too long"

    def at_rest(self) -> Iterator[str]:
        """Yield what is wrong once all is well."""
        rows = self._table().to_pyarrow_table(columns=list(_COLUMNS)).to_pylist()
        there = {_entry(row) for row in rows if row["kind"] == PANE}
        sent = {each for device in self.devices for each in device.sent}
        for each in sorted(sent ^ there):
            yield f"{each} is {'not there' if each in sent else 'there, and nobody has sent it'}"
        if len(self._stores) > 1 + self._losses:
            yield f"it lost rows {self._losses} times, and was the stores {sorted(self._stores)}"
        rejects = self.place.lake.table(self.place.lake.rejects).to_pyarrow_table().to_pylist()
        counted = sum(row["frames"] for row in rejects if row["frame"] == NO_FRAME)
        least = self.place.refused
        if self._counts and not least <= counted <= self._bad:
            yield f"{least} to {self._bad} frames were refused, and {counted} are counted"


def _version(row: Mapping[str, Any]) -> tuple[int, int, int]:
    return row["incarnation"], row["nonce"], row["seq"]


def _entry(row: Mapping[str, Any]) -> Entry:
    return row["device"], row["incarnation"], row["seq"], row["pane_us"], row["total_q"]


def troubles(seed: int) -> list[str]:
    """Return what is wrong in a run; empty where all laws hold."""
    with TemporaryDirectory() as folder:
        path, random = Path(folder), Random(f"{seed} landers")
        place = LakePlace(path, random, warmth(), LakeTables(path / "lake"))
        shared = SharedLake(place)
        try:
            for _ in range(STEPS):
                shared.step(calm=False)
                if place.trouble:
                    return place.trouble
            for number in range(CALM_STEPS):
                shared.step(calm=True)
                if number >= SEEN_STEPS and not any(each.lacking for each in shared.devices):
                    break
            return place.trouble or list(shared.at_rest())
        finally:
            for lander in shared.landers:
                lander.end()
