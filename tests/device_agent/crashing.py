"""A process that reads and dies: run as a module, it prints what it knows to be durable.

`python -m tests.device_agent.crashing DIRECTORY STATEMENTS SEED` reads batches until so many SQL
statements were run, then ends by `os._exit` in front of the next. It prints, line by line, how many
readings each finished batch has made durable in all.
"""

import os
import sqlite3
import sys
from pathlib import Path
from random import Random
from typing import Any

from lasp_edge.protocol.frames import PaneFrame
from lasp_edge.units import SECOND_US
from tests.device_agent.agents import LAKE, NOW_US, Device, greenhouse

LONGEST_S = 20
"""Seconds between two batches, at most."""


class Mortal:
    """A connection that ends the process in front of one of its statements."""

    def __init__(self, db: sqlite3.Connection, statements: int) -> None:
        self._db = db
        self._left = statements

    def _one(self) -> None:
        self._left -= 1
        if self._left < 0:
            os._exit(9)

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        self._one()
        return self._db.execute(*arguments)

    def executemany(self, *arguments: Any) -> sqlite3.Cursor:
        self._one()
        return self._db.executemany(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)


def work(directory: Path, statements: int | None, seed: int) -> None:
    """Read random batches, with repeats, and let every second frame land, until the end."""
    device = Device(directory, greenhouse(keyed=True))
    if statements is not None:
        device.store.database = Mortal(device.store.database, statements)
    random = Random(seed)
    cursor = int(device.core.intake.sources.cursor("test") or 0)
    device.now_us = NOW_US + cursor * LONGEST_S * SECOND_US  # a clock that is not set back
    while True:
        size = random.randint(1, 40)
        times_us = [device.now_us - random.randint(0, 300) * SECOND_US for _ in range(size)]
        values = [round(random.uniform(15, 30), 1) for _ in range(size)]
        tags = [{"room": random.choice("ab")} for _ in range(size)]
        cursor += 1
        device.take(values, times_us, tags, cursor=str(cursor))
        sys.stdout.write(f"{device.counted['accepted']} {cursor}\n")
        sys.stdout.flush()
        for frame in device.frames(PaneFrame, device.tick(random.choice((0.5, 5, LONGEST_S)))):
            if random.random() < 0.5:
                device.acknowledge(frame, lake=LAKE)


if __name__ == "__main__":
    directory, statements, seed = sys.argv[1:]
    work(Path(directory), int(statements) if int(statements) >= 0 else None, int(seed))
