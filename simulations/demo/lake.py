"""What is left at the end: the rows of the lake's tables, and what the devices' stores hold."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lasp_edge.errors import Exit
from lasp_edge.language.declarations import DynamicFold, StreamResult, Window
from simulations.demo.processes import Child, Children
from simulations.demo.trouble import Trouble
from simulations.oracle import Reading

COMMAND = (sys.executable, "-m", "lasp_edge")
"""`lasp-edge` as this very Python has it installed, wherever its scripts are."""

Row = Mapping[str, Any]
"""A row of a Delta table, by column."""


def current_windows(lake: Path, window: Window) -> list[Row]:
    """Return the newest revision of each (key, start) of a window, as the table has it."""
    return _newest(lake / "windows", window.stream, "key, start_us")


def current_globals(lake: Path, fold: DynamicFold) -> list[Row]:
    """Return the newest revision of each key of a fleet-wide value, as the table has it."""
    return _newest(lake / "globals", fold.stream, "key")


def current_rows(lake: Path, result: StreamResult) -> list[Row]:
    """Return the newest revision of each row of a result, as the table has it."""
    return _newest(lake / "results", result.stream, "time_us, device, place")


def all_windows(lake: Path, window: Window) -> list[Row]:
    """Return all revisions of a window, as the table has them."""
    return _found(lake / "windows", f"SELECT * FROM t WHERE stream = {window.stream}")  # noqa: S608


def _newest(table: Path, stream: int, identity: str) -> list[Row]:
    """Return a stream's rows of the greatest revision; several of one identity are all there."""
    newest = f"max(revision) OVER (PARTITION BY {identity}) AS newest"
    query = (
        f"SELECT * FROM (SELECT *, {newest} FROM t WHERE stream = {stream}) "  # noqa: S608 - ours
        f"WHERE revision = newest ORDER BY {identity}"
    )
    return _found(table, query)


def _found(table: Path, query: str) -> list[Row]:
    """Return what a query of the table `t` finds; nothing where there is no such table yet."""
    import pyarrow as pa  # noqa: PLC0415 - the demo says what is missing before it reads a table
    from deltalake import DeltaTable, QueryBuilder  # noqa: PLC0415

    if not DeltaTable.is_deltatable(str(table)):
        return []
    found = QueryBuilder().register("t", DeltaTable(str(table))).execute(query)
    rows: list[Row] = pa.table(found).to_pylist()
    return rows


class Commands:
    """Runs `lasp-edge` commands that print something and end."""

    def __init__(self, children: Children, command: Sequence[str]) -> None:
        self._children = children
        self._command = command

    async def readings(self, data_dir: Path) -> list[Reading]:
        """Return a device's accepted readings in the order of acceptance."""
        lines = await self._lines("readings", "--data-dir", str(data_dir))
        return [_reading(json.loads(line)) for line in lines]

    async def status(self, spec: str, data_dir: Path) -> dict[str, Any]:
        """Return what a device's agent counted, and the last rows of its program's results."""
        lines = await self._lines("status", spec, "--data-dir", str(data_dir), "--json")
        status: dict[str, Any] = json.loads(lines[0]) if lines else {}
        return status

    async def set(self, spec: str, words: Sequence[str]) -> list[str]:
        """Change a parameter of the running fleet, and return what is said of it."""
        return await self._lines("set", spec, *words)

    async def windows(self, name: str, place: Path) -> list[str]:
        """Return a gateway's table of a window, with its head; nothing before there is one."""
        return await self._lines("windows", name, "--gateway", str(place))

    async def _lines(self, *words: str) -> list[str]:
        lines: list[str] = []
        child = await self._children.start(words[0], [*self._command, *words], lines.append)
        code = await child.wait()
        self._children.forget(child)
        if code == Exit.NOT_FOUND:
            return []
        if code != Exit.FINE:
            raise trouble_with(child)
        return lines


def _reading(plain: dict[str, Any]) -> Reading:
    names = ("device", "event", "value", "time_us", "tags")
    reading = Reading(*(plain[name] for name in names))
    return reading._replace(retracted=plain.get("retracted", False))


def trouble_with(child: Child) -> Trouble:
    """Return what to say of a process that ended as it should not."""
    words = [line for line in child.last_words() if line.strip()]
    code = child.exit_code
    if words and code in (Exit.USAGE, Exit.NOT_FOUND, Exit.ENVIRONMENT):
        return Trouble(re.sub(r"^lasp-edge \w+: ", "", words[-1]), Exit(code))
    how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
    return Trouble(f"{child.name} ended by itself, with {how}", log=words)
