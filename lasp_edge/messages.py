"""Frames: what crosses MQTT between devices, and between devices and the lander.

A frame is one msgpack array `[format, kind, device, incarnation, nonce, number, body, extras]`.
`number` counts a replica's frames of a kind from 1. `extras` is a map that a reader ignores where
it does not know a key: groups, fences and signatures have their place there. Nothing a stranger
sends can do more than raise `FrameError`: size, depth, types and ranges are checked here.

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

from crdts import Replica, Version
from crdts.replica import SEQS
from lasp_edge.fold import MAX_COLUMNS

FORMAT = 1
MAX_FRAME_BYTES = 65_536
_INT64 = 2**63
_TIME_LIMIT = 2**58


class FrameError(ValueError):
    """Bytes that are no frame; the text is the reason they are counted under."""


class PaneEntries(NamedTuple):
    """Pane entries of one stream and one replica, by column; all columns are equally long.

    Attributes:
        stream: the stream id.
        span_us: length of a pane.
        incarnation: with `nonce` the replica that wrote them, which may be an earlier one of the
            frame's device.
        nonce: see `incarnation`.
        columns: one tuple of integers (None where a partial has none) for each fold column.
        keys: the group of each entry, empty text for none.
        panes_us: start of each entry's pane, a multiple of the span.
        seqs: version of each entry within its replica.
    """

    stream: int
    span_us: int
    incarnation: int
    nonce: int
    columns: tuple[tuple[int | None, ...], ...]
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
    """A device's whole entry of one variable.

    Attributes:
        number: the entry's seq: with the replica it is the entry's version.
        variable: the variable's name.
        stream: the id of the local fold that made the partial; 0 for a shared state.
        parts: the partial's integers, or one bytes object: an encoded shared state.
    """

    replica: Replica
    number: int
    variable: str
    stream: int
    parts: tuple[int | bytes | None, ...]

    kind = 2

    @property
    def version(self) -> Version:
        """The entry's version."""
        return Version.of(self.replica, self.number)

    def encode(self) -> bytes:
        """Return the frame as bytes."""
        return _pack(self, [self.variable, self.stream, self.parts])


class Report(NamedTuple):
    """What a device says of one variable: its own newest seq there, and the digest it holds."""

    variable: str
    seq: int
    digest: int


@dataclass(frozen=True, slots=True)
class BeatFrame:
    """A device's periodic word.

    Attributes:
        low_us: its promise, the low watermark; None where it cannot promise anything.
        done: its sources are finished and nothing is dirty.
        reports: one for each variable it holds.
    """

    replica: Replica
    number: int
    low_us: int | None
    done: bool
    reports: tuple[Report, ...]

    kind = 3

    def encode(self) -> bytes:
        """Return the frame as bytes."""
        return _pack(self, [self.low_us, self.done, self.reports])


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


Frame = PaneFrame | VariableFrame | BeatFrame | PresenceFrame | AckFrame | AskFrame


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


def entry_bytes(key: str, columns: int) -> int:
    """Return an upper bound for the bytes that one pane entry adds to a frame."""
    return len(key.encode()) + 5 + 9 * (3 + columns)


FRAME_OVERHEAD_BYTES = 512
"""An upper bound for a pane frame's bytes beside its blocks."""

BLOCK_OVERHEAD_BYTES = 64 + 5 * MAX_COLUMNS
"""An upper bound for a block's bytes beside its entries."""


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
    replica = _replica(incarnation, nonce, device)
    if not isinstance(body, list) or not isinstance(extras, dict):
        raise FrameError("not an envelope")
    if type(kind) is not int:
        raise FrameError("bad kind")
    return kind, replica, _integer(number, 0, SEQS), body


def _replica(incarnation: Any, nonce: Any, device: Any) -> Replica:
    try:
        replica = Replica.checked(incarnation, nonce, device)
    except ValueError:
        raise FrameError("bad replica") from None
    if not device:
        raise FrameError("bad replica")
    return replica


def _integer(value: Any, least: int = -_INT64, below: int = _INT64) -> int:
    if type(value) is not int or not least <= value < below:
        raise FrameError("integer out of range")
    return value


def _integers(values: Any, least: int = -_INT64, below: int = _INT64) -> tuple[int, ...]:
    if not isinstance(values, list) or (values and set(map(type, values)) != {int}):
        raise FrameError("not a column of integers")
    if values and not (least <= min(values) and max(values) < below):
        raise FrameError("integer out of range")
    return tuple(values)


def _part_column(values: Any) -> tuple[int | None, ...]:
    if None in _list(values):
        _integers([value for value in values if value is not None])
        return tuple(values)
    return _integers(values)


def _text(value: Any, longest: int = 255) -> str:
    if type(value) is not str or len(value.encode()) > longest:
        raise FrameError("bad text")
    return value


def _list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise FrameError("not an array")
    return value


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise FrameError("bad flag")
    return value


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
    stream, span_us, incarnation, nonce, packed_columns, packed_keys, panes, seqs = _list(packed)
    _integer(stream)
    _integer(span_us, 1, _TIME_LIMIT)
    Version.checked(incarnation, nonce, 0)
    if len(_list(packed_columns)) > MAX_COLUMNS:
        raise FrameError("too many columns")
    columns = tuple([_part_column(column) for column in packed_columns])
    indices = _restored(panes, -_TIME_LIMIT // span_us, _TIME_LIMIT // span_us)
    numbers = _restored(seqs, 0, SEQS)
    keys = _keys(packed_keys, len(indices))
    if not indices or {len(numbers), len(keys), *map(len, columns)} != {len(indices)}:
        raise FrameError("columns of unequal length")
    panes_us = tuple([index * span_us for index in indices])
    return PaneEntries(stream, span_us, incarnation, nonce, columns, keys, panes_us, numbers)


def _restored(differences: Any, least: int, below: int) -> tuple[int, ...]:
    return _integers(list(accumulate(_integers(differences))), least, below)


def _keys(packed: Any, length: int) -> tuple[str, ...]:
    if not _list(packed):
        return ("",) * length
    names, indices = packed
    known = [_text(name, MAX_FRAME_BYTES) for name in _list(names)]
    if any(character < " " for name in known for character in name):
        raise FrameError("a control character in a key")
    return tuple([known[index] for index in _integers(indices, 0, len(known))])


def _pane_frame(replica: Replica, number: int, body: list[Any]) -> PaneFrame:
    return PaneFrame(replica, number, tuple([_block(packed) for packed in body]))


def _variable_frame(replica: Replica, number: int, body: list[Any]) -> VariableFrame:
    variable, stream, parts = body
    if len(_list(parts)) > MAX_COLUMNS:
        raise FrameError("too many columns")
    if len(parts) != 1 or type(parts[0]) is not bytes:
        _part_column(parts)
    return VariableFrame(replica, number, _text(variable), _integer(stream), tuple(parts))


def _beat_frame(replica: Replica, number: int, body: list[Any]) -> BeatFrame:
    low_us, done, reports = body
    if low_us is not None:
        _integer(low_us, -_TIME_LIMIT, _TIME_LIMIT)
    known = tuple(
        [
            Report(_text(variable), _integer(seq, 0, SEQS), _integer(digest, 0, 2**64))
            for variable, seq, digest in map(_list, _list(reports))
        ]
    )
    return BeatFrame(replica, number, low_us, _flag(done), known)


def _presence_frame(replica: Replica, number: int, body: list[Any]) -> PresenceFrame:
    (online,) = body
    return PresenceFrame(replica, number, _flag(online))


def _ack_frame(replica: Replica, number: int, body: list[Any]) -> AckFrame:
    lake, numbers = body
    return AckFrame(replica, number, _text(lake), _integers(numbers, 0, SEQS))


def _ask_frame(replica: Replica, number: int, body: list[Any]) -> AskFrame:
    (variable,) = body
    return AskFrame(replica, number, _text(variable))


_READERS: dict[int, Callable[[Replica, int, list[Any]], Frame]] = {
    PaneFrame.kind: _pane_frame,
    VariableFrame.kind: _variable_frame,
    BeatFrame.kind: _beat_frame,
    PresenceFrame.kind: _presence_frame,
    AckFrame.kind: _ack_frame,
    AskFrame.kind: _ask_frame,
}
