"""What must be durable before anything leaves the device: one transaction's worth of changes."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from crdts import Replica
from device_agent.facts import Facts
from lasp_edge.folds.columns import Partial

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
    """A pane entry as stored. `dirty` until a frame that holds this seq has landed."""

    seq: int
    end_us: int
    partial: Partial
    dirty: bool


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
        meanings: number of a new meaning -> the variable's name, and the meaning as text.
        deltas: encoded deltas of variables, each with its place after the whole state.
        states: whole encoded variables, in place of all that was stored; None: the key is gone.
        sources: cursors and watermarks.
        counters: totals by name.
        facts: single values that are new.
        readings: accepted readings, where they are kept.
        waiting: batches that wait for the clock.
        placed: numbers of batches that wait no more.
        all_dirty: every stored pane entry is dirty again.
    """

    replica: Replica | None = None
    identities: dict[BlockId, bytes] = field(default_factory=dict)
    panes: dict[PaneId, PaneRow] = field(default_factory=dict)
    meanings: dict[int, tuple[str, str]] = field(default_factory=dict)
    deltas: dict[StoredId, list[tuple[int, bytes]]] = field(default_factory=dict)
    states: dict[StoredId, bytes | None] = field(default_factory=dict)
    sources: dict[str, SourceRow] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    facts: Facts = field(default_factory=Facts)
    readings: list[ReadingRow] = field(default_factory=list)
    waiting: list[WaitingRow] = field(default_factory=list)
    placed: list[int] = field(default_factory=list)
    all_dirty: bool = False

    def __bool__(self) -> bool:
        stored = self.identities or self.panes or self.deltas or self.states or self.sources
        waiting = self.waiting or self.placed
        return bool(
            stored
            or waiting
            or self.counters
            or self.readings
            or self.replica
            or self.all_dirty
            or self.facts
        )

    def make_all_dirty(self) -> None:
        """Let every pane entry be dirty again, those in the store and those that changed before."""
        self.all_dirty = True
        self.panes = {pane: row._replace(dirty=True) for pane, row in self.panes.items()}

    def add(self, later: "Changes") -> None:
        """Take over what `later` says; a key of both has what `later` says of it.

        Its dictionaries may become part of this one: `later` is not used again.
        """
        self.replica = later.replica or self.replica
        if later.all_dirty:
            self.make_all_dirty()
        self.panes = self.panes | later.panes if self.panes else later.panes
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


@dataclass(slots=True)
class Restored:
    """What a store holds when an agent starts.

    Attributes:
        incarnation: the greatest known of this device; 0 for a new store.
        meanings: number -> the variable's name, and the meaning as text.
        variables: number of the meaning -> key -> encoded parts, whose join is the state.
        sources: cursors and watermarks by source name.
        counters: totals by name.
        facts: single values.
        waiting: readings that wait for the clock.
        last_blocks: the last stored block of identities of each stream: (event, tags, block).
    """

    incarnation: int = 0
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
