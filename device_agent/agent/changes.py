"""What must be durable before anything leaves the device: one transaction's worth of changes."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from crdts import Replica
from device_agent.agent.facts import Facts
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


class HistoryId(NamedTuple):
    """The name of what is kept of a stream for a time; names are ordered by time first."""

    at_us: int
    stream: int


class HistoryRow(NamedTuple):
    """What is kept of a stream: a cell of items or rows, or a cut; it goes to no sink.

    Attributes:
        end_us: until when it may be needed: below the floor, it is deleted.
        content: packed.
    """

    end_us: int
    content: bytes


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


@dataclass(slots=True)
class Changes:
    """Changes since the last commit; for one key the last one counts.

    Attributes:
        replica: this replica, if it is new: it is stored before it writes anything.
        identities: packed identities of a block.
        panes: pane entries.
        history: what is kept of streams, where it changed.
        meanings: number of a new meaning -> the variable's name, and the meaning as text.
        deltas: encoded deltas of variables, each with its place after the whole state.
        states: whole encoded variables, in place of all that was stored; None: the key is gone.
        sources: cursors and watermarks.
        counters: totals by name.
        facts: single values that are new.
        readings: accepted readings, where they are kept.
        forgotten: bits of sinks for which no stored pane entry is dirty any more.
        dirtied: bits of sinks for which every stored pane entry is dirty, after that.
        answers: of sinks, on stored pane entries, after that.
        abandoned: panes that are deleted, before entries are written.
        waiting: batches that wait for the clock.
        placed: numbers of batches that wait no more.
    """

    replica: Replica | None = None
    identities: dict[BlockId, bytes] = field(default_factory=dict)
    panes: dict[PaneId, PaneRow] = field(default_factory=dict)
    history: dict[HistoryId, HistoryRow] = field(default_factory=dict)
    meanings: dict[int, tuple[str, str]] = field(default_factory=dict)
    deltas: dict[StoredId, list[tuple[int, bytes]]] = field(default_factory=dict)
    states: dict[StoredId, bytes | None] = field(default_factory=dict)
    sources: dict[str, SourceRow] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    facts: Facts = field(default_factory=Facts)
    readings: list[ReadingRow] = field(default_factory=list)
    waiting: list[WaitingRow] = field(default_factory=list)
    placed: list[int] = field(default_factory=list)
    forgotten: int = 0
    dirtied: int = 0
    answers: list[StoreWide] = field(default_factory=list)
    abandoned: list[AbandonedPanes] = field(default_factory=list)

    def __bool__(self) -> bool:
        if self.panes or self.identities or self.sources or self.counters or self.facts:
            return True
        stored = self.deltas or self.states or self.readings or self.replica or self.history
        panes = self.forgotten or self.dirtied or self.answers or self.abandoned
        return bool(stored or panes or self.waiting or self.placed)

    def forget_sinks(self, bits: int) -> None:
        """Let no pane entry be dirty for these sinks, neither in the store nor changed before."""
        self._unanswer(bits)
        self.forgotten |= bits
        self.dirtied &= ~bits
        self.panes = {pane: _with(row, 0, bits) for pane, row in self.panes.items()}

    def make_dirty(self, bits: int) -> None:
        """Let every pane entry be dirty for these sinks, in the store and changed before."""
        self._unanswer(bits)
        self.dirtied |= bits
        self.panes = {pane: _with(row, bits, bits) for pane, row in self.panes.items()}

    def applied(self, pane: PaneId, row: PaneRow) -> PaneRow:
        """Return a stored entry as it will be after what these changes say of many at once."""
        if self.forgotten:
            row = _with(row, 0, self.forgotten)
        if self.dirtied:
            row = _with(row, self.dirtied, self.dirtied)
        for bit, reason, seqs in self.answers:
            if row.dirty & bit and pane[3:] == seqs[:2] and row.seq in seqs:
                if reason:
                    row = row._replace(refused=refusal(row.refused, bit, reason))
                else:
                    row = _with(row, 0, bit)
        return row

    def abandon(self, panes: AbandonedPanes) -> None:
        """Let there be no entry of some panes, neither in the store nor changed before."""
        self.abandoned.append(panes)
        self.panes = {pane: row for pane, row in self.panes.items() if not panes.has(pane)}

    def _unanswer(self, bits: int) -> None:
        self.answers = [answer for answer in self.answers if not answer.bit & bits]

    def add(self, later: "Changes") -> None:
        """Take over later changes; of a key in both, the later one counts.

        Its dictionaries may become part of this one: `later` is not used again.
        """
        self.replica = later.replica or self.replica
        if later.forgotten:
            self.forget_sinks(later.forgotten)
        if later.dirtied:
            self.make_dirty(later.dirtied)
        self.answers += later.answers
        for abandoned in later.abandoned:
            self.abandon(abandoned)
        self.panes = self.panes | later.panes if self.panes else later.panes
        self.history.update(later.history)
        self.meanings.update(later.meanings)
        for where in later.states:
            self.deltas.pop(where, None)  # the whole state is later than these
        for where, parts in later.deltas.items():
            self.deltas.setdefault(where, []).extend(parts)
        self.states.update(later.states)
        self.identities.update(later.identities)
        self.sources.update(later.sources)
        self.counters.update(later.counters)
        self.readings += later.readings
        self.waiting += later.waiting
        self.placed += later.placed
        if later.facts:
            self.facts.add(later.facts)


def _with(row: PaneRow, dirty: int, of: int) -> PaneRow:
    """Return a row that is dirty for those sinks of `of` that are in `dirty`; none refused it."""
    return row._replace(dirty=row.dirty & ~of | dirty, refused=row.refused & ~of)


@dataclass(slots=True)
class Restored:
    """What a store holds when an agent starts.

    Attributes:
        incarnation: the greatest known of this device; 0 for a new store.
        replicas: (incarnation, nonce) of the lives that this store has seen, the last ones.
        meanings: number -> the variable's name, and the meaning as text.
        variables: number of the meaning -> key -> encoded parts, whose join is the state.
        sources: cursors and watermarks by source name.
        counters: totals by name.
        facts: single values.
        waiting: readings that wait for the clock.
        last_blocks: the last stored block of identities of the streams that came last: (event,
            tags, block).
    """

    incarnation: int = 0
    replicas: frozenset[tuple[int, int]] = frozenset()
    meanings: dict[int, tuple[str, str]] = field(default_factory=dict)
    variables: dict[int, dict[str, list[bytes]]] = field(default_factory=dict)
    sources: dict[str, SourceRow] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    facts: Facts = field(default_factory=Facts)
    waiting: WaitingTotals = field(default_factory=WaitingTotals)
    last_blocks: list[tuple[str, str, int]] = field(default_factory=list)

    def stored(self, variable: str) -> dict[str, list[bytes]]:
        """Return the encoded parts of a variable by key, under the meaning that it has now."""
        number = (self.facts.meanings or {}).get(variable)
        return {} if number is None else self.variables.get(number, {})
