"""The marks of scans with local events in a lake: what of them may go.

A mark says of a cell which events in order there are, and which of them all devices have answered.
It is needed until nothing before the next event in order of its key is taken any more: the answers
to that one name it. A device answers once. So what is made of answers can be made again without a
device only where the answers of the others do not follow from what it did.
"""

from deltalake import DeltaTable

from cloud_tier.lake.definitions import program_of, retire_command
from cloud_tier.lake.matching import Wanted
from cloud_tier.lake.query import selected
from cloud_tier.lake.sqltext import any_of, one_of, standard_literal
from cloud_tier.lake.tables import MARK, MEMBER, LakeTables
from lasp_edge.errors import UsageError
from lasp_edge.evaluation.parted import cell_in_store
from lasp_edge.protocol.lake_columns import RESULT_ROW


def old_marks(lattice: DeltaTable, cut_us: int) -> str:
    """Return which marks are needed no more once nothing before a time is taken, as SQL."""
    old = f"kind = '{MARK}' AND pane_us < {cut_us}"
    query = (
        f"SELECT stream, pane_us FROM (SELECT stream, pane_us, low_us, row_number() OVER "  # noqa: S608 - ours
        f"(PARTITION BY stream, pane_us ORDER BY seq DESC) AS newest FROM source WHERE {old}) "
        f"WHERE newest = 1 AND low_us > {cut_us}"
    )
    kept = [
        f"(stream = {row['stream']} AND pane_us = {row['pane_us']})"
        for row in selected(lattice, query).to_pylist()
    ]
    return f"{old} AND NOT ({any_of(kept)})" if kept else old


def check_made_again(tables: LakeTables, wanted: Wanted, first_us: int) -> None:
    """Check that rows of scans with local events can be made again without a device.

    Args:
        tables: of the lake.
        wanted: what of the device is to be deleted.
        first_us: where its first cell begins.

    Raises:
        UsageError: they cannot, or the device is still waited for.
    """
    lattice = tables.table(tables.lattice)
    columns = f"done, {RESULT_ROW} AS packed"
    query = f"SELECT {columns} FROM source WHERE kind = '{MARK}' AND pane_us >= {first_us}"  # noqa: S608
    marks = selected(lattice, query).to_pylist()
    if not marks:
        return
    until_us = wanted.before_us
    ordered = any(
        device == wanted.device and (until_us is None or time_us < until_us)
        for mark in marks
        for time_us, device, *_ in cell_in_store(mark["packed"]).records
    )
    retire = retire_command(wanted.device, program_of(tables))
    if ordered or not all(mark["done"] for mark in marks):
        why = "its events are in order" if ordered else "a share depends on it"
        raise UsageError(
            f"--device {wanted.device}: a scan with local events cannot be made again without it "
            f"({why}, and other devices have answered it); `{retire}` "
            "keeps it out, and `lasp-edge lake retain` deletes what is old"
        )
    if not _is_retired(tables, wanted.device):
        raise UsageError(
            f"--device {wanted.device}: a scan with local events would wait for its answers; type "
            f"`{retire}`, let the job merge that, and type this again"
        )


def _is_retired(tables: LakeTables, device: str) -> bool:
    where = f"{one_of('kind', [MEMBER])} AND device = {standard_literal(device)}"
    query = f"SELECT retired FROM source WHERE {where} ORDER BY control DESC LIMIT 1"  # noqa: S608
    rows = selected(tables.table(tables.lattice), query).to_pylist()
    return bool(rows and rows[0]["retired"])
