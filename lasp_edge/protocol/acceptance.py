"""Acceptance: what a lander takes from the fleet's messages, what it refuses, and what it tells.

`Acceptance` is a state machine without I/O: messages go in, and out come rows, the numbers of the
pane frames that are to be acknowledged, and what was refused with the reason. Panes and entries
stay packed by column, so that a row costs no object.

What does not decode, names another device than its topic, comes from the far future or does not
fit the program is refused, and changes nothing. A pane frame of a stream that the program does not
know is not acknowledged, so its device keeps the entries until a lander knows it. Nor is one that
holds panes of a retired device above the version at which it was retired; what lies below counts
for ever, and is taken.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from crdts import Frontier, Member, Membership, Replica
from lasp_edge.folds.columns import Column, Op
from lasp_edge.folds.fold import Fold
from lasp_edge.protocol.admission import (
    FIRST_CONTACT_HELD,
    counting_entries,
    sender_refusal,
)
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.fencing import HelloFrame
from lasp_edge.protocol.frames import BeatFrame, MemberFrame, PaneFrame, VariableFrame
from lasp_edge.protocol.kinds import FRAME_KINDS, Subscriber, decode
from lasp_edge.protocol.limits import EARLIEST_PANE_US, FUTURE_US, LANDED_DEVICES
from lasp_edge.protocol.shards import key_shard
from lasp_edge.protocol.spans import WindowShape
from lasp_edge.protocol.topics import Topics
from lasp_edge.protocol.witness import Witness

UNKNOWN_STREAM = "unknown stream"
OF_A_RETIRED_DEVICE = "of a retired device"
MOST_HELLOS = 1_000
"""Hellos of one segment that are answered, at most; who gets no answer asks again."""


class FoldedStream(Protocol):
    """What must be known of partials to take them; `lasp_edge.language` has such objects."""

    @property
    def stream(self) -> int:
        """The id that travels with them."""

    @property
    def fold(self) -> Fold:
        """The fold whose partials they are."""


class PaneStream(FoldedStream, WindowShape, Protocol):
    """What must be known of a window to take its panes."""


class EntryStream(FoldedStream, Protocol):
    """What must be known of a local fold to take the entries that devices publish of it."""

    @property
    def keyed(self) -> bool:
        """Whether an entry has keys; else its only key is ""."""


class Record(NamedTuple):
    """One message as it came in.

    Attributes:
        received_us: when, on the lander's clock.
        retained: the broker had kept it: it may be old.
    """

    received_us: int
    topic: str
    retained: bool
    payload: bytes


class PaneRows(NamedTuple):
    """Pane entries of one replica of a device: one row each."""

    device: str
    block: PaneEntries
    received_us: int


class EntryRows(NamedTuple):
    """A device's entry of a variable's shard: one row a key, or one that says it is empty."""

    frame: VariableFrame
    received_us: int


class MemberRow(NamedTuple):
    """A member command that was not known yet."""

    device: str
    member: Member
    received_us: int


Rows = PaneRows | EntryRows | MemberRow


class Refusal(NamedTuple):
    """The first message of a topic that was refused for some reason, and how many there were."""

    first: Record
    records: int


@dataclass
class Accepted:
    """What came of some messages.

    Attributes:
        rows: in the order of their messages.
        promises: the newest of each device, with the time at which its version first came.
        frames: numbers of the pane frames that were taken whole, by replica: to be acknowledged.
        hellos: who is to be told what was known when it asked, by asker and subject.
        refused: by topic and reason.
    """

    rows: list[Rows] = field(default_factory=list)
    promises: Frontier = field(default_factory=Frontier)
    frames: dict[Replica, list[int]] = field(default_factory=dict)
    hellos: dict[tuple[str, str], HelloFrame] = field(default_factory=dict)
    refused: dict[tuple[str, str], Refusal] = field(default_factory=dict)


class RecordRefusedError(ValueError):
    """A message is not taken; the text is the reason under which it is counted."""


class Acceptance:
    """Turns a fleet's messages into rows, for one program.

    Args:
        local_folds: those whose entries devices publish.
        incarnations: the greatest that is known of each device.
        membership: the member commands that were taken before.

    Attributes:
        witness: what was heard of each device.
    """

    def __init__(
        self,
        windows: Iterable[PaneStream],
        local_folds: Iterable[EntryStream],
        topics: Topics,
        incarnations: Mapping[str, int] | None = None,
        membership: Membership | None = None,
    ) -> None:
        self.membership = membership or Membership()
        self.topics = topics
        self._windows = {window.stream: window for window in windows}
        self._local_folds = {local.stream: local for local in local_folds}
        self.witness = Witness(LANDED_DEVICES, incarnations)
        longest_us = max((window.size_us for window in self._windows.values()), default=0)
        self._future_us = FUTURE_US + longest_us

    def take(self, records: Iterable[Record]) -> Accepted:
        """Return what comes of these messages, in their order."""
        accepted = Accepted()
        for record in records:
            try:
                self._take(record, accepted)
            except (FrameError, RecordRefusedError) as error:
                at = (record.topic, str(error))
                first, count = accepted.refused.get(at, (record, 0))
                accepted.refused[at] = Refusal(first, count + 1)
        return accepted

    def _take(self, record: Record, accepted: Accepted) -> None:
        frame = self._frame(record)
        kind = FRAME_KINDS[frame.kind]
        known = self.witness.known(frame.about, record.received_us, self.membership)
        reason = kind.guard(frame, known)
        if reason is not None:
            if reason == FIRST_CONTACT_HELD:
                self.witness.hold(frame.about, record.received_us)
            raise RecordRefusedError(reason)
        handle: Callable[[Any, Record, Accepted], None] = getattr(self, kind.handler)
        handle(frame, record, accepted)
        if kind.guard is sender_refusal:  # what others say of a device tells nothing of its life
            self.witness.take(frame, record.received_us)

    def _frame(self, record: Record) -> Frame:
        try:
            address = self.topics.address(record.topic)
        except ValueError as error:
            raise RecordRefusedError(str(error)) from None
        frame = decode(record.payload)
        kind = FRAME_KINDS[frame.kind]
        if not kind.subscribers & Subscriber.LANDER or (kind.topic, frame.about) != address:
            raise RecordRefusedError("not the frame of its topic")
        return frame

    def take_panes(self, frame: PaneFrame, record: Record, accepted: Accepted) -> None:
        """Take the pane entries of a device that count; acknowledge the frame if all do."""
        device = frame.about
        for block in frame.blocks:
            self._check_block(block, frame.sender, record.received_us)
        counting = [counting_entries(block, device, self.membership) for block in frame.blocks]
        accepted.rows += [
            PaneRows(device, block, record.received_us) for block in counting if block.seqs
        ]
        if tuple(counting) != frame.blocks:
            raise RecordRefusedError(OF_A_RETIRED_DEVICE)
        accepted.frames.setdefault(frame.sender, []).append(frame.number)

    def take_entries(self, frame: VariableFrame, record: Record, accepted: Accepted) -> None:
        """Take a device's entry of a variable's shard."""
        local = self._local_folds.get(frame.stream)
        if local is None:
            raise RecordRefusedError(UNKNOWN_STREAM)
        _check_keys(frame, keyed=local.keyed)
        if frame.keys:
            _check_partials(local.fold, frame.columns)
        accepted.rows.append(EntryRows(frame, record.received_us))

    def take_beat(self, frame: BeatFrame, record: Record, accepted: Accepted) -> None:
        """Take a device's promise, unless it is an old one that the broker had kept."""
        if record.retained:
            return
        if frame.low_us is not None and frame.low_us > record.received_us + self._future_us:
            raise RecordRefusedError("promise from the far future")
        accepted.promises |= accepted.promises.promise(
            frame.sender, frame.number, frame.low_us, record.received_us, done=frame.done
        )

    def take_hello(self, frame: HelloFrame, record: Record, accepted: Accepted) -> None:
        """Note that somebody asks what is known of a device."""
        if not record.retained and len(accepted.hellos) < MOST_HELLOS:
            accepted.hellos[frame.sender.device, frame.about] = frame

    def take_command(self, frame: MemberFrame, record: Record, accepted: Accepted) -> None:
        """Take a member command, unless it is known."""
        command = frame.membership()
        if command <= self.membership:
            return
        self.membership |= command
        member = command.entries[frame.about]
        accepted.rows.append(MemberRow(frame.about, member, record.received_us))

    def _check_block(self, block: PaneEntries, sender: Replica, received_us: int) -> None:
        window = self._windows.get(block.stream)
        if window is None:
            raise RecordRefusedError(UNKNOWN_STREAM)
        if block.span_us != window.span_us:
            raise RecordRefusedError("panes of another length")
        if (block.incarnation, block.nonce) > sender[:2]:
            raise RecordRefusedError("panes of a later replica")
        if min(block.panes_us) < EARLIEST_PANE_US:
            raise RecordRefusedError("panes before the year 1900")
        if max(block.panes_us) > received_us + self._future_us:
            raise RecordRefusedError("panes from the far future")
        _check_partials(window.fold, block.columns)


def _check_keys(frame: VariableFrame, *, keyed: bool) -> None:
    if not keyed and (frame.shard, frame.keys or ("",)) != (0, ("",)):
        raise RecordRefusedError("keys of a variable that has no keys")
    if keyed and any(key_shard(key) != frame.shard for key in frame.keys):
        raise RecordRefusedError("a key of another shard")


def _check_partials(fold: Fold, columns: Sequence[Sequence[Any]]) -> None:
    if len(columns) != len(fold.columns):
        raise RecordRefusedError("not the columns of its stream")
    for column, values in zip(fold.columns, columns, strict=True):
        if not column.binary:
            _check_integers(column, values)
    # Integers that stand alone were checked by column. What is packed, or stands beside another
    # column, takes a look at each partial.
    by_row = any(column.binary or column.by for column in fold.columns)
    if by_row and not all(map(fold.within_limits, zip(*columns, strict=True))):
        raise RecordRefusedError("partial not in its form")


def _check_integers(column: Column, values: Sequence[Any]) -> None:
    known = values
    if None in values:
        if column.op is Op.SUM:
            raise RecordRefusedError("a total is missing")
        known = [value for value in values if value is not None]
    if not {int}.issuperset(map(type, known)):
        raise RecordRefusedError("not integers")
    if known and not (-column.limit < min(known) and max(known) < column.limit):
        raise RecordRefusedError("partial out of range")
