"""Rows of an agent's store, and their names: what `device_agent.agent.changes` consists of."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from lasp_edge.folds.columns import Partial
from lasp_edge.protocol.acks import NotTaken, Seqs
from lasp_edge.protocol.sinks import MAX_SINKS

VariableId = tuple[str, str]
"""A variable's name, and a key of it; "" where it has no keys."""
StoredId = tuple[int, str]
"""The same in the store, where a variable's meaning has a number: what was stored under another
meaning of the variable has another name."""


BLOCK_US = 120_000_000
"""Microseconds of a block of identities: at a reading in some seconds, some tens of identities,
which are worth the head of a stored row, and few enough to be written again with each commit."""


class BlockId(NamedTuple):
    """A block of identities: an event, tags as text, and its start divided by `BLOCK_US`."""

    event: str
    tags: str
    block: int


block_id: Callable[[Iterable[Any]], BlockId] = partial(tuple.__new__, BlockId)
"""Makes the name of a block without the Python function of a NamedTuple."""


class PaneId(NamedTuple):
    """The name of a pane entry, of one replica of this device; names are ordered by time first."""

    pane_us: int
    stream: int
    key: str
    incarnation: int
    nonce: int


class PaneRow(NamedTuple):
    """A pane entry as stored.

    Attributes:
        seq: its version within its replica; no other entry of the replica ever has it.
        end_us: where its pane ends.
        partial: what it holds.
        dirty: a bit for each sink that has not acknowledged this seq.
        refused: a bit for each of those that did not take it, and the last one's reason above them.
    """

    seq: int
    end_us: int
    partial: Partial
    dirty: int
    refused: int = 0


EVERY_SINK = (1 << MAX_SINKS) - 1
"""The bits of all sinks."""


def waits_for(dirty: int, refused: int) -> int:
    """Return the bits of the sinks that have neither taken nor refused an entry."""
    return dirty & ~refused & EVERY_SINK


def refusal(refused: int, bit: int, reason: int) -> int:
    """Return `PaneRow.refused` after one more sink did not take the entry."""
    return (refused & EVERY_SINK) | bit | reason << MAX_SINKS


def reason_of(refused: int) -> int:
    """Return why the last of the sinks that did not take an entry did not take it."""
    return refused >> MAX_SINKS


def is_of_retired(refused: int) -> bool:
    """Return whether the last sink that did not take an entry knew its device as retired."""
    return reason_of(refused) == NotTaken.RETIRED


def is_ahead_of_sink(refused: int) -> bool:
    """Return whether the last of the sinks that did not take an entry takes it later."""
    return reason_of(refused) == NotTaken.FAR_FUTURE


class EntryKey(NamedTuple):
    """A version of a pane entry, by its replica and seq; ordered as it was written."""

    incarnation: int
    nonce: int
    seq: int


BEFORE_ALL = EntryKey(-1, 0, 0)
"""Before every entry."""


class Undelivered(NamedTuple):
    """Dirty entries of one stream that wait alike.

    Attributes:
        stream: whose panes they are.
        dirty, refused: see `PaneRow`.
        entries: how many.
        oldest_us: start of the oldest pane.
    """

    stream: int
    dirty: int
    refused: int
    entries: int
    oldest_us: int


class StoreWide(NamedTuple):
    """A change of many stored pane entries at once, by their seqs.

    Attributes:
        bit: of the sink that has spoken.
        reason: 0 where it has taken them, else why not.
        seqs: which entries.
    """

    bit: int
    reason: int
    seqs: Seqs


class AbandonedPanes(NamedTuple):
    """Panes that mean nothing any more: of a stream, from one start to another, excluded."""

    stream: int
    first_us: int
    end_us: int

    def has(self, pane: PaneId) -> bool:
        """Return whether an entry is of one of them."""
        return pane.stream == self.stream and self.first_us <= pane.pane_us < self.end_us


@dataclass(frozen=True, slots=True)
class Retraction:
    """In place of a reading's value: an equal reading with that value is taken back."""

    value: Any


class ReadingRow(NamedTuple):
    """An accepted reading as it was read; `tags` as canonical text."""

    accepted_us: int
    event: str
    time_us: int
    value: Any
    quantised: int
    tags: str
    source: str


class SourceRow(NamedTuple):
    """How far a source is.

    Attributes:
        cursor: where it resumes.
        high_us: greatest own time accepted from it; None before the first.
        stamped: its readings get their time on acceptance.
        done: it is finished.
    """

    cursor: str | None = None
    high_us: int | None = None
    stamped: bool = False
    done: bool = False


source_row: Callable[[Iterable[Any]], SourceRow] = partial(tuple.__new__, SourceRow)
"""The same for how far a source is, which each reading that comes alone changes."""


class WaitingRow(NamedTuple):
    """A batch of readings that waits for the clock.

    Attributes:
        n: its number; they came in the order of the numbers.
        boot, monotonic_us: the boot of the machine, and its monotonic clock, when it came.
        readings: how many.
        batch: the readings, packed.
    """

    n: int
    boot: str
    monotonic_us: int
    readings: int
    batch: bytes


class WaitingTotals(NamedTuple):
    """All batches that wait for the clock: the last one's number, readings and packed bytes."""

    last: int = 0
    readings: int = 0
    packed_bytes: int = 0
