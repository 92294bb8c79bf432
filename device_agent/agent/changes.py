"""What must be durable before anything leaves the device: one transaction's worth of changes.

Facts are what an agent remembers as single values, each written by one part. A field that is None
has no value: in changes, the stored value stays; in what was restored, no value was stored. In the
store, a fact is one row: its name, and its value as JSON.

    >>> facts = Facts(sinks=(SinkRow("lake", "l-1"),), settled={"everywhere": Settled("00ff", 3)})
    >>> Facts.from_rows(facts.rows(), facts.member_rows()) == facts
    True
    >>> facts.add(Facts(high_us=7))
    >>> (facts.sinks[0].store, facts.high_us, facts.floor_us)
    ('l-1', 7, None)
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, NamedTuple, Self

from crdts import ControlLog, Member, Membership, Replica, Version
from device_agent.agent.stored_rows import (
    AbandonedPanes,
    BlockId,
    PaneId,
    PaneRow,
    ReadingRow,
    SourceRow,
    StoredId,
    StoreWide,
    WaitingRow,
    WaitingTotals,
    refusal,
)
from lasp_edge.evaluation.stored import HistoryId, HistoryRow


class SinkRow(NamedTuple):
    """A sink as stored; its place among the sinks is its bit, and a place without a name is free.

    Attributes:
        name: the sink's.
        store: the id of its store; empty before the first acknowledgement.
        former: ids of stores that it had before, the last one at the end.
        silent_us: for how long nothing came of it while the agent ran; stored now and then.
        commit: the greatest of its store after which it has taken an entry; 0 for none.
        landed: the same of a lake, which it is repeated to.
        spoken_s: the latest second at which a store of this name spoke, by its clock.
        ancestors: ids of the stores from which its one follows.
    """

    name: str
    store: str = ""
    former: tuple[str, ...] = ()
    silent_us: int = 0
    commit: int = 0
    landed: int = 0
    spoken_s: int = 0
    ancestors: tuple[str, ...] = ()


class Settled(NamedTuple):
    """What the fleet last agreed on for one dynamic fold."""

    inputs: str
    devices: int


@dataclass(slots=True)
class Facts:
    """The facts of one agent.

    Attributes:
        stamp_us: acceptance time of the last reading; no two readings share one.
        high_us: greatest accepted reading time.
        floor_us: readings below it are refused.
        pruned_us: what lies wholly below it has left the store.
        trusted_us: the last time that was trusted, within an hour.
        boots: boot of the machine -> the trusted time less its monotonic clock, latest last.
        clock: for people, what is wrong with the clock; "" if nothing is.
        promised_us: the greatest low watermark that was published.
        program: the name of the program that the store is of.
        summary: what that program declares, as text of a `ProgramSummary`.
        streams: the streams of the program's windows.
        meanings: variable -> the number of the meaning that its values have.
        other_programs: device that runs another program or release -> (program, release).
        membership: the operators' last commands on devices; in changes, the new ones. It is stored
            as a row for each device.
        sinks: to which pane entries are delivered.
        settled: dynamic fold -> what the fleet last agreed on.
        highs: id of a source -> greatest own time and number of the readings that were accepted;
            number of those that the processes of this store accepted; then incarnation and number
            of all readings at its end for each of the last processes.
        twice: id of a source -> readings that may count twice, as counted; then nonce and number
            of the readings that it may have accepted, too, for each other process.
        doubts: id of a source -> up to which own time its readings are doubtful.
        acted: what was done about values: group -> key -> record; in changes, of the groups that
            changed. It is stored as a row for each group.
        reached: variable -> key -> a time by which the bound of its set was reached, in groups: the
            variables.
        shown: the topics that hold what this device shows people, in groups as `acted`.
        absences: notes on absent devices that this one made: variable -> device -> version.
        control: the operators' entries of parameters.
        built: the log (`Agent.control`) under which all panes are built.
        doubted: up to when readings are doubtful of any source, and the log when that was learnt.
        notices: for people, what is accepted and probably a mistake.
        mixed: for people, whose numbers mix with those of other units or bounds.
        begun: streams of windows that the program did not always have, and from when on all
            readings are in their panes.
        refused_before: counted reason -> readings that processes before the present one refused.
    """

    stamp_us: int | None = None
    high_us: int | None = None
    floor_us: int | None = None
    pruned_us: int | None = None
    trusted_us: int | None = None
    boots: dict[str, int] | None = None
    clock: str | None = None
    promised_us: int | None = None
    program: str | None = None
    summary: str | None = None
    streams: tuple[int, ...] | None = None
    meanings: dict[str, int] | None = None
    other_programs: dict[str, tuple[str, str]] | None = None
    membership: Membership | None = None
    sinks: tuple[SinkRow, ...] | None = None
    settled: dict[str, Settled] | None = None
    highs: dict[str, list[int]] | None = None
    twice: dict[str, list[int]] | None = None
    doubts: dict[str, int] | None = None
    acted: dict[str, dict[str, Any]] | None = None
    reached: dict[str, dict[str, int]] | None = None
    shown: dict[str, list[str]] | None = None
    absences: dict[str, dict[str, tuple[int, ...]]] | None = None
    control: ControlLog | None = None
    built: int | None = None
    doubted: list[int] | None = None
    notices: list[str] | None = None
    mixed: list[str] | None = None
    begun: tuple[tuple[int, int], ...] | None = None
    refused_before: dict[str, int] | None = None

    def __bool__(self) -> bool:
        return _values(self) != _NO_VALUES  # asked several times a tick: half of what `!=` costs

    def add(self, later: "Facts") -> None:
        """Take over later facts."""
        for name, value in _here(later):
            if name == "membership" and self.membership is not None:
                self.membership |= value
            elif name in _GROUPED and (grouped := getattr(self, name)) is not None:
                grouped |= value
            else:
                setattr(self, name, value)

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield (name, JSON text) of each fact that is here."""
        for name, value in _here(self):
            if name in _GROUPED:
                for group, records in value.items():
                    yield f"{name}:{group}", json.dumps(records)
            elif name == "control":
                yield name, json.dumps(value.to_plain())
            elif type(value) is int:
                yield name, str(value)  # three of them in each commit of readings
            elif name != "membership":
                yield name, json.dumps(value)

    def member_rows(self) -> Iterator[tuple[str, int, int, int, int, int]]:
        """Yield a row of integers for each device that the membership names."""
        for device, member in (self.membership or Membership()).entries.items():
            yield device, member.control, int(member.retired), *member.version

    @classmethod
    def from_rows(
        cls, rows: Iterable[tuple[str, str]], members: Iterable[Sequence[Any]] = ()
    ) -> Self:
        """Return the facts that `rows` and `member_rows` gave."""
        found: dict[str, Any] = {}
        for name, text in rows:
            kind, _, group = name.partition(":")
            if kind in _GROUPED:
                found.setdefault(kind, {})[group] = json.loads(text)
            elif name in _NAMES:  # a former release stored others, too
                found[name] = _typed(name, json.loads(text))
        entries = {
            device: Member(control, bool(retired), Version(*version))
            for device, control, retired, *version in members
        }
        return cls(**found, membership=Membership(entries) if entries else None)


def _here(facts: Facts) -> list[tuple[str, Any]]:
    """Return the name and value of each fact that is here: most are not."""
    return [named for named in zip(_NAMES, _values(facts), strict=True) if named[1] is not None]


def _typed(name: str, plain: Any) -> Any:
    """Return a fact's value as its field holds it: JSON knows neither tuples nor classes."""
    if name in {"streams", "begun"}:
        return tuple([tuple(each) if type(each) is list else each for each in plain])
    if name == "sinks":
        rows = [SinkRow(*row) for row in plain]
        return tuple(
            [r._replace(former=tuple(r.former), ancestors=tuple(r.ancestors)) for r in rows]
        )
    if name == "other_programs":
        return {device: (program, release) for device, (program, release) in plain.items()}
    if name == "control":
        return ControlLog.from_plain(
            {
                parameter: {scope: tuple(map(tuple, rows)) for scope, rows in scopes.items()}
                for parameter, scopes in plain.items()
            }
        )
    if name == "settled":
        return {fold: Settled(*parts) for fold, parts in plain.items()}
    return plain


_GROUPED = frozenset({"acted", "reached", "shown"})
"""The facts that are stored as a row for each group."""
_NAMES = tuple(field.name for field in fields(Facts))
_values = attrgetter(*_NAMES)
_NO_VALUES = _values(Facts())


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
        if self.panes or self.identities or self.sources or self.counters:
            return True
        if _values(self.facts) != _NO_VALUES:  # a call less: it is asked several times a tick
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
        """Return a stored entry after those of these changes that concern many entries at once."""
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
