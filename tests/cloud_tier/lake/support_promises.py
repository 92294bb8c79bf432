"""What a fleet has promised, as rows of a lake."""

import pyarrow as pa
from deltalake import write_deltalake

from tests.cloud_tier.support_devices import BEGIN_US, SECOND_US, row, table, tick
from tests.cloud_tier.written_lakes import PROGRAM

MINUTE_US = 60 * SECOND_US
NOW_US = BEGIN_US + 20 * MINUTE_US


def promise(device, low_us, heard_us=NOW_US, version=1, **values):
    return row("promise", device, 1, 7, version, low_us=low_us, received_us=heard_us, **values)


def merge(tables, rows):
    """Write rows as the job's first commit of a step does: those that are no panes."""
    landed = table(PROGRAM, rows)
    day = pa.array([0] * landed.num_rows, pa.int32()).cast(pa.date32())
    write_deltalake(tables.lattice, landed.append_column("pane_date", day), mode="append")


ROWS = [
    promise("fast", NOW_US, done=False),
    promise("slow", NOW_US - MINUTE_US, done=False),
    promise("dead", BEGIN_US, BEGIN_US, done=False),
    promise("done", BEGIN_US, BEGIN_US, done=True),
    promise("no clock", None, done=False),
    promise("sold", BEGIN_US, done=False),
    row("member", "sold", 1, 7, 1, control=1, retired=True),
    tick(1, NOW_US),
]
