"""Readings by column: the one way into the agent. A single reading is a batch of one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Batch:
    """Readings in arrival order; the columns are equally long.

    Attributes:
        source: the source's stable name; its cursor and watermark are kept under it.
        names: event names.
        times_us: own times, microseconds since the epoch; None is stamped on acceptance.
        values: as read; None where one is missing.
        tags: labels of each reading.
        cursor: where the source resumes once this batch is durable.
        refused: how many lines gave no reading at all, by reason.
        done: the source is finished.
    """

    source: str
    names: list[str]
    times_us: list[int | None]
    values: list[Any]
    tags: list[Mapping[str, str]]
    cursor: str | None = None
    refused: dict[str, int] = field(default_factory=dict)
    done: bool = False

    def __len__(self) -> int:
        return len(self.names)
