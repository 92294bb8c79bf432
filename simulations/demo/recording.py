"""A recorded file: who is in it, and how an agent is told to read it.

Each agent reads the whole file and keeps the lines of its own device, so the file is looked
through once, beforehand, only to learn the devices' names.
"""

import csv
import gzip
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from lasp_edge.errors import NotFound, UsageError

_NAMES_SHOWN = 5


@dataclass(frozen=True)
class Recording:
    """A file of recorded readings and what its fields mean.

    Attributes:
        path: JSON lines, or CSV with a head line where the name says so; `.gz` is understood.
        time: the field of a reading's own time.
        device: the field of the device's name.
        events: `NAME=FIELD` for each event.
        tags: `NAME=FIELD` for each tag.
        time_unit: s, ms, us or iso; by default told apart by size.
        speed: how many times faster than recorded, or "max".
        time_zone: of times that name none; None: such times are refused.
        retract: the field that says that an equal earlier line is taken back; None without one.
    """

    path: Path
    time: str
    device: str
    events: Sequence[str]
    tags: Sequence[str] = field(default=())
    time_unit: str | None = None
    speed: str = "max"
    time_zone: str | None = None
    retract: str | None = None

    @property
    def is_csv(self) -> bool:
        """Whether it is a table rather than JSON lines."""
        return self.path.name.removesuffix(".gz").endswith(".csv")

    def words(self) -> list[str]:
        """Return the arguments with which an agent reads its part."""
        kind = "csv" if self.is_csv else "jsonl"
        words = ["--source", f"{kind}:{self.path.resolve()}", "--speed", self.speed]
        words += ["--time", self.time, "--device-field", self.device]
        words += [word for event in self.events for word in ("--event", event)]
        words += [word for tag in self.tags for word in ("--tag", tag)]
        words += ["--time-unit", self.time_unit] if self.time_unit else []
        words += ["--retract", self.retract] if self.retract else []
        return words + (["--time-zone", self.time_zone] if self.time_zone else [])

    def devices(self, most: int) -> dict[str, int]:
        """Return how many lines each device has, sorted by its name.

        Args:
            most: more devices are refused.

        Raises:
            NotFound: there is no such file.
            UsageError: it names no device, or too many.
        """
        if not self.path.is_file():
            raise NotFound(f"no file {self.path}")
        try:
            counts = Counter(name for name in self._names() if name)
        except (OSError, EOFError, csv.Error) as error:
            raise UsageError(f"{self.path} cannot be read: {error}") from None
        if not counts:
            raise UsageError(f"no line of {self.path} has a device in the field {self.device!r}")
        if len(counts) > most:
            shown = ", ".join(sorted(counts)[:_NAMES_SHOWN])
            raise UsageError(
                f"{self.path} has {len(counts)} devices ({shown}, ...), and one agent a device is "
                f"started, at most {most}; to allow more: --max-agents {len(counts)}"
            )
        return dict(sorted(counts.items()))

    def _names(self) -> Iterator[str]:
        with self._open() as file:
            for line in _parsed(file, is_csv=self.is_csv):
                yield name_in(line, self.device)

    def _open(self) -> IO[str]:
        if self.path.name.endswith(".gz"):
            binary = gzip.open(self.path, "rb")  # noqa: SIM115 - the wrapper closes it
            return io.TextIOWrapper(binary, encoding="utf-8", errors="replace", newline="")
        return self.path.open(encoding="utf-8", errors="replace", newline="")


def _parsed(file: Iterable[str], *, is_csv: bool) -> Iterator[Any]:
    """Yield what each line holds; lines that hold nothing readable are the agents' to count."""
    if is_csv:
        yield from csv.DictReader(file)
        return
    for line in file:
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):
            continue


def name_in(line: Any, path: str) -> str:
    """Return the device's name that a line holds, or empty text.

    >>> name_in({"meta": {"id": "0e:9c"}}, "meta.id"), name_in({"id": 7}, "id"), name_in([], "id")
    ('0e:9c', '7', '')
    """
    value = line.get(path) if isinstance(line, Mapping) else None
    if value is None:
        value = line
        for step in path.split("."):
            value = value.get(step) if isinstance(value, Mapping) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else ""
