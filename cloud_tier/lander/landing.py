"""Landing: a log segment becomes rows of `landing`, in one commit that happens once.

The commit carries an app transaction (lander, segment number), so a segment that was landed before
a crash is recognised and not landed again. Data, promises and the tick are in the same commit:
whoever reads a promise reads what it speaks of.

What does not decode, names another device than its topic, comes from the far future or does not
fit the program goes to `rejects` with the reason, and neither stops the lander nor moves anything.
A pane frame of a stream that the program does not know is not acknowledged, so its device keeps
the entries until a lander knows it. Nor is one that holds panes of a retired device that lie above
the version at which it was retired; what lies below counts for ever, and is taken.
"""

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, Final, NamedTuple

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from cloud_tier.lake.query import rows
from cloud_tier.lake.tables import (
    ABSENT,
    MEMBER,
    PANE,
    PROMISE,
    REJECTS,
    TICK,
    VARIABLE,
    Lake,
    arrow_schema,
    landed_schema,
)
from cloud_tier.lander.segments import Record, Segment
from crdts import Member, Membership, Replica, Version
from lasp_edge.folds.columns import Column, Op
from lasp_edge.folds.fold import Fold
from lasp_edge.language.plan import Plan
from lasp_edge.protocol import kinds
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import BeatFrame, MemberFrame, PaneFrame, VariableFrame
from lasp_edge.protocol.kinds import FRAME_KINDS, decode
from lasp_edge.protocol.lake_columns import LANDED
from lasp_edge.protocol.limits import EARLIEST_PANE_US
from lasp_edge.protocol.shards import key_shard
from lasp_edge.protocol.topics import Topics

FAR_US: Final = 86_400_000_000
"""What lies further ahead of the lander's clock, and beyond a window, comes from no sane one."""

FAR_INCARNATIONS: Final = 1 << 10
"""A device does not restart more often between two frames that are heard."""

FAR_CONTROLS: Final = 1 << 10
MOST_MEMBERS: Final = 10_000
"""A stranger's word on a member must cost no more; the agents have the same limits, and so hold the
same membership."""

KEPT_BYTES: Final = 4096
UNKNOWN_STREAM: Final = "unknown stream"
OF_A_RETIRED_DEVICE: Final = "of a retired device"


class Refused(ValueError):  # noqa: N818 - what happens to the frame
    """A frame is not taken; the text is the reason it is counted under."""


class Stream(NamedTuple):
    """How a stream's partials become columns; `span_us` is 0 for a variable."""

    fold: Fold
    span_us: int
    keyed: bool


@dataclass
class Taken:
    """What a segment holds, by column, and what was not taken.

    Attributes:
        columns: rows of `landing`.
        frames: numbers of the pane frames in it, by replica: to be acknowledged.
        promises: the newest of each device, with the time at which its version first came.
        rejects: the first record, and the number, of each topic and reason.
    """

    columns: dict[str, list[Any]]
    frames: dict[Replica, list[int]] = field(default_factory=dict)
    promises: dict[str, tuple[Version, int, BeatFrame]] = field(default_factory=dict)
    rejects: dict[tuple[str, str], tuple[Record, int]] = field(default_factory=dict)


class Reader:
    """Turns records into rows, for one program.

    Args:
        plan: of the program whose streams are taken.
        topics: the fleet's.
        incarnations: the greatest incarnation that was heard of each device.
        membership: who was retired.
    """

    def __init__(
        self,
        plan: Plan,
        topics: Topics,
        incarnations: Mapping[str, int] | None = None,
        membership: Membership | None = None,
    ) -> None:
        self._topics = topics
        self._columns = plan.columns
        self._incarnations = dict(incarnations or {})
        self._membership = membership or Membership()
        self._streams = {
            window.stream: Stream(window.fold, window.span_us, window.keyed)
            for window in plan.windows.values()
        }
        self._variables = {
            local.stream: Stream(local.fold, 0, local.keyed)
            for local in plan.published_folds.values()
        }
        longest_us = max((window.size_us for window in plan.windows.values()), default=0)
        self._ahead_us = FAR_US + longest_us

    def take(self, segment: Segment) -> Taken:
        """Return the rows of a segment."""
        taken = Taken({name: [] for name in (*LANDED, *self._columns)})
        for record in segment.records:
            try:
                self._take_frame(taken, record, self._frame(record))
            except (FrameError, Refused) as error:
                at = (record.topic, str(error))
                first, count = taken.rejects.get(at, (record, 0))
                taken.rejects[at] = (first, count + 1)
        for device, (version, heard_us, beat) in taken.promises.items():
            said = {"low_us": beat.low_us, "done": beat.done, "received_us": heard_us}
            self._extend(taken, 1, kind=PROMISE, device=device, **version._asdict(), **said)
        return taken

    def add_tick(self, taken: Taken, lander: str, segment: Segment) -> None:
        """Add the lander's clock at the end of a segment to its rows."""
        now_us, since_us = segment.clock
        clock = {"now_us": now_us, "since_us": since_us, "received_us": now_us}
        self._extend(taken, 1, kind=TICK, lander=lander, seq=segment.number, **clock)

    def table(self, taken: Taken) -> pa.Table:
        """Return the rows as Arrow."""
        return pa.table(taken.columns, schema=landed_schema(self._columns))

    def _frame(self, record: Record) -> Frame:
        try:
            address = self._topics.address(record.topic)
        except ValueError as error:
            raise Refused(str(error)) from None
        frame = decode(record.payload)
        row = FRAME_KINDS[frame.kind]
        lands = bool(row.subscribers & kinds.Subscriber.LANDER)
        if not lands or (row.topic, frame.about) != address:
            raise Refused("not the frame of its topic")
        known = self._incarnations.get(frame.about)
        life = frame.version if isinstance(frame, MemberFrame) else frame.sender
        if known is not None and life.incarnation > known + FAR_INCARNATIONS:
            raise Refused("incarnation far ahead of the known one")
        return frame

    def _take_frame(self, taken: Taken, record: Record, frame: Frame) -> None:
        if isinstance(frame, PaneFrame):
            self._take_panes(taken, record, frame)
        elif isinstance(frame, VariableFrame):
            self._take_variable(taken, record, frame)
        elif isinstance(frame, BeatFrame) and not record.retained:
            self._take_promise(taken, record, frame)
        elif isinstance(frame, MemberFrame):
            self._take_member(taken, record, frame)
            return  # not the device's own word, so it says nothing of its incarnation
        device, incarnation = frame.sender.device, frame.sender.incarnation
        self._incarnations[device] = max(incarnation, self._incarnations.get(device, 0))

    def _take_panes(self, taken: Taken, record: Record, frame: PaneFrame) -> None:
        for block in frame.blocks:
            self._check_block(block, frame.sender, record.received_us)
        counting = [self._that_counts(frame.sender.device, block) for block in frame.blocks]
        for block in counting:
            parts = self._streams[block.stream].fold.columns_named
            self._extend(
                taken,
                len(block.seqs),
                kind=PANE,
                stream=block.stream,
                key=block.keys,
                pane_us=block.panes_us,
                device=frame.sender.device,
                incarnation=block.incarnation,
                nonce=block.nonce,
                seq=block.seqs,
                received_us=record.received_us,
                **dict(zip(parts, block.columns, strict=True)),
            )
        if tuple(counting) != frame.blocks:
            raise Refused(OF_A_RETIRED_DEVICE)
        taken.frames.setdefault(frame.sender, []).append(frame.number)

    def _that_counts(self, device: str, block: PaneEntries) -> PaneEntries:
        """Return the entries that count under the membership: all but of a retired device."""
        member = self._membership.entries.get(device)
        if member is None or not member.retired:
            return block
        life = (block.incarnation, block.nonce)
        counts = [(*life, seq) <= member.version for seq in block.seqs]
        return block._replace(
            columns=tuple(tuple(compress(column, counts)) for column in block.columns),
            keys=tuple(compress(block.keys, counts)),
            panes_us=tuple(compress(block.panes_us, counts)),
            seqs=tuple(compress(block.seqs, counts)),
        )

    def _check_block(self, block: PaneEntries, replica: Replica, received_us: int) -> None:
        stream = self._streams.get(block.stream)
        if stream is None:
            raise Refused(UNKNOWN_STREAM)
        if block.span_us != stream.span_us:
            raise Refused("panes of another length")
        if (block.incarnation, block.nonce) > replica[:2]:
            raise Refused("panes of a later replica")
        if min(block.panes_us) < EARLIEST_PANE_US:
            raise Refused("panes before the year 1900")
        if max(block.panes_us) > received_us + self._ahead_us:
            raise Refused("panes from the far future")
        _check_partials(stream.fold, block.columns)

    def _take_variable(self, taken: Taken, record: Record, frame: VariableFrame) -> None:
        if not frame.stream:
            return  # a shared state: the devices join it among themselves
        stream = self._variables.get(frame.stream)
        if stream is None:
            raise Refused(UNKNOWN_STREAM)
        _check_keys(stream, frame)
        entry = {
            "kind": VARIABLE,
            "stream": frame.stream,
            "shard": frame.shard,
            "device": frame.sender.device,
            "received_us": record.received_us,
            **frame.version._asdict(),
        }
        if not frame.keys:
            self._extend(taken, 1, **entry, key=None, changed=frame.number)
            return
        _check_partials(stream.fold, frame.columns)
        parts = dict(zip(stream.fold.columns_named, frame.columns, strict=True))
        count = len(frame.keys)
        self._extend(taken, count, **entry, key=frame.keys, changed=frame.seqs, **parts)

    def _take_member(self, taken: Taken, record: Record, frame: MemberFrame) -> None:
        word, members = frame.membership(), self._membership.entries
        known = members.get(frame.about)
        if frame.control > (known.control if known else 0) + FAR_CONTROLS:
            raise Refused("control far ahead of the known one")
        if known is None and len(members) >= MOST_MEMBERS:
            raise Refused("too many members")
        if word <= self._membership:
            return  # retained, and heard before
        self._membership |= word
        self._extend(
            taken,
            1,
            kind=MEMBER,
            device=frame.about,
            control=frame.control,
            retired=frame.retired,
            received_us=record.received_us,
            **frame.version._asdict(),
        )

    def _take_promise(self, taken: Taken, record: Record, frame: BeatFrame) -> None:
        if frame.low_us is not None and frame.low_us > record.received_us + self._ahead_us:
            raise Refused("promise from the far future")
        version = Version.of(frame.sender, frame.number)
        device = frame.sender.device
        # Of equal versions the first one that came: a repeat is no sign of life.
        if device not in taken.promises or taken.promises[device][0] < version:
            taken.promises[device] = (version, record.received_us, frame)

    def _extend(self, taken: Taken, rows: int, **columns: Any) -> None:
        for name, column in taken.columns.items():
            value = columns.get(name, ABSENT.get(name))
            column.extend(value if isinstance(value, tuple) else [value] * rows)


class Landing:
    """Writes segments to a lake's tables, each once.

    Args:
        lake: its tables exist.
        lander: the id under which segments are known to have landed.
    """

    def __init__(self, lake: Lake, lander: str) -> None:
        self._lake = lake
        self._landing = lake.table(lake.landing)
        self._rejects = lake.table(lake.rejects)
        self._lander = lander
        self.lake_id = str(self._landing.metadata().id)

    @property
    def landed(self) -> int:
        """The number of the last segment that has landed, 0 before the first."""
        self._landing.update_incremental()
        return self._landing.transaction_version(self._lander) or 0

    def land(self, number: int, table: pa.Table, taken: Taken) -> None:
        """Commit a segment's rows, after what was rejected in it."""
        if taken.rejects:
            self._reject(number, taken)
        self._write(self._landing, table, number)

    def incarnations(self) -> dict[str, int]:
        """Return the greatest incarnation that was heard of each device."""
        query = (
            "SELECT device, max(incarnation) AS incarnation FROM source "  # noqa: S608 - our word
            f"WHERE kind = '{PROMISE}' GROUP BY device"
        )
        found = rows(self._lake, self._lake.landing, query)
        return {row["device"]: row["incarnation"] for row in found}

    def membership(self) -> Membership:
        """Return who was retired, as far as it has landed."""
        query = (
            "SELECT DISTINCT device, control, retired, incarnation, nonce, seq FROM source "  # noqa: S608 - our word
            f"WHERE kind = '{MEMBER}'"
        )
        found = Membership()
        for row in rows(self._lake, self._lake.landing, query):
            version = Version(row["incarnation"], row["nonce"], row["seq"])
            found |= Membership({row["device"]: Member(row["control"], row["retired"], version)})
        return found

    def _reject(self, number: int, taken: Taken) -> None:
        self._rejects.update_incremental()
        if (self._rejects.transaction_version(self._lander) or 0) >= number:
            return
        rejected = [
            (record.received_us, topic, reason, frames, record.payload[:KEPT_BYTES])
            for (topic, reason), (record, frames) in taken.rejects.items()
        ]
        columns = dict(zip(REJECTS, map(list, zip(*rejected, strict=True)), strict=True))
        self._write(self._rejects, pa.table(columns, schema=arrow_schema(REJECTS)), number)

    def _write(self, table: DeltaTable, added: pa.Table, number: int) -> None:
        once = CommitProperties(app_transactions=[Transaction(self._lander, number)])
        # Merging schemas lets a lander go on whose program lacks a column that the lake has.
        write_deltalake(table, added, mode="append", schema_mode="merge", commit_properties=once)


@contextmanager
def collector_off() -> Iterator[None]:
    """Decode without the garbage collector: it would walk every new tuple, and none is garbage."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _check_keys(stream: Stream, frame: VariableFrame) -> None:
    if not stream.keyed and (frame.shard, frame.keys or ("",)) != (0, ("",)):
        raise Refused("keys of a variable that has none")
    if stream.keyed and any(key_shard(key) != frame.shard for key in frame.keys):
        raise Refused("a key of another shard")


def _check_partials(fold: Fold, columns: Sequence[Sequence[Any]]) -> None:
    if len(columns) != len(fold.columns):
        raise Refused("not the columns of its stream")
    for column, values in zip(fold.columns, columns, strict=True):
        if not column.binary:
            _check_integers(column, values)
    # Integers that stand alone were checked by column. What is packed, or stands beside another
    # column, takes a look at each partial.
    by_row = any(column.binary or column.by for column in fold.columns)
    if by_row and not all(map(fold.within_limits, zip(*columns, strict=True))):
        raise Refused("partial not in its form")


def _check_integers(column: Column, values: Sequence[Any]) -> None:
    known = [value for value in values if value is not None]
    if len(known) != len(values) and column.op is Op.SUM:
        raise Refused("a total is missing")
    if not all(type(value) is int for value in known):
        raise Refused("not integers")
    if known and not (-column.limit < min(known) and max(known) < column.limit):
        raise Refused("partial out of range")
