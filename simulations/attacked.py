"""A lake beside a running fleet while an operator restores, deletes and kills: what is left counts.

    python -m simulations.attacked [--minutes N] [--seed N]

A broker, agents, a lander and a job run on this machine. At random moments the job is killed, a
table is restored to an earlier version, files are deleted by a VACUUM of 0 hours, what a device had
sent before a time is forgotten, and readings of a month ago are no longer retained. What ends is
started again, as systemd does. At the end all that landed is merged, and DuckDB recomputes each
window and the fleet's value from the rows of `landing` that are left. It prints a line for each
attack, and ends with 1 where one differs.
"""

import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from cloud_tier.lake.query import selected
from cloud_tier.lake.tables import LakeTables
from lasp_edge.errors import Exit
from simulations.commands import parser_of
from simulations.processes.broker import PrivateBroker
from simulations.processes.process import Process, now_s, stop

PROGRAM: Final = """
from crdts import BoundedLWWSet
from lasp_edge import Program, folds

program = Program("attacked")
load = program.event("memory", resolution="0.01")
program.window("load", source=load, fold=folds.mean(), size_s=20, slide_s=10)
recent = program.declare_dynamic(BoundedLWWSet(bound=5), "recent")
program.collect(load, into=recent)
program.fold_dynamic(program.fold(recent, folds.mean(), "own"), "used")
"""
SIZE_US, PANE_US = 20_000_000, 10_000_000
DEVICES: Final = ("pi-1", "pi-2", "pi-3")
RESTORED: Final = ("lattice", "windows", "globals")
VACUUMED: Final = ("landing", "lattice", "windows")
OLD_DEVICE: Final = "pi-0"
OLD_PANES: Final = 100
MONTH_US: Final = 30 * 86_400 * 1_000_000
PAUSE_S: Final = (5.0, 20.0)
"""Seconds between two attacks, at least and at most."""
FIRST_COMMITS: Final = 5
"""Commits of windows before the first attack."""
PATIENCE_S: Final = 600.0
_NEWEST: Final = """
    SELECT * FROM source WHERE kind = '{kind}' QUALIFY row_number() OVER (
        PARTITION BY device, {entry} ORDER BY incarnation DESC, nonce DESC, seq DESC) = 1"""
"""The newest row of each entry, as DuckDB writes it."""
Windows = dict[int, tuple[int, int, int]]
"""Start -> devices, readings and their total."""


class AttackedFleet:
    """Agents, a lander and a job, each started again when it ends.

    Args:
        folder: of their files.
        stack: ends them.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        (folder / "attacked.py").write_text(PROGRAM)
        self.tables = LakeTables(folder / "lake")
        broker = stack.enter_context(PrivateBroker(folder / "broker"))
        program, lake = "attacked:program", ["--lake", self.tables.root]
        own = ["--broker", broker.url, "--source", "host", "--every", "0.5", "--interval", "1"]
        self._words = {
            name: ["agent", program, "--device", name, "--data-dir", str(folder / name), *own]
            for name in DEVICES
        }
        self._words["lander"] = ["lander", program, "--broker", broker.url, *lake]
        job = ["--no-lander", *lake, "--trigger", "1", "--dead-after", "20"]
        self._words["job"] = ["cloud", program, *job]
        self._processes = {name: Process(folder, name, cwd=folder) for name in self._words}
        self._asked = Process(folder, "command", cwd=folder)
        stack.callback(stop, [*self._processes.values(), self._asked])

    def keep_up(self, names: Iterable[str] = (*DEVICES, "lander", "job")) -> None:
        """Start what does not run, and print why it ended."""
        for name in names:
            process = self._processes[name]
            if process.ended_by_itself:
                why = (process.last_lines() or ["without a word"])[-1]
                _print(f"{name} ended with {process.exit_code}: {why}")
                process.kill()
            if not process.runs:
                process.run(self._words[name])

    def kill(self, name: str) -> None:
        """End a process as a power cut does."""
        self._processes[name].kill()

    def run(self, words: Sequence[str]) -> int | None:
        """Run a command to its end; return its exit code."""
        self._asked.run(words)
        self._wait(lambda: not self._asked.runs, words[0])
        code = self._asked.exit_code
        if code != Exit.FINE:
            _print(f"{' '.join(words[:2])} ended with {code}: {self._asked.last_lines()[-1:]}")
        self._asked.kill()
        return code

    def merged(self) -> int:
        """Return how many commits with results there are."""
        path = self.tables.windows
        return DeltaTable(path).version() if DeltaTable.is_deltatable(path) else 0

    def begin(self) -> None:
        """Start all, the job after a month of readings has landed, and wait for results."""
        self.keep_up((*DEVICES, "lander"))
        self._wait(lambda: put_history(self.tables), "panes")
        self._wait(lambda: self.merged() >= FIRST_COMMITS, "results", self.keep_up)

    def settle(self) -> int | None:
        """End the fleet, and merge all that landed; return the exit code of the job."""
        stop([self._processes[name] for name in (*DEVICES, "lander", "job")])
        return self.run([*self._words["job"], "--until-idle", "3"])

    def _wait(
        self, condition: Callable[[], bool], what: str, each: Callable[[], None] = lambda: None
    ) -> None:
        ends_s = now_s() + PATIENCE_S
        while not condition():
            if now_s() > ends_s:
                raise TimeoutError(f"after {PATIENCE_S:.0f} s still no {what}")
            each()
            time.sleep(0.2)


def put_history(tables: LakeTables) -> bool:
    """Append panes of a device a month ago, if there are panes to copy; return whether it did."""
    if not DeltaTable.is_deltatable(tables.landing):
        return False
    landing = DeltaTable(tables.landing)
    found = selected(landing, "SELECT * FROM source WHERE kind = 'pane' LIMIT 1").to_pylist()
    rows = [
        row | {"device": OLD_DEVICE, "pane_us": row["pane_us"] - MONTH_US + n * PANE_US, "seq": n}
        for row in found
        for n in range(1, OLD_PANES + 1)
    ]
    schema = pa.schema(landing.schema().to_arrow())
    write_deltalake(landing, pa.Table.from_pylist(rows, schema), mode="append")
    return bool(rows)


def restore(fleet: AttackedFleet, draw: random.Random) -> str:
    """Put a table back to an earlier version."""
    name = draw.choice(RESTORED)
    table = DeltaTable(f"{fleet.tables.root}/{name}")
    version = draw.randrange(max(1, table.version() - 12), table.version())
    table.restore(version)
    return f"{name} restored from version {table.version()} to {version}"


def vacuum(fleet: AttackedFleet, draw: random.Random) -> str:
    """Delete the files of a table that no current version needs, as of now."""
    name = draw.choice(VACUUMED)
    table = DeltaTable(f"{fleet.tables.root}/{name}")
    gone = table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    return f"VACUUM of 0 hours took {len(gone)} files of {name}"


def forget(fleet: AttackedFleet, draw: random.Random) -> str:
    """Delete what a device had sent before a time; the job has to end for that."""
    device = draw.choice(DEVICES)
    before = datetime.now(UTC) - timedelta(seconds=draw.randrange(10, 60))  # noqa: TID251
    before -= timedelta(seconds=before.second % (PANE_US // 1_000_000))  # a pane goes as a whole
    fleet.kill("job")
    words = ["lake", "forget", "--lake", fleet.tables.root, "--device", device]
    fleet.run([*words, "--before", f"{before:%Y-%m-%dT%H:%M:%S}"])
    return f"{device} forgotten before {before:%H:%M:%S}"


def retain(fleet: AttackedFleet, _draw: random.Random) -> str:
    """Delete what is older than some days, while the job runs."""
    fleet.run(["lake", "retain", "--lake", fleet.tables.root, "--days", "8"])
    query = f"SELECT count(*) FROM source WHERE device = '{OLD_DEVICE}'"  # noqa: S608 - ours
    ((left,),) = _duckdb(fleet.tables.landing, query)
    return f"8 days retained: of a month ago {left} panes are left"


def kill_job(fleet: AttackedFleet, _draw: random.Random) -> str:
    """Kill the driver, wherever it is."""
    fleet.kill("job")
    return "the job killed"


def kill_lander(fleet: AttackedFleet, _draw: random.Random) -> str:
    """Kill the lander, wherever it is."""
    fleet.kill("lander")
    return "the lander killed"


ATTACKS: Final = (restore, restore, vacuum, vacuum, kill_job, kill_job, kill_lander, forget, retain)


def main() -> int:
    """Run the fleet under attacks; return 1 where a window differs."""
    parser = parser_of("simulations.attacked", __doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="of attacks (default: 5)")
    parser.add_argument("--seed", type=int, default=0, help="of what comes when")
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        fleet = AttackedFleet(Path(folder), stack)
        fleet.begin()
        ends_s = now_s() + 60 * arguments.minutes
        while now_s() < ends_s:
            pause_s = now_s() + draw.uniform(*PAUSE_S)
            while now_s() < pause_s:
                fleet.keep_up()
                time.sleep(0.2)
            attack = draw.choice(ATTACKS)
            try:
                _print(attack(fleet, draw))
            except (DeltaError, OSError) as error:  # Delta refuses: a commit came, a file is gone
                _print(f"{attack.__name__}: {str(error).splitlines()[0]}")
        code = fleet.settle()
        right, wrong = judged(fleet.tables)
    for line in wrong[:10]:
        _print(line)
    _print(f"{right} windows are right")
    return int(bool(wrong) or code != Exit.FINE or not right)


def judged(tables: LakeTables) -> tuple[int, list[str]]:
    """Return how many windows are right, and a line for each that is not, or for the value.

    Rows of windows that are not retained may be there again: somebody restored them.
    """
    found, truth = stored(tables), recomputed(tables)
    recent_us = max(truth, default=0) - MONTH_US // 2
    wrong = [
        f"the window at {at}: {found.get(at)} in the lake, {truth.get(at)} recomputed"
        for at in sorted(found.keys() | truth.keys())
        if found.get(at) != truth.get(at) and (at in truth or at > recent_us)
    ]
    right = len(truth) - len(wrong)
    value, true_value = stored_value(tables), recomputed_value(tables)
    if value != true_value:
        wrong.append(f"the value: {value} in the lake, {true_value} recomputed")
    return right, wrong


def stored(tables: LakeTables) -> Windows:
    """Return the newest rows of `windows`, without those that have no device."""
    newest: dict[int, Mapping[str, Any]] = {}
    for row in selected(tables.table(tables.windows), "SELECT * FROM source").to_pylist():
        known = newest.get(row["start_us"])
        if known is None or row["revision"] > known["revision"]:
            newest[row["start_us"]] = row
    return {
        at: (row["devices_in"], int(row["count"]), int(row["total_q"]))
        for at, row in newest.items()
        if row["devices_in"]
    }


def recomputed(tables: LakeTables) -> Windows:
    """Return the windows of all panes that are left in `landing`."""
    found = _duckdb(
        tables.landing,
        f"""
        SELECT start_us, count(DISTINCT device), sum(count), sum(total_q)
        FROM (SELECT *, unnest(range(pane_us - {SIZE_US - PANE_US}, pane_us + 1, {PANE_US}))
              AS start_us FROM ({_NEWEST.format(kind="pane", entry="pane_us, incarnation, nonce")}))
        GROUP BY start_us""",  # noqa: S608 - numbers
    )
    return {at: (devices, int(count), int(total)) for at, devices, count, total in found}


def stored_value(tables: LakeTables) -> tuple[int, ...]:
    """Return count and total of the value's newest row, and how many revisions lack or repeat."""
    query = """
        SELECT max_by(count, revision), max_by(total_q, revision),
               count(*) + max(revision) + 1 - 2 * count(DISTINCT revision) FROM source"""
    return tuple(int(each or 0) for each in _duckdb(tables.globals, query)[0])


def recomputed_value(tables: LakeTables) -> tuple[int, ...]:
    """Return count and total of the devices' newest entries in `landing`."""
    newest = _NEWEST.format(kind="variable", entry="shard")
    query = f"SELECT sum(count), sum(total_q), 0 FROM ({newest})"  # noqa: S608 - ours
    return tuple(int(each or 0) for each in _duckdb(tables.landing, query)[0])


def _duckdb(path: str, query: str) -> list[tuple[Any, ...]]:
    """Return the rows that a query of DuckDB gives of a table, which it calls `source`."""
    source = selected(DeltaTable(path), "SELECT * FROM source")
    found = duckdb.from_arrow(source).query("source", query)
    assert found is not None, "a SELECT gives rows"
    return found.fetchall()


def _print(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - a command


if __name__ == "__main__":
    sys.exit(main())
