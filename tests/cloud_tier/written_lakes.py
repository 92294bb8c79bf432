"""Lakes whose results a test writes by hand, as the job's commits leave them."""

from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.tables import LakeTables
from lasp_edge import Op
from tests.cloud_tier.support_devices import rooms

PROGRAM = rooms()


def _finely_sliding(plan):
    """Return a program whose windows may start at each tenth microsecond."""
    windows = {name: replace(window, slide_us=10) for name, window in plan.windows.items()}
    return replace(plan, windows=windows)


DEFINED = _finely_sliding(PROGRAM)


def write(path, rows):
    schema = pa.schema(DeltaTable(path).schema().to_arrow())
    write_deltalake(path, pa.Table.from_pylist(rows, schema=schema), mode="append")


def window(name, start_us, revision, *, key="", stream=None, size_us=60_000_000, **columns):
    made = {
        "window": name,
        "key": key,
        "start_us": start_us,
        "end_us": start_us + size_us,
        "devices_in": 1,
        "devices_expected": 2,
        "excluded": "",
        "status": "tentative",
        "revision": revision,
        "frontier": None,
        "stream": PROGRAM.windows[name].stream if stream is None else stream,
    }
    parts = {name: Decimal(n) if name in SUMS else n for name, n in columns.items()}
    return made | parts


SUMS = {name for name, column in PROGRAM.columns.items() if column.op is Op.SUM}


def written(root):
    """Return the tables of a lake with a few windows."""
    made = LakeTables(root)
    prepare(DEFINED, made)
    write(
        made.windows,
        [
            window("by_room", 20, 0, key="b", count=1, total_q=2000),
            window("by_room", 10, 1, key="b", count=2, total_q=4400),
            window("by_room", 10, 0, key="b", count=1, total_q=2000),
            window("by_room", 30, 0, key="a", count=10**20, total_q=3 * 10**21),
            window("by_room", 40, 0, key="a", stream=5, count=1, total_q=1),
            window("odd", 0, 0, size_us=50_000_000, min_q=-5, max_q=7, n_count=3),
        ],
    )
    return made
