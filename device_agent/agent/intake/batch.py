"""Readings by column: the one way into the agent. A single reading is a batch of one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Batch:
    """Readings in arrival order; the columns are equally long.

    Attributes:
        source: the source's stable name; its cursor and watermark are kept under it.
        names: event names.
        times_us: own times, microseconds since the epoch; None is stamped on acceptance.
        values: as read; None where one is missing; a `Retraction` where one is taken back.
        tags: labels of each reading.
        cursor: where the source resumes once this batch is durable.
        cursor_unless_accepted: the same, as long as no reading of the source was accepted; None:
            `cursor`.
        refused: reason -> number of lines that gave no reading.
        done: the source is finished.
        places: what each reading came on (a topic), where its tags do not tell that: two sensors
            may agree, and a repeat comes on the same; empty: nothing tells readings apart.
        arrived_us: when it arrived, on the driver's clock; None: when it is read.
        dated_us: when it came, where it had to wait for the clock; readings without a time of their
            own are placed there.
    """

    source: str
    names: list[str]
    times_us: list[int | None]
    values: list[Any]
    tags: list[Mapping[str, str]]
    cursor: str | None = None
    refused: dict[str, int] = field(default_factory=dict)
    done: bool = False
    dated_us: int | None = None
    arrived_us: int | None = None
    places: list[str] = field(default_factory=list)
    cursor_unless_accepted: str | None = None

    def __len__(self) -> int:
        return len(self.names)

    def checked(self) -> int:
        """Return how many readings there are, after a check that the columns are equally long.

        Raises:
            ValueError: they are not.
        """
        count = len(self.names)
        if not count == len(self.times_us) == len(self.values) == len(self.tags):
            raise ValueError("names, times, values and tags of one length are needed")
        if self.places and len(self.places) != count:
            raise ValueError(f"{count} places are needed, one a reading, not {len(self.places)}")
        return count

    def split(self) -> list["Batch"]:
        """Return a batch for each reading; an empty list where the columns differ in length."""
        columns = (self.names, self.times_us, self.values, self.tags)
        if len({len(column) for column in columns}) > 1:
            return []
        dated_us = self.dated_us
        return [
            Batch(
                *(self.source, [name], [time_us], [value], [tags], self.cursor, {}, self.done),
                dated_us=None if dated_us is None else dated_us + at,
                places=self.places[at : at + 1],
            )
            for at, (name, time_us, value, tags) in enumerate(zip(*columns, strict=True))
        ]

    def with_own_times(self) -> "Batch":
        """Return it with only those readings that carry their own time."""
        kept = [at for at, time_us in enumerate(self.times_us) if time_us is not None]
        columns: list[Sequence[Any]] = [self.names, self.times_us, self.values, self.tags]
        names, times_us, values, tags = ([column[at] for at in kept] for column in columns)
        places = [self.places[at] for at in kept] if self.places else []
        rest = (self.cursor, self.refused, self.done, self.dated_us)
        return Batch(self.source, names, times_us, values, tags, *rest, places=places)

    @property
    def has_own_times(self) -> bool:
        """Whether every reading has its own time, and there is at least one."""
        return set(map(type, self.times_us)) == {int}

    @property
    def is_stamped(self) -> bool:
        """Whether no reading has its own time, and there is at least one."""
        times_us = self.times_us
        return bool(times_us) and times_us[0] is None and times_us.count(None) == len(times_us)
