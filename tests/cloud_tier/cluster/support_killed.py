"""A driver that stands at every point between two commits at once, a lake for each, to be killed.

    python -m tests.cloud_tier.cluster.support_killed FOLDER

It says `READY` when it stands at all of them, and waits. One process for all points: a start of
Spark takes longer than all of their batches.
"""

import json
import shutil
import sys
import threading
import time
import uuid
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from cloud_tier.job import batch, frames, maintenance, stored, streaming
from cloud_tier.job.job import Job
from cloud_tier.job.opened import OpenTables
from cloud_tier.job.step import Outcome
from cloud_tier.job.streaming import Upkeep
from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.tables import LakeTables
from cloud_tier.spark.session import spark_session
from tests.brokers import PATIENCE_S
from tests.cloud_tier.lakes import QUICK
from tests.cloud_tier.support_devices import (
    BEGIN_US,
    SECOND_US,
    Row,
    history,
    readings_of,
    rooms,
    row,
    table,
    tick,
)

READY: Final = "READY"
PROGRAM: Final = rooms()
READINGS: Final = readings_of(11, each=4)
PARTS: Final = 2
"""Into which the history is divided: one is merged, and the batch of the other is torn."""
_MERGED: Final = "merged"
"""The lake that has the first part; the others begin as its copies."""
NEVER: Final = Upkeep(1_000_000, 1_000_000, 1_000_000)


class Point(NamedTuple):
    """Where the driver stands: it has made a call, and what follows is not begun.

    Attributes:
        owner: a module or a class.
        function: of the owner; calls of it that concern another lake pass.
        table: of the lake, that the call must name; empty where it names none.
        upkeep: how often the lake is kept small, in batches of this process; it makes one.
        before: the call itself is not begun.
        most_rows: up to which a step takes rows into the driver.
    """

    owner: Any
    function: str
    table: str = ""
    upkeep: Upkeep = NEVER
    before: bool = False
    most_rows: int = frames.MOST_ROWS


_PACKED: Final = NEVER._replace(pack_every=1)
_KEPT: Final = NEVER._replace(maintain_every=1)
_VACUUMED: Final = _KEPT._replace(vacuum_every=1)
_AT_ONCE: Final = {"delta.deletedFileRetentionDuration": "interval 0 seconds"}
"""So that VACUUM deletes what compaction has just replaced."""
POINTS: Final[Mapping[str, Point]] = MappingProxyType(
    {
        "the batch is planned": Point(streaming, "step", before=True),
        "rows are in lattice": Point(OpenTables, "append", "lattice"),
        "windows are written": Point(OpenTables, "append", "windows"),
        "globals are written": Point(OpenTables, "append", "globals"),
        "many rows are in lattice": Point(batch, "append", "lattice", most_rows=0),
        "many windows are written": Point(stored, "append", "windows", most_rows=0),
        "lattice is packed": Point(OpenTables, "pack", "lattice", _PACKED),
        "windows are packed": Point(OpenTables, "pack", "windows", _PACKED),
        "a partition is rewritten": Point(maintenance, "compact", "", _KEPT),
        "landing is packed": Point(OpenTables, "pack", "landing", _KEPT),
        "windows are packed after it": Point(OpenTables, "pack", "windows", _KEPT),
        "lattice is vacuumed": Point(OpenTables, "vacuum", "lattice", _VACUUMED),
        "all is done but reported": Point(streaming.Batches, "_maintain"),
    }
)
"""Those between the commits of a batch, and those between the commits of its upkeep."""


class TornLake:
    """A lake whose job is to be killed.

    Args:
        root: where it is.
    """

    def __init__(self, root: Path) -> None:
        self.tables = LakeTables(root)
        rows = history(PROGRAM, READINGS)
        size = -(-len(rows) // PARTS)
        self._parts = [
            [*rows[part * size : (part + 1) * size], *_clocks(part + 1)] for part in range(PARTS)
        ]

    def land(self, part: int) -> None:
        """Land one of the parts."""
        rows = table(PROGRAM, self._parts[part])
        write_deltalake(self.tables.landing, rows, mode="append", schema_mode="merge")

    def query(self, spark: SparkSession, upkeep: Upkeep = NEVER) -> Any:
        """Start the job's query."""
        prepare(PROGRAM, self.tables)
        job = Job(PROGRAM, self.tables)
        return streaming.start(spark, job, _say_nothing, trigger_s=0.05, upkeep=upkeep)


class Stand:
    """Holds the thread of a query at a point, for ever.

    Args:
        point: where.
        root: of the lake.

    Attributes:
        reached: that the thread stands there.
    """

    def __init__(self, point: Point, root: str) -> None:
        self.reached = threading.Event()
        self._point, self._root = point, root

    @contextmanager
    def held(self) -> Any:
        """Have calls come by here while the block lasts; who stands here stays."""
        owner, function = self._point.owner, self._point.function
        plain = getattr(owner, function)

        def call(*words: Any, **options: Any) -> Any:
            if self._point.before:
                self._pass(words)
            done = plain(*words, **options)
            self._pass(words)
            return done

        setattr(owner, function, call)
        try:
            yield
        finally:
            setattr(owner, function, plain)

    def _pass(self, words: tuple[Any, ...]) -> None:
        if any(map(self._is_here, words)):
            self.reached.set()
            threading.Event().wait()

    def _is_here(self, word: Any) -> bool:
        if isinstance(word, streaming.Batches):
            return True
        if isinstance(word, Job):
            return word.lake.root == self._root
        return f"{self._root}/{self._point.table}" in str(word) and bool(self._point.table)


def merge_a_part(spark: SparkSession, folder: Path) -> None:
    """Make a lake that has merged the first part."""
    made = TornLake(folder / _MERGED)
    prepare(PROGRAM, made.tables)
    DeltaTable(made.tables.lattice).alter.set_table_properties(_AT_ONCE)
    made.land(0)
    query = made.query(spark)
    query.processAllAvailable()
    query.stop()


def stand_at(name: str, spark: SparkSession, folder: Path) -> None:
    """Have a job stand at a point of the batch that merges the second part."""
    point, torn = POINTS[name], TornLake(folder / name)
    shutil.copytree(folder / _MERGED, folder / name)
    identity = Path(torn.tables.checkpoint, "metadata")  # a query runs once, and this is another
    identity.with_name(".metadata.crc").unlink()
    identity.write_text(json.dumps({"id": str(uuid.uuid5(uuid.NAMESPACE_OID, name))}))
    torn.land(1)
    frames.MOST_ROWS = point.most_rows
    stand = Stand(point, torn.tables.root)
    with stand.held():
        query = torn.query(spark, point.upkeep)
        ends_s = time.monotonic() + PATIENCE_S  # noqa: TID251 - a process takes real time
        while not stand.reached.wait(0.1):
            assert query.isActive, streaming.failure(query)
            assert time.monotonic() < ends_s, name  # noqa: TID251


def main() -> None:
    """Stand at all points, say so, and wait to be killed."""
    spark = spark_session(app_name="killed", master="local[2]", conf=QUICK, short_run=True)
    merge_a_part(spark, Path(sys.argv[1]))
    for name in POINTS:
        stand_at(name, spark, Path(sys.argv[1]))
    sys.stdout.write(f"{READY}\n")
    sys.stdout.flush()
    threading.Event().wait()


def _clocks(part: int) -> list[Row]:
    """Return a promise of each device, of a life after all others, and the lander's clock."""
    low_us = BEGIN_US + 40 * part * SECOND_US
    devices = sorted({reading.device for reading in READINGS})
    promises = [row("promise", name, 9, 9, part, low_us=low_us, done=False) for name in devices]
    return [*promises, tick(part, BEGIN_US + part * SECOND_US, BEGIN_US - 3_600 * SECOND_US)]


def _say_nothing(_outcome: Outcome) -> None:
    pass


if __name__ == "__main__":
    main()
