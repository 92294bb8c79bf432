"""Readings per CPU-second from recorded JSON lines to columns, beside `json.loads` alone.

Run: `python -m simulations.benchmarks.sources [FILE.jsonl[.gz]]`. Without a file it writes one with
the shape of a real sensor's message: seven values, a time, two ids.
"""

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from device_agent.agent.sources.choice import source_from_spec
from device_agent.agent.sources.source import SourceContext
from simulations.benchmarks.measure import cpu_s

ROWS = 50_000
DEVICES = 3
ROUNDS = 3


def write_rows(path: Path, seed: int = 1) -> None:
    """Write `ROWS` messages of `DEVICES` devices."""
    draw = random.Random(seed)
    with path.open("w", encoding="utf-8") as file:
        for row in range(ROWS):
            data = {name: draw.random() for name in ("co", "humidity", "lpg", "smoke")}
            data |= {"light": False, "motion": False, "temp": round(draw.gauss(22, 3), 1)}
            message = {
                "data": data,
                "device_id": f"0e:9c:00:{row % DEVICES:02}",
                "ts": 1_594_598_424 + row * 1.7231,
                "device": f"device-{row % DEVICES}",
            }
            file.write(json.dumps(message, separators=(",", ":")) + "\n")


def replay(path: Path, **options: object) -> int:
    """Read the whole file and return the number of readings."""
    mapped = {"time": "ts", "event": {"temperature": "data.temp"}} | options
    context = SourceContext(["temperature"], "device-0", random.Random(1), options=mapped)
    source = source_from_spec(f"jsonl:{path}", context)
    source.open(None)
    readings = 0
    while (batch := source.poll(0)) is not None:
        readings += len(batch)
    source.close()
    return readings


def loads_alone(path: Path) -> int:
    """Parse each line of a plain file and do nothing with it."""
    with path.open("rb") as file:
        return sum(1 for line in file if json.loads(line))


def main() -> None:
    """Print one line for each way to read the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path)
    file: Path | None = parser.parse_args().file
    with tempfile.TemporaryDirectory() as directory:
        path = file or Path(directory, "rows.jsonl")
        if file is None:
            write_rows(path)
        works: dict[str, Callable[[], int]] = {
            "time and one event": lambda: replay(path),
            "and a tag": lambda: replay(path, tag={"room": "device_id"}),
            "stamped by the agent": lambda: replay(path, time=None),
        }
        if path.suffix != ".gz":
            works = {"json.loads alone, line by line": lambda: loads_alone(path)} | works
        for name, work in works.items():
            sys.stdout.write(_line(name, work))


def _line(name: str, work: Callable[[], int]) -> str:
    count, seconds = work(), cpu_s(lambda _: work(), rounds=ROUNDS)
    return f"{name:32} {count:8,} in {seconds:6.3f} s: {count / seconds:10,.0f} a CPU-s\n"


if __name__ == "__main__":
    main()
