"""The readings that a device still has: the identities of its events, of all tags.

Readings with their own time are kept to tell repeats (`device_agent.agent.intake.identities`). Of
events whose windows have parameters, those that were stamped on arrival are kept, too: in blocks
apart, so that they are never taken for repeats of others.
"""

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from operator import itemgetter
from types import MappingProxyType
from typing import NamedTuple, Self

from device_agent.agent.changes import BLOCK_US, BlockId
from device_agent.agent.intake.batch import ascends
from device_agent.agent.intake.identities import Block, Identities, Identity
from device_agent.agent.intake.pending import ControlledReading
from device_agent.agent.parts import StoreReader

STAMPED = "stamped "
"""What the tags of blocks begin with that hold stamped readings; tags are JSON, or empty."""


class KeptColumn(NamedTuple):
    """Readings of one event and one set of tags, by time.

    Attributes:
        tags: as canonical text.
        values: in steps.
    """

    tags: str
    times_us: list[int]
    values: list[int]

    @classmethod
    def of(cls, tags: str, readings: Iterable[Identity]) -> Self:
        """Return readings, which come in any order, as a column."""
        ordered = sorted(readings)
        return cls(tags, list(map(itemgetter(0), ordered)), list(map(itemgetter(1), ordered)))


def columns_of(readings: Iterable[ControlledReading], event: str) -> Iterator[KeptColumn]:
    """Yield those of some readings that are of an event, by tags."""
    by_tags: dict[str, list[Identity]] = {}
    for reading in readings:
        if reading.event == event:
            by_tags.setdefault(reading.tags, []).append((reading.time_us, reading.quantised))
    for tags, several in sorted(by_tags.items()):
        yield KeptColumn.of(tags, several)


class ReadingHistory:
    """Reads and adds what the identities tell of readings.

    Args:
        identities: those in memory, which may be newer than the store's.
    """

    def __init__(self, identities: Identities) -> None:
        self._identities = identities

    def keep(self, readings: Iterable[ControlledReading], store: StoreReader) -> None:
        """Keep those readings that were stamped on arrival; all others are kept already."""
        for reading in readings:
            if reading.stamped:
                number = reading.time_us // BLOCK_US
                name = BlockId(reading.event, STAMPED + reading.tags, number)
                block = self._identities.block(name, store)
                if block.add(reading.time_us, reading.quantised):
                    self._identities.touched(block)

    def columns(
        self, event: str, first_us: int, end_us: int, store: StoreReader
    ) -> Iterator[KeptColumn]:
        """Yield the readings of an event in a stretch of time, by tags."""
        first, last = first_us // BLOCK_US, (end_us - 1) // BLOCK_US
        blocks = {
            name: Block(name, packed) for name, packed in store.identity_blocks(event, first, last)
        }
        blocks |= self._identities.between(event, first, last)
        by_tags: dict[str, KeptColumn] = {}
        for name in sorted(blocks):
            tags, block = name.tags.removeprefix(STAMPED), blocks[name]
            column = by_tags.setdefault(tags, KeptColumn(tags, [], []))
            column.times_us.extend(block.times_us)
            column.values.extend(block.values)
        for tags, column in sorted(by_tags.items()):
            times_us, values = column.times_us, column.values
            if not ascends(times_us):
                _, times_us, values = KeptColumn.of(tags, zip(times_us, values, strict=True))
            inside = slice(bisect_left(times_us, first_us), bisect_left(times_us, end_us))
            yield KeptColumn(tags, times_us[inside], values[inside])


@lru_cache(maxsize=1_000)
def tags_of(text: str) -> Mapping[str, str]:
    """Return tags that were kept as canonical text."""
    return MappingProxyType(json.loads(text) if text else {})
