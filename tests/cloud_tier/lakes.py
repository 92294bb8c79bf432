"""A lake under test: steps over rows that are given, and what `deltalake` reads afterwards."""

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from deltalake import DeltaTable

from cloud_tier.job.job import Job
from cloud_tier.job.step import MergedState, Outcome, recalled, step
from cloud_tier.lake.tables import LakeTables
from lasp_edge.folds.columns import ColumnValue, Partial
from lasp_edge.language.plan import Plan
from tests.cloud_tier.support_devices import Row, table

# Every step is a new query over a few rows: what would make many rows quick only costs here.
QUICK = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


class GlobalValue(NamedTuple):
    """What the current row of a dynamic fold says under a key."""

    partial: Partial
    inputs: str
    devices_in: int
    revision: int


class ReadLake:
    """A lake of a program, as an independent reader sees it.

    Args:
        program: the program.
        lake: where its tables are.
    """

    def __init__(self, program: Plan, lake: LakeTables) -> None:
        self.program, self.lake = program, lake

    def rows(self, path: str) -> list[Row]:
        """Return a table's rows, as an independent reader sees them."""
        return DeltaTable(path).to_pyarrow_table().to_pylist()

    def version(self, path: str) -> int:
        """Return a table's version."""
        return DeltaTable(path).version()

    def revisions(self, window: str, start_us: int, key: str = "") -> list[Row]:
        """Return all rows of one window in the order of their revisions."""
        found = [
            row
            for row in self.rows(self.lake.windows)
            if (row["window"], row["key"], row["start_us"]) == (window, key, start_us)
        ]
        return sorted(found, key=lambda row: row["revision"])

    def current(self) -> dict[tuple[str, str, int], tuple[Any, ...]]:
        """Return (window, key, start) -> (partial, devices in) of the current rows."""
        newest: dict[tuple[str, str, int], Row] = {}
        for row in sorted(self.rows(self.lake.windows), key=lambda row: row["revision"]):
            newest[row["window"], row["key"], row["start_us"]] = row
        return {at: (self._partial(row), row["devices_in"]) for at, row in newest.items()}

    def statuses(self) -> dict[tuple[str, str, int], list[str]]:
        """Return (window, key, start) -> its statuses, by revisions that count without a gap."""
        found: dict[tuple[str, str, int], list[str]] = {}
        for row in sorted(self.rows(self.lake.windows), key=lambda row: row["revision"]):
            statuses = found.setdefault((row["window"], row["key"], row["start_us"]), [])
            assert row["revision"] == len(statuses), "revisions count from 0 without a gap"
            statuses.append(row["status"])
        return found

    def globals(self) -> dict[tuple[str, str], GlobalValue]:
        """Return (fold, key) -> the current row's; columns of other folds must be empty."""
        found: dict[tuple[str, str], GlobalValue] = {}
        for row in sorted(self.rows(self.lake.globals), key=lambda row: row["revision"]):
            at, fold = (row["name"], row["key"]), self.program.dynamic_folds[row["name"]]
            before = found[at].revision if at in found else -1
            assert row["revision"] == before + 1, "revisions count from 0 without a gap"
            assert row["stream"] == fold.stream
            others = set(self.program.columns) - set(fold.fold.columns_named)
            assert all(row[name] is None for name in others), "a column of another fold"
            partial = tuple(part(row[name]) for name in fold.fold.columns_named)
            found[at] = GlobalValue(partial, row["inputs"], row["devices_in"], row["revision"])
        return found

    def globals_there(self) -> dict[tuple[str, str], tuple[Partial, str, int]]:
        """Return (fold, key) -> (partial, inputs, devices in) of what some device has."""
        return {at: value[:3] for at, value in self.globals().items() if value.devices_in}

    def _partial(self, row: Row) -> Partial:
        columns = self.program.windows[row["window"]].fold.columns_named
        return tuple(part(row[name]) for name in columns)


class LakeUnderTest(ReadLake):
    """A fresh lake of a program, and the driver of its steps.

    Args:
        spark: the session.
        program: the program.
        root: an empty directory.
        options: of the job.
    """

    def __init__(self, spark: Any, program: Plan, root: Path, **options: Any) -> None:
        super().__init__(program, LakeTables(root))
        self.spark = spark
        for name, value in QUICK.items():
            spark.conf.set(name, value)
        own = (program.stream_results.values(), program.parameters, program.item_streams.values())
        self.lake.create(program.columns, *own)
        self.job = Job(program, self.lake, **options)
        self.known = MergedState.of(self.job)

    def step(self, rows: Iterable[Mapping[str, Any]]) -> Outcome:
        """Merge one batch."""
        batch = self.spark.createDataFrame(table(self.program, rows))
        outcome = step(batch, 0, self.job, self.known)
        self.known = outcome.known
        return outcome

    def restart(self) -> None:
        """Forget what the driver knows, as a new process does."""
        self.job = replace(self.job)
        self.known = recalled(self.job)


def part(value: Any) -> ColumnValue:
    """Return one part as the edge has it: totals are decimals in the lake."""
    return int(value) if isinstance(value, Decimal) else value


def batches(rows: list[Row], seed: int, count: int) -> list[list[Row]]:
    """Return the rows in so many batches: shuffled, and a third of them twice."""
    draw = random.Random(seed)
    sent = rows + draw.sample(rows, len(rows) // 3)
    draw.shuffle(sent)
    size = -(-len(sent) // count)
    return [sent[start : start + size] for start in range(0, len(sent), size)]
