"""What a lake holds, read twice: by the commands, and by `deltalake` with SQL of the tests' own."""

import contextlib
import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from lasp_edge.errors import Exit
from lasp_edge.tool.command_line import main
from tests.end_to_end import truth
from tests.end_to_end.truth import Sums, Truth

Row = dict[str, str]

ORDER = ("tentative", "final", "revised")

_CURRENT = """
    SELECT w.* FROM w JOIN (SELECT key, start_us, max(revision) AS newest
                            FROM w WHERE "window" = '{name}' GROUP BY key, start_us) AS n
    ON w.key = n.key AND w.start_us = n.start_us AND w.revision = n.newest
    WHERE w."window" = '{name}'
"""


def command(*words: str) -> list[Row]:
    """Return the rows that a `lasp-edge` command prints as CSV."""
    printed = io.StringIO(newline="")
    with contextlib.redirect_stdout(printed):
        assert main([*words, "--csv"]) == Exit.FINE
    printed.seek(0)
    return list(csv.DictReader(printed))


def windows(lake: Path, name: str, *, all_revisions: bool = False) -> list[Row]:
    """Return what `lasp-edge windows` prints."""
    return command("windows", name, "--lake", str(lake), *["--all-revisions"] * all_revisions)


def sql(lake: Path, table: str, query: str) -> list[dict]:
    """Return what the independent reader finds; `w` is the table."""
    delta = DeltaTable(str(lake / table))
    return pa.table(QueryBuilder().register("w", delta).execute(query)).to_pylist()


def count(lake: Path, table: str) -> int:
    """Return how many rows a table has; 0 before it is made."""
    if not DeltaTable.is_deltatable(str(lake / table)):
        return 0
    return sql(lake, table, "SELECT count(*) AS rows FROM w")[0]["rows"]


def landed_readings(lake: Path, stream: int) -> int:
    """Return how many readings have landed of a stream whose fold counts them."""
    newest = "row_number() OVER (PARTITION BY key, pane_us, device, incarnation, nonce "
    newest += "ORDER BY seq DESC) AS newest"
    rows = f"SELECT count, {newest} FROM w WHERE kind = 'pane' AND stream = {stream}"
    (row,) = sql(lake, "landing", f"SELECT sum(count) AS readings FROM ({rows}) WHERE newest = 1")
    return int(row["readings"] or 0)


def read_independently(lake: Path, name: str) -> Truth:
    """Return the current windows as `deltalake` sees them."""
    return _truth(sql(lake, "windows", _CURRENT.format(name=name)))


def held(lake: Path, name: str) -> Truth:
    """Return the current windows as the command prints them."""
    return _truth(windows(lake, name))


def _truth(rows: Iterable[dict]) -> Truth:
    found: Truth = {}
    for row in rows:
        at = (row["key"], int(row["start_us"]), int(row["end_us"]))
        assert at not in found, f"two current rows of {at}"
        extremes = [row.get(name) for name in ("min_q", "max_q")]
        integers = [row["count"], row["total_q"], *extremes, row["devices_in"]]
        found[at] = Sums(*(0 if each in {None, ""} else int(each) for each in integers))
    return found


def expected(given: Truth, name: str) -> Truth:
    """Return what is to be found of a window: a mean has no least and greatest."""
    if name != "temp_by_device":
        return given
    return {at: sums._replace(least=0, greatest=0) for at, sums in given.items()}


def difference(found: Truth, given: Truth) -> str:
    """Return in some lines how windows differ; empty if they do not."""
    at = [key for key in sorted(found.keys() | given.keys()) if found.get(key) != given.get(key)]
    lines = [f"{key}: {found.get(key)} for {given.get(key)}" for key in at[:10]]
    return "\n".join([f"{len(at)} of {len(given)} windows differ", *lines]) if at else ""


def history(lake: Path, name: str) -> dict[tuple[str, str], list[Row]]:
    """Return all revisions of each window in order."""
    found = defaultdict(list)
    for row in windows(lake, name, all_revisions=True):
        found[row["key"], row["start_us"]].append(row)
    return found


def broken_histories(lake: Path, name: str) -> list[tuple]:
    """Return the windows whose revisions break a rule.

    Revisions count from 0 without a gap, a window becomes final at most once, and its status never
    goes back.
    """
    broken = []
    for at, rows in history(lake, name).items():
        statuses = [row["status"] for row in rows]
        ranks = [ORDER.index(status) for status in statuses]
        counted = [int(row["revision"]) for row in rows] == list(range(len(rows)))
        if not counted or ranks != sorted(ranks) or statuses.count("final") > 1:
            broken.append((at, statuses, [row["revision"] for row in rows]))
    return broken


def wrong(lake: Path, lines: Sequence[str]) -> str:
    """Return what is wrong with any window of a lake that holds these lines; empty if nothing."""
    found = []
    for name in truth.WINDOWS:
        given = expected(truth.windows(lines, name), name)
        found += [difference(held(lake, name), given)]
        found += [difference(read_independently(lake, name), given)]
        found += [f"{name}: {each}" for each in broken_histories(lake, name)[:5]]
    return "\n".join(filter(None, found))


def fleet_value(lake: Path, name: str) -> Row:
    """Return the fleet-wide value, as the command prints it."""
    (row,) = command("globals", name, "--lake", str(lake))
    return row
