"""The kinds of frames that agents, landers and operators send each other over MQTT.

Each class states what its kind says beside the envelope (`lasp_edge.protocol.envelope`), and checks
it when it is decoded. `lasp_edge.protocol.kinds` says on which topic each kind travels and who
reads it.

    >>> from crdts import Replica
    >>> me = Replica(1, 7, "pi-1")
    >>> frame = BeatFrame(me, 1, (SinkLow("lake", 0, 120),), done=False, reports=(), seq=9)
    >>> (frame.about, len(frame.encode()))
    ('pi-1', 23)
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple, Self

from crdts import Entry, Version
from crdts.replica import SEQS
from lasp_edge.protocol import blocks, checks
from lasp_edge.protocol.blocks import PaneEntries, PartColumn
from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.entries import rows_of
from lasp_edge.protocol.envelope import Envelope, Frame
from lasp_edge.protocol.fencing import SourceHigh, source_highs
from lasp_edge.protocol.limits import TIME_LIMIT_US
from lasp_edge.protocol.shards import KEY_BYTES, KEY_SHARDS, key_shard
from lasp_edge.protocol.sinks import MAX_SINKS, SinkLow, low_rows

LONGEST_DIGEST = 32
"""Bytes of a program's digest or a release, at most: both are kept of every device."""
SPEAKS, UNITS, BOUNDS, ALARMS, STREAMS = "speaks", "units", "bounds", "alarms", "streams"
"""Keys of a presence's extra element; who does not read them is of a release without them."""
MOST_BEGUN = 1_000
"""Windows of which a beat says from when on they are whole, at most."""
EVERY_WINDOW = 0
"""Stands in `begun` in place of a window's stream."""
ONLINE_JSON = '{"online": true}'
"""Stands as text in the presence of a connected device that Home Assistant knows: it reads no
frames, and a connection has but one Last Will."""
MOST_UNITS, UNIT_BYTES = 32, 16
"""Events whose units a presence states, and bytes of a unit, at most: a presence stays small."""
BOUND_BYTES = 64
"""Bytes of the words for a bound, at most; bounds are as many as units."""
MOST_STREAMS = 64
"""Streams that a presence states, at most; a program with more states none."""


@dataclass(frozen=True, slots=True)
class PaneFrame(Frame):
    """Pane entries that a device sends to all sinks, which acknowledge them by replica and seq.

    Attributes:
        highs: how far its sources have come whose readings carry their own time.
        begun: see `BeatFrame`.
    """

    blocks: tuple[PaneEntries, ...]
    highs: tuple[SourceHigh, ...] = ()
    begun: tuple[tuple[int, int], ...] = ()

    kind = 1

    def body(self) -> list[Any]:
        return [[blocks.packed(block) for block in self.blocks], list(map(list, self.highs))]

    def extra(self) -> dict[str, Any]:
        return {"begun": list(map(list, self.begun))} if self.begun else {}

    @classmethod
    def from_envelope(cls, envelope: Envelope) -> Self:
        packed, highs = envelope.body
        unpacked = tuple([blocks.unpacked(block) for block in checks.array(packed)])
        begun = _begun(envelope.extra.get("begun", []))
        return cls(envelope.sender, envelope.number, unpacked, source_highs(highs), begun)


@dataclass(frozen=True, slots=True)
class VariableFrame(Frame):
    """A device's whole entry of one shard of a variable: keys that are not in it are gone.

    The entry's seq is `number`: with the sender it is the entry's version. A variable without keys
    has the one key "" in shard 0. Of one with keys an entry may be empty.

    Attributes:
        stream: the id of the local fold that made the partials.
        keys: sorted.
        seqs: the seq of the replica at which each key last changed, at most `number`.
        columns: one tuple for each fold column, as long as `keys`.
    """

    variable: str
    stream: int
    shard: int
    keys: tuple[str, ...]
    seqs: tuple[int, ...]
    columns: tuple[PartColumn, ...]
    _entry: Entry | None = field(default=None, init=False, repr=False, compare=False)

    kind = 2

    @property
    def version(self) -> Version:
        """The entry's version."""
        return self.entry.version

    @property
    def entry(self) -> Entry:
        """The entry, whose payload is rows; all who are given this frame share it."""
        if self._entry is None:
            rows = rows_of(self.keys, self.seqs, self.columns)
            made = Entry(Version.of(self.sender, self.number), rows)
            object.__setattr__(self, "_entry", made)  # a frame says the same all its life
            return made
        return self._entry

    @property
    def subtopic(self) -> tuple[str, ...]:
        return (self.variable, f"{self.shard:02x}")

    def body(self) -> list[Any]:
        ages = [self.number - seq for seq in self.seqs]
        return [self.variable, self.stream, self.shard, self.keys, ages, self.columns]

    @classmethod
    def from_envelope(cls, envelope: Envelope) -> Self:
        name, stream, shard, packed_keys, ages, packed_columns = envelope.body
        number = envelope.number
        variable = checks.name(name)
        checks.integer(stream)
        checks.integer(shard, 0, KEY_SHARDS)
        keys = tuple(checks.keys(packed_keys, KEY_BYTES))
        _check_keys(keys, shard)
        seqs = tuple([number - age for age in checks.integers(ages, 0, number + 1)])
        columns = blocks.part_columns(packed_columns)
        if {len(seqs), *map(len, columns)} != {len(keys)} or (keys and not columns):
            raise FrameError("columns of unequal length")
        return cls(envelope.sender, number, variable, stream, shard, keys, seqs, columns)


LONGEST_SOURCE = 48
"""Characters of a source's name in a beat, at most."""


class VariableReport(NamedTuple):
    """What a device holds of one variable.

    Attributes:
        seq: the device's newest seq there.
        digest: of the whole variable, as the device holds it.
        own: sum of the hashes of the device's own entries, modulo 2**64; None where it does not
            say. It tells a peer that one of several shards did not arrive.
    """

    variable: str
    seq: int
    digest: int
    own: int | None = None


@dataclass(frozen=True, slots=True)
class BeatFrame(Frame):
    """Sent periodically by each device: what it holds, and up to when it is complete.

    Attributes:
        lows: its promises, one to each sink that it knows.
        done: its sources are finished and nothing is dirty for any sink.
        done_for: the names of the sinks for which nothing is, where it is for others: one that is
            gone for days holds up no other.
        reports: one for each variable it holds.
        seq: the newest of the replica's durable pane entries; 0 before the first.
        clock_s: its own clock, seconds since the epoch; None where it does not trust it.
        highs: how far its sources have come whose readings carry their own time.
        control: what tells the log of parameters that it knows from others; 0 for an empty one.
        floor_us: from when on it has all its readings, to make panes again; None where its program
            has no parameters.
        held_by: the source that is silent, and that its promises wait for; "" for none.
        begun: streams of windows that its program did not always have, and from when on all its
            readings are in their panes; of `EVERY_WINDOW`, from when on no reading was accepted by
            another store of its name alone, be that lost or a twin's.
    """

    lows: tuple[SinkLow, ...]
    done: bool
    reports: tuple[VariableReport, ...]
    seq: int = 0
    clock_s: int | None = None
    highs: tuple[SourceHigh, ...] = ()
    control: int = 0
    floor_us: int | None = None
    done_for: frozenset[str] = frozenset()
    held_by: str = ""
    begun: tuple[tuple[int, int], ...] = ()

    kind = 3

    def low_of(self, sink: str, store: str) -> SinkLow | None:
        """Return what it promises to a sink with this store; None where it names no such one."""
        return next((low for low in self.lows if low.is_of(sink, store)), None)

    def body(self) -> list[Any]:
        lows = [low.packed() for low in self.lows]
        highs = list(map(list, self.highs))
        return [lows, self.done, self.reports, self.seq, self.clock_s, highs]

    def extra(self) -> dict[str, Any]:
        given: dict[str, Any] = {"control": self.control} if self.control else {}
        if self.floor_us is not None:
            given["floor"] = self.floor_us
        if self.done_for:
            given["done"] = sum(
                low.sink in self.done_for and 1 << at for at, low in enumerate(self.lows)
            )
        if self.held_by:
            given["held_by"] = self.held_by
        if any(low.commit for low in self.lows):
            given["commits"] = [low.commit for low in self.lows]
        if self.begun:
            given["begun"] = list(map(list, self.begun))
        return given

    @classmethod
    def from_envelope(cls, envelope: Envelope) -> Self:
        lows, done, reports, seq, clock_s, highs = envelope.body
        rows = low_rows(lows, envelope.extra.get("commits", []))
        known = tuple([_report(*checks.array(report)) for report in checks.array(reports)])
        checks.integer(seq, 0, SEQS)
        clock = checks.clock_s(clock_s)
        control = checks.integer(envelope.extra.get("control", 0), 0)
        floor = envelope.extra.get("floor")
        floor_us = None if floor is None else checks.integer(floor, -TIME_LIMIT_US, TIME_LIMIT_US)
        bits = checks.integer(envelope.extra.get("done", 0), 0, 1 << MAX_SINKS)
        done_for = frozenset(row.sink for at, row in enumerate(rows) if bits >> at & 1)
        held_by = checks.text(envelope.extra.get("held_by", ""))
        begun = _begun(envelope.extra.get("begun", []))
        rest = (source_highs(highs), control, floor_us, done_for, held_by, begun)
        fields = (checks.flag(done), known, seq, clock, *rest)
        return cls(envelope.sender, envelope.number, rows, *fields)


@dataclass(frozen=True, slots=True)
class PresenceFrame(Frame):
    """Whether a replica is connected: published by itself, or by the broker as its Last Will.

    A will is made before the connection and published after it, so the last frame to arrive counts,
    whatever its number.

    Attributes:
        online: it is connected.
        program: the digest of the program that it runs; "" where it does not say.
        release: of lasp-edge; "" where it does not say.
        speaks: it would publish the fleet's values; the least one that is connected does.
        units: event -> the unit in which its program measures it; of those that have one.
        bounds: variable -> which samples it keeps, in words; of those that the fleet folds.
        alarms: how many alarms it has.
        streams: the ids of the streams that its program sends; empty where they are too many, or
            it is of a release that does not say.
    """

    online: bool
    program: str = ""
    release: str = ""
    speaks: bool = False
    units: Mapping[str, str] = field(default_factory=dict, hash=False)
    bounds: Mapping[str, str] = field(default_factory=dict, hash=False)
    alarms: int = 0
    streams: tuple[int, ...] = ()

    kind = 4

    def body(self) -> list[Any]:
        return [self.online, self.program, self.release]

    def extra(self) -> dict[str, Any]:
        found: dict[str, Any] = {SPEAKS: True} if self.speaks else {}
        found |= {"json": ONLINE_JSON} if self.speaks else {}
        found |= {UNITS: dict(self.units)} if self.units else {}
        found |= {BOUNDS: dict(self.bounds)} if self.bounds else {}
        found |= {STREAMS: list(self.streams)} if self.streams else {}
        return found | {ALARMS: self.alarms} if self.alarms else found

    @classmethod
    def from_envelope(cls, envelope: Envelope) -> Self:
        online, program, release = envelope.body
        runs = checks.text(program, LONGEST_DIGEST), checks.text(release, LONGEST_DIGEST)
        speaks = checks.flag(envelope.extra.get(SPEAKS, False))
        units = _words(envelope.extra.get(UNITS, {}), UNIT_BYTES)
        bounds = _words(envelope.extra.get(BOUNDS, {}), BOUND_BYTES)
        alarms = checks.integer(envelope.extra.get(ALARMS, 0), 0)
        streams = checks.array(envelope.extra.get(STREAMS, []))
        if len(streams) > MOST_STREAMS:
            raise FrameError("too many streams")
        found = cls(envelope.sender, envelope.number, checks.flag(online), *runs, speaks, units)
        sent = tuple(map(checks.integer, streams))
        return replace(found, bounds=bounds, alarms=alarms, streams=sent)


@dataclass(frozen=True, slots=True)
class AskFrame(Frame):
    """A peer asks the device `about` to publish its entries of a variable again.

    Attributes:
        variable: its name; "" where an operator asks for a beat.
    """

    about: str = field()  # the base class's property is not its default
    variable: str

    kind = 6

    def body(self) -> list[Any]:
        return [self.variable]

    @classmethod
    def from_envelope(cls, envelope: Envelope) -> Self:
        (variable,) = envelope.body
        return cls(envelope.sender, envelope.number, envelope.about, checks.text(variable))


def _begun(plain: Any) -> tuple[tuple[int, int], ...]:
    if len(checks.array(plain)) > MOST_BEGUN:
        raise FrameError("too many windows")
    return tuple([_window_begun(*checks.array(each)) for each in plain])


def _window_begun(stream: Any, since_us: Any) -> tuple[int, int]:
    return checks.integer(stream), checks.integer(since_us, -TIME_LIMIT_US, TIME_LIMIT_US)


def _words(given: Any, most_bytes: int) -> Mapping[str, str]:
    if type(given) is not dict or len(given) > MOST_UNITS:
        raise FrameError("bad units or bounds")
    return {checks.text(name): checks.text(word, most_bytes) for name, word in given.items()}


def _check_keys(keys: tuple[str, ...], shard: int) -> None:
    if any(after <= before for before, after in pairwise(keys)):
        raise FrameError("keys out of order")
    if (shard, keys) != (0, ("",)) and any(key_shard(key) != shard for key in keys):
        raise FrameError("a key of another shard")


def _report(variable: Any, seq: Any, digest: Any, own: Any) -> VariableReport:
    if own is not None:
        checks.integer(own, 0, 2**64)
    return VariableReport(
        checks.text(variable),
        checks.integer(seq, 0, SEQS),
        checks.integer(digest, 0, 2**64),
        own,
    )
