"""One order over a fleet in a lake whose job dies between any two commits, tried seed after seed.

Batches of cells of items land: late, repeated, taken back, of several lives. In each, the job may
die after some of its commits, and a new process does the batch again, as Spark would. Devices fall
silent, and the frontier passes them. The law: after each batch the rows of the table are the
oracle's of all items that landed, and final behind the frontier alone; and those name each device
that has not promised past them, and nobody else. In a part of the runs late readings are taken for
a short time, and all come within it, most of these as late as they may; in another one rows wait
for X, which is longer for some processes than for those before: then the rows are those of the
items that are not waited for, and what had a row keeps it. The job's own code runs
(`cloud_tier.job.streams`), over tables in memory.

    >>> troubles(7)
    []
"""

import sqlite3
from collections.abc import Iterator
from random import Random
from types import SimpleNamespace
from typing import Any, Final, NamedTuple, cast
from unittest.mock import patch

import pyarrow as pa

from cloud_tier.job import streams as lake_streams
from cloud_tier.job.job import Job
from cloud_tier.job.streams import LakeStreams, StepFrontier
from cloud_tier.lake.tables import ABSENT, PANE, row_types
from crdts import Replica
from lasp_edge import Program, folds, scans
from lasp_edge.language.plan import Plan
from lasp_edge.language.streaming import FLEET, graph_of, plain_parts
from lasp_edge.ordered.cells import CELL_US, PRESENT, RETRACTED, Cell, Item, cell_of, packed
from lasp_edge.ordered.deltas import Content
from lasp_edge.ordered.log import BEFORE_ALL_US
from lasp_edge.ordered.oracle import outputs_of
from lasp_edge.ordered.places import place_text
from lasp_edge.protocol.frontier import AwaitedDevices, Liveness, caught_up, reach_us
from lasp_edge.protocol.lake_columns import (
    ITEMS,
    LANDED,
    PANE_DATE,
    RESULT_ROW,
    ROW_IDENTITY,
    ROW_RECORD,
)
from lasp_edge.protocol.limits import EARLIEST_PANE_US, LATEST_PANE_US
from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.protocol.waiting import DEAD_AFTER_US
from lasp_edge.protocol.window_rows import names_in
from lasp_edge.units import SECOND_US

BATCHES, READINGS, LIVE_ITEMS = 8, 8, 10
"""Batches of a run, readings of each, and items in memory: so few that there are cuts."""
DEVICES: Final = ("pi-0", "pi-1", "pi-2")
START_US: Final = 1_700_000_000 * SECOND_US
_DEATH = 0.6
"""The part of the batches in which the job dies."""
_TURNS = 0.3
"""How probable it is in a batch that a device falls silent, or is back."""
_COMMITS = 4
"""After this number of its commits, at most."""
_SHORT, RETAIN_US = 0.25, 45 * SECOND_US
"""The part of the runs in which late readings are taken for a short time, and that time."""
_WAITS, X_S = 0.25, (0, 16, 64)
"""The part of the runs in which rows wait for X, and by how many seconds F is behind that."""
NEVER_LATE_US: Final = 10**15
NEVER_WAITED_US: Final = 1 << 62


class JobKilledError(Exception):
    """The job's process ends here."""


class LandedCell(NamedTuple):
    """A cell of items as it lands."""

    device: str
    life: int
    seq: int
    cell: Cell

    @property
    def at_us(self) -> int:
        """Where the cell begins."""
        return cell_of(min(self.cell).time_us)


class MemoryTables:
    """`lattice` and `results` of a lake, in memory: a commit is one append.

    Args:
        plan: of the program.

    Attributes:
        lake: the names of the tables.
        left: after how many commits the process ends; None for never.
        new: the cells of which the present batch has appended an entry.
    """

    def __init__(self, plan: Plan) -> None:
        self.lake = SimpleNamespace(lattice="lattice", results="results")
        self.left: int | None = None
        self.new: set[int] = set()
        self._db = sqlite3.connect(":memory:")
        results = plan.stream_results.values()
        self._make("lattice", [*LANDED, RESULT_ROW, ITEMS, PANE_DATE])
        self._make("results", [*ROW_IDENTITY, *row_types(results), *ROW_RECORD])

    def _make(self, path: str, columns: list[str]) -> None:
        named = ", ".join(f'"{name}"' for name in dict.fromkeys(columns))
        self._db.execute(f"CREATE TABLE {path} ({named})")

    def select(self, path: str, query: str) -> pa.Table:
        """Return what a query gives."""
        cursor = self._db.execute(f"WITH source AS (SELECT * FROM {path}) {query}")  # noqa: S608
        names, rows = [each[0] for each in cursor.description], cursor.fetchall()
        return pa.table({name: [row[n] for row in rows] for n, name in enumerate(names)})

    def append(self, path: str, rows: pa.Table, _frontier_us: int | None = None) -> None:
        """Append rows in one commit, if there are any; then the process may end."""
        if rows.num_rows:
            self.put(path, rows.to_pylist())

    def put(self, path: str, rows: list[dict[str, Any]]) -> None:
        """Append rows in one commit.

        Raises:
            JobKilledError: it was the last one of this process.
        """
        named = ", ".join(f'"{name}"' for name in rows[0])
        marks = ", ".join("?" for _ in rows[0])
        values = [tuple(str(v) if k == PANE_DATE else v for k, v in row.items()) for row in rows]
        self._db.executemany(f"INSERT INTO {path} ({named}) VALUES ({marks})", values)  # noqa: S608
        self._count()

    def _count(self) -> None:
        if self.left is not None:
            self.left -= 1
            if not self.left:
                raise JobKilledError

    def known(self) -> set[tuple[str, int, int]]:
        """Return device, life and seq of the entries in `lattice`."""
        query = f"SELECT device, incarnation, seq FROM lattice WHERE kind = '{PANE}'"  # noqa: S608
        return set(self._db.execute(query))


class LakeRun:
    """Devices, a lake, and the process of its job.

    Args:
        seed: of everything that is drawn.
    """

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.plan = _plan(self._random.choice(list(SCANS)))
        self.tables = MemoryTables(self.plan)
        self.cells: dict[tuple[str, int, int], Cell] = {}
        self._lives, self._seq = dict.fromkeys(DEVICES, 1), 0
        self._sent: list[LandedCell] = []
        self.frontier_us: int | None = None
        self._away, self._promised = set[str](), 0
        self._before, self._now = Liveness(), Liveness()
        self._terms = Random(f"{seed} terms")
        drawn = self._terms.random()
        self._retain_us = RETAIN_US if drawn < _SHORT else NEVER_LATE_US
        self._has_x = drawn > 1 - _WAITS
        self._renamed_us, self._ever_taken_us = BEFORE_ALL_US, set[int]()
        self.begin()

    def begin(self) -> None:
        """Begin a process of the job; what the one before held in memory is gone."""
        job = SimpleNamespace(
            plan=self.plan,
            lake=self.tables.lake,
            tables=self.tables,
            retain_us=self._retain_us,
            tentative_after_us=0,
        )
        self._x_us = self._terms.choice(X_S) * SECOND_US
        self._taken_us = BEFORE_ALL_US
        with patch.object(lake_streams, "LIVE_ITEMS", LIVE_ITEMS):
            self._streams, self._is_first = LakeStreams(cast("Job", job)), True

    def batch(self, number: int) -> list[LandedCell]:
        """Return what lands in a batch; in half of them some is late, taken back, or once more."""
        random, entries = self._random, list[LandedCell]()
        is_calm = random.random() < 0.5  # noqa: PLR2004 - half of them
        for n in range(READINGS):
            at_s = 4 * (number * READINGS + n)
            if not is_calm:
                at_s -= random.choice([0, 0, 0, random.randrange(at_s + 1)])
                at_s = max(at_s, (self._floor_us() - START_US) // SECOND_US)
            device, room = random.choice(DEVICES), random.choice("ab")
            value = random.randrange(9)
            item = Item(START_US + at_s * SECOND_US, value, f'{{"room":"{room}"}}')
            entries.append(self._entry(device, item, PRESENT))
        self._sent += entries
        if is_calm:
            return entries
        floor_us = self._floor_us()
        device, life, at_us = random.choice([at for at in sorted(self.cells) if at[2] >= floor_us])
        item = random.choice(sorted(self.cells[device, life, at_us]))
        entries.append(self._entry(device, item, RETRACTED))
        if random.random() < 0.3:  # noqa: PLR2004 - a store was lost
            self._lives[device] += 1
        entries += random.sample(self._sent, 2)
        random.shuffle(entries)
        return entries

    def _floor_us(self) -> int:
        """Return before which start a cell comes too late in the next batch."""
        return ((self.frontier_us or 0) - self._retain_us) // CELL_US * CELL_US

    def _entry(self, device: str, item: Item, state: int) -> LandedCell:
        self._seq += 1
        life, at_us = self._lives[device], cell_of(item.time_us)
        cell = self.cells.setdefault((device, life, at_us), {})
        cell[item] = max(state, cell.get(item, PRESENT))
        return LandedCell(device, life, self._seq, dict(cell))

    def merge(self, entries: list[LandedCell], promised_us: int) -> None:
        """Do a batch; where the process dies, another one does it again."""
        if self._random.random() < _DEATH:
            self.tables.left = self._random.randint(1, _COMMITS)
        self.tables.new = set()
        self._promise(promised_us)
        self._renamed_us = self._floor_us()
        try:
            self._do(entries, promised_us)
        except JobKilledError:
            self.tables.left, self.tables.new = None, set()
            self.begin()
            self._do(entries, promised_us)
        self.tables.left, self.frontier_us, self._is_first = None, promised_us, False
        self._before = self._now

    def _promise(self, promised_us: int) -> None:
        """Let all devices promise as much, but those that are silent."""
        for device in DEVICES:
            if self._random.random() < _TURNS:
                self._away ^= {device}
            if device not in self._away:
                known, self._promised = self._now.promises, self._promised + 1
                me, seq = Replica(1, 7, device), self._promised
                self._now = Liveness(known | known.promise(me, seq, promised_us, promised_us))

    def _lows_us(self) -> tuple[tuple[str, int], ...]:
        """Return up to which time each device has promised."""
        known = self._now.promises.entries
        return tuple((device, reach_us(known.get(device))) for device in DEVICES)

    def _do(self, entries: list[LandedCell], promised_us: int) -> None:
        known, stream = self.tables.known(), self.plan.item_streams["door"].stream
        new = [each for each in entries if (each.device, each.life, each.seq) not in known]
        self.tables.new = {each.at_us for each in new}
        if new:
            self.tables.put("lattice", [lattice_row(each, stream) for each in new])
        touched: dict[int, int] = {}
        for each in entries:
            touched[each.at_us] = touched.get(each.at_us, 0) + 1
        due_us = promised_us + self._x_us if self._has_x else NEVER_WAITED_US
        self._take(promised_us, due_us)
        every = range(EARLIEST_PANE_US, LATEST_PANE_US)
        terms = (DEVICES, DEAD_AFTER_US)
        back = caught_up(self._before, self._now, *terms, self._streams.frontier_us)
        frontier = StepFrontier(
            self.frontier_us,
            promised_us,
            due_us,
            is_over=False,
            awaited=AwaitedDevices((), promised_us, self._lows_us()),
            known=self._now.promises.entries,
            caught_up=every if self._is_first else back,
        )
        self._streams.advance({stream: touched}, frontier)

    def _take(self, promised_us: int, due_us: int) -> None:
        """Note before which time a batch takes all items, at least."""
        if self._is_first:  # what has a row is not waited for again
            newest = self.tables.select("results", "SELECT max(time_us) AS us FROM source")
            due_us = max(due_us, (newest.column("us")[0].as_py() or 0) + 1)
        newest_us = max(item.time_us for cell in self.cells.values() for item in cell)
        self._taken_us = max(self._taken_us, promised_us, min(due_us, newest_us + 1))
        self._ever_taken_us.add(self._taken_us)

    def wrong(self) -> Iterator[str]:
        """Yield where the rows of the table are not the oracle's."""
        # What a process before had taken is taken, where it came to say so.
        may_take_us = sorted({max(us, self._taken_us) for us in self._ever_taken_us})
        for name in self.plan.fleet_results:
            truths = [self._truth(name, until_us) for until_us in may_take_us]
            rows = self._rows(name)
            kept = {at: row[:2] for at, row in rows.items()}
            truth = kept if kept in truths else truths[0]
            for at in sorted(kept.keys() | truth.keys()):
                if kept.get(at) != truth.get(at):
                    yield f"{name} at {at}: {kept.get(at)}, and the oracle's is {truth.get(at)}"
            for at, (_, _, status, time_us, excluded) in rows.items():
                is_passed = time_us < (self.frontier_us or 0)
                if (status == TENTATIVE) == is_passed:
                    yield f"{name} at {at} is {status}, and F is {self.frontier_us}"
                behind = [device for device, low_us in self._lows_us() if low_us <= time_us]
                if time_us < self._renamed_us:
                    continue  # too old to be written again
                if names_in(excluded) != tuple(behind if is_passed else ()):
                    yield f"{name} at {at} names {excluded!r}, and missing are {behind}"

    def _truth(self, name: str, until_us: int) -> dict[str, tuple[str, tuple[int | str, ...]]]:
        """Return place -> key and parts by the oracle, of the items before a time."""
        result, content = self.plan.fleet_results[name], self._content(until_us)
        nodes = graph_of(self.plan, FLEET).nodes
        return {
            place_text(at): (event.key, plain_parts(result, event.value))
            for at, event in outputs_of(nodes, {"door": content}, self.frontier_us)[name].items()
        }

    def _content(self, until_us: int) -> Content:
        """Return the items that are present, of all lives of all devices, before a time."""
        resolution, states = self.plan.events["door"].resolution, dict[tuple[str, Item], int]()
        for (device, _, _), cell in self.cells.items():
            for item, state in cell.items():
                states[device, item] = max(state, states.get((device, item), 0))
        return {
            item.place("door", device): item.event("door", device, resolution)
            for (device, item), state in states.items()
            if state == PRESENT and item.time_us < until_us
        }

    def _rows(self, name: str) -> dict[str, tuple[str, tuple[int, ...], str, int, str]]:
        """Return place -> key, parts, status, time and names of the newest rows that are there."""
        query = f"SELECT * FROM source WHERE result = '{name}' ORDER BY revision"  # noqa: S608
        columns, found = self.plan.fleet_results[name].columns, {}
        for row in self.tables.select("results", query).to_pylist():
            parts = tuple(row[column] for column in columns)
            known = (row["key"], parts, row["status"], row["time_us"], row["excluded"])
            found[row["place"]] = known if row["present"] else None
        return {at: row for at, row in found.items() if row is not None}


SCANS: Final = {
    "differences": scans.differences(),
    "sessions": scans.sessions(gap_s=6, fold=folds.sum()),
    "last": scans.last(3),
    "total": scans.running(lambda state, event: state + round(event.value), 0),
}
_PARTS: Final = {"last": {"a": "1", "b": "1", "c": "1"}, "total": {"total": "1"}}


def _plan(name: str) -> Plan:
    """Return a program of a scan over the fleet, by room."""
    program = Program("doors")
    door = program.event("door", resolution="1")
    scan = scans.last(3, partial=False) if name == "last" else SCANS[name]
    made = program.scan("made", source=door, scan=scan, key=lambda event: event.tags["room"])
    program.result(made, parts=_PARTS.get(name))
    return program.plan()


def lattice_row(landed: LandedCell, stream: int) -> dict[str, Any]:
    """Return an entry as a row of `lattice`."""
    named = {"kind": PANE, "device": landed.device, "incarnation": landed.life, "nonce": 7}
    where = {
        "seq": landed.seq,
        "stream": stream,
        "pane_us": landed.at_us,
        ITEMS: packed(landed.cell),
    }
    return {**ABSENT, "received_us": 0, **named, **where}


def troubles(seed: int) -> list[str]:
    """Return how a run breaks the law."""
    run = LakeRun(seed)
    for number in range(BATCHES):
        entries = run.batch(number)
        span_us = READINGS * 4 * SECOND_US
        run.merge(entries, START_US + number * span_us - CELL_US)
        wrong = list(run.wrong())
        if wrong:
            return [f"after batch {number}: {each}" for each in wrong]
    return []
