"""Frames: what crosses MQTT between devices, and between devices and the lander.

A frame is one msgpack array `[format, kind, device, incarnation, nonce, number, body, extras]`.
`number` counts a replica's frames of a kind from 1. `extras` is a map that a reader ignores where
it does not know a key: groups, fences and signatures have their place there. Nothing a stranger
sends can do more than raise `FrameError`: size, depth, types and ranges are checked
here and in `lasp_edge.protocol.checks`.

Pane entries are packed by column, with differences of panes and seqs, so that a mean entry takes a
few bytes.

    >>> me = Replica(1, 7, "pi-1")
    >>> entries = PaneEntries(stream=5, span_us=10, incarnation=1, nonce=7, columns=((3,), (6600,)),
    ...                       keys=("attic",), panes_us=(120,), seqs=(9,))
    >>> frame = PaneFrame(me, 1, (entries,))
    >>> decode(frame.encode()) == frame
    True
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import msgpack

from crdts import Membership, Replica, Version
from crdts.membership import Member
from crdts.replica import SEQS
from lasp_edge.folds.fold import MAX_COLUMNS
from lasp_edge.protocol import checks
from lasp_edge.protocol.checks import FrameError as FrameError  # noqa: PLC0414 - exported
from lasp_edge.protocol.shards import KEY_BYTES, KEY_SHARDS, key_shard

FORMAT = 1
MAX_FRAME_BYTES = 65_536
_TIME_LIMIT = 2**58


PartColumn = tuple[int | bytes | None, ...]
"""One fold column of several entries: integers, None where a partial has none, or all bytes."""


class PaneEntries(NamedTuple):
    """Pane entries of one stream and one replica, by column; all columns are equally long.

    Attributes:
        stream: the stream id.
        span_us: length of a pane.
        incarnation: with `nonce` the replica that wrote them, which may be an earlier one of the
            frame's device.
        nonce: see `incarnation`.
        columns: one tuple for each fold column: integers, None where a partial has none, or bytes.
        keys: the group of each entry, empty text for none.
        panes_us: start of each entry's pane, a multiple of the span.
        seqs: version of each entry within its replica.
    """

    stream: int
    span_us: int
    incarnation: int
    nonce: int
    columns: tuple[PartColumn, ...]
    keys: tuple[str, ...]
    panes_us: tuple[int, ...]
    seqs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PaneFrame:
    """Pane entries, to be acknowledged by `number`."""

    replica: Replica
    number: int
    blocks: tuple[PaneEntries, ...]

    kind = 1

    def encode(self) -> bytes:
        """Return the frame as bytes."""
        return _pack(self, [_packed_block(block) for block in self.blocks])


@dataclass(frozen=True, slots=True)
class VariableFrame:
    """A device's whole entry of one shard of a variable: keys that are not in it are gone.

    A variable without keys has the one key "" in shard 0. Of one with keys an entry may be empty.

    Attributes:
        number: the entry's seq: with the replica it is the entry's version.
        variable: the variable's name.
        stream: the id of the local fold that made the partials; 0 for a shared state.
        shard: which of the variable's shards it is.
        keys: sorted.
        seqs: the seq of the replica at which each key last changed, at most `number`.
        columns: one tuple for each fold column, as long as `keys`; of a shared state the one
            column with the encoded state.
    """

    replica: Replica
    number: int
    variable: str
    stream: int
    shard: int
    keys: tuple[str, ...]
    seqs: tuple[int, ...]
    columns: tuple[PartColumn, ...]

    kind = 2

    @property
    def version(self) -> Version:
        """The entry's version."""
        return Version.of(self.replica, self.number)

    def encode(self) -> bytes:
        """Return the frame as bytes."""
        ages = [self.number - seq for seq in self.seqs]
        return _pack(self, [self.variable, self.stream, self.shard, self.keys, ages, self.columns])


class Report(NamedTuple):
    """What a device says of one variable.

    Attributes:
        variable: its name.
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
class BeatFrame:
    """A device's periodic word.

    Attributes:
        low_us: its promise, the low watermark; None where it cannot promise anything.
        done: its sources are finished and nothing is dirty.
        reports: one for each variable it holds.
        seq: the newest of the replica's durable pane entries; 0 before the first.
    """

    replica: Replica
    number: int
    low_us: int | None
    done: bool
    reports: tuple[Report, ...]
    seq: int = 0

    kind = 3

    def encode(self) -> bytes:
        """Return the frame as bytes."""
        return _pack(self, [self.low_us, self.done, self.reports, self.seq])


@dataclass(frozen=True, slots=True)
class PresenceFrame:
    """Whether a replica is connected; the broker says it is not when the connection breaks."""

    replica: Replica
    number: int
    online: bool

    kind = 4

    def encode(self) -> bytes:
        """Return the frame as bytes."""
        return _pack(self, [self.online])


@dataclass(frozen=True, slots=True)
class AckFrame:
    """Which pane frames of a replica have landed.

    Attributes:
        lake: id of the lake; a device that sees another one sends everything again.
        numbers: the frames' numbers.
    """

    replica: Replica
    number: int
    lake: str
    numbers: tuple[int, ...]

    kind = 5

    def encode(self) -> bytes:
        """Return the frame as bytes."""
        return _pack(self, [self.lake, self.numbers])


@dataclass(frozen=True, slots=True)
class AskFrame:
    """A peer's request that a device publish its entry of a variable again."""

    replica: Replica
    number: int
    variable: str

    kind = 6

    def encode(self) -> bytes:
        """Return the frame as bytes."""
        return _pack(self, [self.variable])


@dataclass(frozen=True, slots=True)
class MemberFrame:
    """An operator's word on a device: whether it counts, retained for everybody.

    Attributes:
        replica: the device that is meant, with incarnation and nonce of its newest known life;
            both 0 where it was never heard.
        number: the control, greater than that of every earlier word on the device.
        retired: it does not count any more.
        seq: with the replica the version up to which its panes count while it is retired.
    """

    replica: Replica
    number: int
    retired: bool
    seq: int

    kind = 7

    @property
    def version(self) -> Version:
        """Up to where the device's panes count."""
        return Version.of(self.replica, self.seq)

    @classmethod
    def of(cls, device: str, member: Member) -> "MemberFrame":
        """Return the frame that says what is known of a device."""
        replica = member.version.replica(device)
        return cls(replica, member.control, member.retired, member.version.seq)

    def membership(self) -> Membership:
        """Return the frame's word as a delta."""
        word = Member.checked(self.number, self.retired, self.version)
        return Membership({self.replica.device: word})

    def encode(self) -> bytes:
        """Return the frame as bytes."""
        return _pack(self, [self.retired, self.seq])


Frame = PaneFrame | VariableFrame | BeatFrame | PresenceFrame | AckFrame | AskFrame | MemberFrame


def decode(payload: bytes) -> Frame:
    """Return the frame.

    Raises:
        FrameError: the bytes are no valid frame of this format.
    """
    kind, replica, number, body = _envelope(payload)
    reader = _READERS.get(kind)
    if reader is None:
        raise FrameError(f"unknown kind {kind}")
    try:
        return reader(replica, number, body)
    except FrameError:
        raise
    except (TypeError, ValueError, KeyError, IndexError, OverflowError) as error:
        raise FrameError(f"malformed body: {type(error).__name__}") from None


def entry_bytes(key: str, columns: int, binary: int = 0) -> int:
    """Return an upper bound for the bytes that one entry adds to a frame.

    Args:
        key: its key.
        columns: how many columns its fold has.
        binary: how many bytes its binary parts have, together.
    """
    return len(key.encode()) + 5 + 9 * (3 + columns) + binary


FRAME_OVERHEAD_BYTES = 512
"""An upper bound for a pane frame's bytes beside its blocks."""

BLOCK_OVERHEAD_BYTES = 64 + 5 * MAX_COLUMNS
"""An upper bound for a block's bytes beside its entries."""

SHARD_OVERHEAD_BYTES = FRAME_OVERHEAD_BYTES + 300 + 5 * MAX_COLUMNS
"""An upper bound for the bytes of a variable's frame beside its entries."""


def _pack(frame: Frame, body: list[Any]) -> bytes:
    incarnation, nonce, device = frame.replica
    envelope = [FORMAT, frame.kind, device, incarnation, nonce, frame.number, body, {}]
    packed: bytes = msgpack.packb(envelope)
    return packed


def _envelope(payload: bytes) -> tuple[int, Replica, int, list[Any]]:
    if len(payload) > MAX_FRAME_BYTES:
        raise FrameError("too large")
    try:
        fields = msgpack.unpackb(payload, use_list=True, strict_map_key=True)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException):
        raise FrameError("not msgpack") from None
    if not isinstance(fields, list) or len(fields) != 8:  # noqa: PLR2004 - the envelope's length
        raise FrameError("not an envelope")
    version, kind, device, incarnation, nonce, number, body, extras = fields
    if type(version) is not int or version != FORMAT:
        raise FrameError(f"not format {FORMAT}")  # its repr may be as deep as a stranger likes
    replica = checks.replica(incarnation, nonce, device)
    if not isinstance(body, list) or not isinstance(extras, dict):
        raise FrameError("not an envelope")
    if type(kind) is not int:
        raise FrameError("bad kind")
    return kind, replica, checks.integer(number, 0, SEQS), body


def _differences(values: Sequence[int]) -> list[int]:
    return [*values[:1], *(after - before for before, after in pairwise(values))]


def _packed_block(block: PaneEntries) -> list[Any]:
    if len(block.columns) > MAX_COLUMNS:
        raise ValueError(f"at most {MAX_COLUMNS} columns a stream, not {len(block.columns)}")
    names = sorted(set(block.keys))
    order = {name: index for index, name in enumerate(names)}
    panes = _differences([pane_us // block.span_us for pane_us in block.panes_us])
    keys = [] if names in ([], [""]) else [names, [order[key] for key in block.keys]]
    return [
        *block[:4],
        [list(column) for column in block.columns],
        keys,
        panes,
        _differences(block.seqs),
    ]


def _block(packed: Any) -> PaneEntries:
    stream, span_us, incarnation, nonce, packed_columns, packed_keys, panes, seqs = checks.array(
        packed
    )
    checks.integer(stream)
    checks.integer(span_us, 1, _TIME_LIMIT)
    Version.checked(incarnation, nonce, 0)
    if len(checks.array(packed_columns)) > MAX_COLUMNS:
        raise FrameError("too many columns")
    columns = tuple([checks.part_column(column) for column in packed_columns])
    indices = _restored(panes, -_TIME_LIMIT // span_us, _TIME_LIMIT // span_us)
    numbers = _restored(seqs, 0, SEQS)
    keys = _keys(packed_keys, len(indices))
    if not indices or {len(numbers), len(keys), *map(len, columns)} != {len(indices)}:
        raise FrameError("columns of unequal length")
    panes_us = tuple([index * span_us for index in indices])
    return PaneEntries(stream, span_us, incarnation, nonce, columns, keys, panes_us, numbers)


def _restored(differences: Any, least: int, below: int) -> tuple[int, ...]:
    return checks.integers(list(accumulate(checks.integers(differences))), least, below)


def _keys(packed: Any, length: int) -> tuple[str, ...]:
    if not checks.array(packed):
        return ("",) * length
    names, indices = packed
    known = checks.keys(names, MAX_FRAME_BYTES)
    return tuple([known[index] for index in checks.integers(indices, 0, len(known))])


def _pane_frame(replica: Replica, number: int, body: list[Any]) -> PaneFrame:
    return PaneFrame(replica, number, tuple([_block(packed) for packed in body]))


def _variable_frame(replica: Replica, number: int, body: list[Any]) -> VariableFrame:
    name, stream, shard, packed_keys, ages, packed_columns = body
    variable = checks.text(name)
    checks.integer(stream)
    checks.integer(shard, 0, KEY_SHARDS)
    keys = tuple(checks.keys(packed_keys, KEY_BYTES))
    _check_keys(keys, shard)
    seqs = tuple([number - age for age in checks.integers(ages, 0, number + 1)])
    if len(checks.array(packed_columns)) > MAX_COLUMNS:
        raise FrameError("too many columns")
    column = checks.part_column if stream else _states
    columns = tuple([column(values) for values in packed_columns])
    if {len(seqs), *map(len, columns)} != {len(keys)}:
        raise FrameError("columns of unequal length")
    return VariableFrame(replica, number, variable, stream, shard, keys, seqs, columns)


def _check_keys(keys: tuple[str, ...], shard: int) -> None:
    if any(after <= before for before, after in pairwise(keys)):
        raise FrameError("keys out of order")
    if (shard, keys) != (0, ("",)) and any(key_shard(key) != shard for key in keys):
        raise FrameError("a key of another shard")


def _states(values: Any) -> PartColumn:
    """Return a column of encoded states, which are as long as a frame can be."""
    if any(type(value) is not bytes for value in checks.array(values)):
        raise FrameError("not an encoded state")
    return tuple(values)


def _beat_frame(replica: Replica, number: int, body: list[Any]) -> BeatFrame:
    low_us, done, reports, seq = body
    if low_us is not None:
        checks.integer(low_us, -_TIME_LIMIT, _TIME_LIMIT)
    known = tuple([_report(*checks.array(report)) for report in checks.array(reports)])
    return BeatFrame(
        replica, number, low_us, checks.flag(done), known, checks.integer(seq, 0, SEQS)
    )


def _report(variable: Any, seq: Any, digest: Any, own: Any) -> Report:
    if own is not None:
        checks.integer(own, 0, 2**64)
    return Report(
        checks.text(variable),
        checks.integer(seq, 0, SEQS),
        checks.integer(digest, 0, 2**64),
        own,
    )


def _presence_frame(replica: Replica, number: int, body: list[Any]) -> PresenceFrame:
    (online,) = body
    return PresenceFrame(replica, number, checks.flag(online))


def _ack_frame(replica: Replica, number: int, body: list[Any]) -> AckFrame:
    lake, numbers = body
    return AckFrame(replica, number, checks.text(lake), checks.integers(numbers, 0, SEQS))


def _ask_frame(replica: Replica, number: int, body: list[Any]) -> AskFrame:
    (variable,) = body
    return AskFrame(replica, number, checks.text(variable))


def _member_frame(replica: Replica, number: int, body: list[Any]) -> MemberFrame:
    retired, seq = body
    checks.integer(number, 1, SEQS)
    return MemberFrame(replica, number, checks.flag(retired), checks.integer(seq, 0, SEQS))


_READERS: dict[int, Callable[[Replica, int, list[Any]], Frame]] = {
    PaneFrame.kind: _pane_frame,
    VariableFrame.kind: _variable_frame,
    BeatFrame.kind: _beat_frame,
    PresenceFrame.kind: _presence_frame,
    AckFrame.kind: _ack_frame,
    AskFrame.kind: _ask_frame,
    MemberFrame.kind: _member_frame,
}
