"""A recorded file: which devices are in it, and the arguments with which an agent reads it.

Each agent reads the whole file and keeps the lines of its own device, so the file is looked
through once, beforehand, only to learn the devices' names.
"""

import csv
import gzip
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from lasp_edge.errors import NotFound, UsageError
from lasp_edge.tool.csv_header import csv_records

_NAMES_SHOWN = 5


def devices_in(path: Path, field: str, most: int) -> list[str]:
    """Return the devices in a file, sorted.

    Args:
        path: JSON lines, or CSV with a head line where the name says so; `.gz` is understood.
        field: the field of the device's name.
        most: more devices are refused.

    Raises:
        NotFound: there is no such file.
        UsageError: it names no device, or too many.
    """
    if not path.is_file():
        raise NotFound(f"no file {path}")
    try:
        with _opened(path) as file:
            found = sorted({name_in(line, field) for line in _lines(file, path)} - {""})
    except (OSError, EOFError, csv.Error) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    if not found:
        raise UsageError(f"no line of {path} has a device in the field {field!r}")
    if len(found) > most:
        raise UsageError(
            f"{path} has {len(found)} devices ({', '.join(found[:_NAMES_SHOWN])}, ...), and one "
            f"agent a device is started, at most {most}; to allow more: --max-agents {len(found)}"
        )
    return found


def is_csv(path: Path) -> bool:
    """Return whether a file is a table rather than JSON lines."""
    return path.name.removesuffix(".gz").endswith(".csv")


def _opened(path: Path) -> IO[str]:
    if path.name.endswith(".gz"):
        binary = gzip.open(path, "rb")  # noqa: SIM115 - the wrapper closes it
        return io.TextIOWrapper(binary, encoding="utf-8", errors="replace", newline="")
    return path.open(encoding="utf-8", errors="replace", newline="")


def _lines(file: IO[str], path: Path) -> Iterator[Any]:
    """Yield each line's fields; lines that hold nothing readable are the agents' to count."""
    if is_csv(path):
        yield from csv_records(file)
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
