"""What the commands print about the lake and the devices' stores: CSV rows and JSON lines."""

import csv
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lasp_edge.errors import Exit
from simulations.demo.processes import Child, Children
from simulations.demo.trouble import Trouble
from simulations.oracle import Reading

COMMAND = (sys.executable, "-m", "lasp_edge")
"""`lasp-edge` as this very Python has it installed, wherever its scripts are."""


class Commands:
    """Runs `lasp-edge` commands that print something and end.

    Args:
        children: starts them.
        command: the words before the sub-command.
    """

    def __init__(self, children: Children, command: Sequence[str]) -> None:
        self._children = children
        self._command = command

    async def windows(self, name: str, lake: Path) -> list[dict[str, str]]:
        """Return the current windows of a definition; none where nothing was read."""
        return await self._table("windows", name, "--lake", str(lake), "--csv")

    async def globals(self, lake: Path) -> list[dict[str, str]]:
        """Return the current fleet-wide values."""
        return await self._table("globals", "--lake", str(lake), "--csv")

    async def readings(self, data_dir: Path) -> list[Reading]:
        """Return a device's accepted readings in the order of acceptance."""
        lines = await self._lines("readings", "--data-dir", str(data_dir))
        return [_reading(json.loads(line)) for line in lines]

    async def status(self, data_dir: Path) -> dict[str, Any]:
        """Return what a device's agent counted."""
        lines = await self._lines("status", "--data-dir", str(data_dir), "--json")
        status: dict[str, Any] = json.loads(lines[0]) if lines else {}
        return status

    async def _table(self, *words: str) -> list[dict[str, str]]:
        return list(csv.DictReader(await self._lines(*words)))

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
    return Reading(*(plain[name] for name in names))


def trouble_with(child: Child) -> Trouble:
    """Return what to say of a process that ended as it should not."""
    words = [line for line in child.last_words() if line.strip()]
    code = child.exit_code
    if words and code in (Exit.USAGE, Exit.NOT_FOUND, Exit.ENVIRONMENT):
        return Trouble(re.sub(r"^lasp-edge \w+: ", "", words[-1]), Exit(code))
    how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
    return Trouble(f"{child.name} ended by itself, with {how}", log=words)
