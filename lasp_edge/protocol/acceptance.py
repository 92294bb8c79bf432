"""Acceptance: which of the fleet's messages a lander takes or refuses, and its answers.

`Acceptance` is a state machine without I/O: messages go in, and out come rows, the answers to
devices about their panes, and what was refused with the reason. Panes and entries stay packed by
column, so that a row costs no object.

What does not decode, names another device than its topic, comes from the far future or does not fit
the program is refused, and changes nothing. Of a pane frame each entry stands for itself
(`lasp_edge.protocol.fitting`): what is taken lands and is acknowledged, and the answer names the
entries that were not taken and why, so it keeps that and sends it again. Of a retired device's
panes, those up to the version at which it was retired count for ever; what lies above is not taken.

A promise is made to one sink and store (`lasp_edge.protocol.sinks`): of a beat, a lander takes the
row of its own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random
from typing import Any, Protocol

from crdts import Frontier, Membership, Replica
from crdts.frontier import BOTTOM_US
from lasp_edge.protocol.accepted import (
    Accepted,
    Begun,
    CommandRows,
    EntryRows,
    PaneRows,
    Record,
    Refusal,
    Rows,
    SharedNews,
)
from lasp_edge.protocol.acks import Answer
from lasp_edge.protocol.admission import HELD, sender_refusal
from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.commands import CommandFrame, CommandLog, command_refusal
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.fencing import HelloFrame
from lasp_edge.protocol.fitting import (
    ControlledStreams,
    FoldedStream,
    PaneStream,
    PartialsRefusedError,
    check_partials,
    sort_out,
)
from lasp_edge.protocol.frames import BeatFrame, PaneFrame, PresenceFrame, VariableFrame
from lasp_edge.protocol.kinds import FRAME_KINDS, Subscriber, decode
from lasp_edge.protocol.limits import FUTURE_US, LANDED_DEVICES, LATEST_PANE_US
from lasp_edge.protocol.lives import Lives
from lasp_edge.protocol.overheard import Overheard
from lasp_edge.protocol.owed import owed_until
from lasp_edge.protocol.repeating import Repeating
from lasp_edge.protocol.shards import key_shard
from lasp_edge.protocol.sharing import RepairFrame, SharedFrame
from lasp_edge.protocol.sinks import UNKNOWN_STORE, store_tag
from lasp_edge.protocol.topics import Topics
from lasp_edge.protocol.witness import Witness
from lasp_edge.units import SECOND_US

__all__ = [
    "Acceptance",
    "Accepted",
    "Begun",
    "CommandRows",
    "EntryRows",
    "EntryStream",
    "PaneRows",
    "Record",
    "RecordRefusedError",
    "Refusal",
    "Rows",
    "SharedNews",
]

UNKNOWN_STREAM = "unknown stream"
OF_AN_EARLIER_LIFE = "of an earlier life"
MOST_HELLOS = 1_000
"""Hellos of one segment that are answered, at most; who gets no answer asks again."""


class EntryStream(FoldedStream, Protocol):
    """What must be known of a local fold to take the entries that devices publish of it."""

    @property
    def keyed(self) -> bool:
        """Whether an entry has keys; else its only key is ""."""


class RecordRefusedError(ValueError):
    """A message is not taken; the text is the reason under which it is counted."""


class Acceptance:
    """Turns a fleet's messages into rows, for one program.

    Args:
        local_folds: those whose entries devices publish.
        incarnations: the greatest that is known of each device.
        membership: which devices count, by the commands that were taken before.
        overheard: the shared variables; None where the program has no such variable.
        control: the windows with parameters; None where no operator can change a window.
        is_signed: frames are signed, so nobody else can repeat an operator's command.

    Attributes:
        sink: for whom it accepts: the sink's name, and the id of its store.
        topics: where the fleet's messages travel.
        witness: what was heard of each device.
        overheard: what was heard of shared variables.
        held_by: device -> its source that is silent and holds its promise; "" for none.
        ahead_us: device -> how far its clock is ahead of this one's, where it trusts it.
        reached_us: device -> the furthest that its last beat since the connection promised, to
            whichever sink.
        away: the devices whose connection has ended, by their last presence.
        elsewhere: the devices that deliver to another store of this name. Those that this one
            follows from are `ancestors`, by their tags, and do not count.
        lacks: whether a commit that a device repeats is not in the store (`SinkLow.commit`).
        decode: makes a frame of bytes; a simulation remembers the frames that many receive.
    """

    decode = staticmethod(decode)

    def __init__(  # noqa: PLR0913 - what a sink knows at its start
        self,
        windows: Iterable[PaneStream],
        local_folds: Iterable[EntryStream],
        topics: Topics,
        sink: tuple[str, str],
        incarnations: Mapping[str, int] | None = None,
        membership: Membership | None = None,
        *,
        overheard: Overheard | None = None,
        control: ControlledStreams | None = None,
        is_signed: bool = False,
    ) -> None:
        self.control = control
        self.membership = membership or Membership()
        self.overheard = overheard or Overheard({})
        self.held_by: dict[str, str] = {}
        self.ahead_us: dict[str, int] = {}
        self.reached_us: dict[str, int] = {}
        self.away: set[str] = set()
        self.elsewhere: set[str] = set()
        self.ancestors: frozenset[int] = frozenset()
        self._unsent: dict[str, Begun] = {}
        self.lacks: Callable[[str, int], bool] = lambda _device, _commit: False
        self._is_signed = is_signed
        self.topics = topics
        self.sink = sink
        self._windows = {window.stream: window for window in windows}
        self._local_folds = {local.stream: local for local in local_folds}
        self.witness = Witness(LANDED_DEVICES, incarnations, keeps=True)
        self._lives = Lives()
        self._repeating, self._repeated = Repeating(Random(sink[1])), 0
        longest_us = max((window.size_us for window in self._windows.values()), default=0)
        self._future_us = FUTURE_US + longest_us

    def take(self, records: Iterable[Record]) -> Accepted:
        """Return what comes of these messages, in their order."""
        accepted = Accepted()
        for record in records:
            kept = len(accepted.rows)
            try:
                self._take(record, accepted)
            except (FrameError, RecordRefusedError, PartialsRefusedError) as error:
                accepted.refuse(record, str(error))
            except Exception as error:  # noqa: BLE001 - no message may end a lander
                del accepted.rows[kept:]
                accepted.refuse(record, f"broken: {type(error).__name__}")
        return accepted

    def _take(self, record: Record, accepted: Accepted) -> None:
        if not record.payload and self._is_slot(record.topic):
            return  # a device needs it no more: what it held is in another slot
        frame = self._frame(record)
        kind = FRAME_KINDS[frame.kind]
        known = self.witness.known(frame.about, record.received_us, nonce=frame.sender.nonce)
        reason = kind.guard(frame, known)
        if reason is not None:
            if reason in HELD and not record.retained:
                self.witness.hold(frame.sender, record.received_us)
            raise RecordRefusedError(reason)
        handle: Callable[[Any, Record, Accepted], None] = getattr(self, kind.handler)
        handle(frame, record, accepted)
        # What others say of a device tells nothing of its life, nor does a farewell in its name.
        tells = kind.guard is sender_refusal and type(frame) is not PresenceFrame
        if tells and self._is_heard(frame.sender, record):
            self.witness.take(frame, record.received_us)

    def _is_heard(self, sender: Replica, record: Record) -> bool:
        """Note that a life speaks; return whether no later one has put an end to that."""
        return self._lives.delivers(sender, record.received_us, self.witness.of(sender.device))

    def _frame(self, record: Record) -> Frame:
        try:
            address = self.topics.address(record.topic)
        except ValueError as error:
            raise RecordRefusedError(str(error)) from None
        frame = self.decode(record.payload)
        kind = FRAME_KINDS[frame.kind]
        if not kind.subscribers & Subscriber.LANDER or (kind.topic, frame.about) != address:
            raise RecordRefusedError("not the frame of its topic")
        return frame

    def _is_slot(self, topic: str) -> bool:
        try:
            return self.topics.address(topic).kind == FRAME_KINDS[SharedFrame.kind].topic
        except ValueError:
            return False

    def take_panes(self, frame: PaneFrame, record: Record, accepted: Accepted) -> None:
        """Take the pane entries of a device that fit and count; answer for each of them."""
        if not self._is_heard(frame.sender, record):
            accepted.overtaken.add(frame.about)
            raise RecordRefusedError(OF_AN_EARLIER_LIFE)
        device, answer = frame.about, accepted.answers.setdefault(frame.about, Answer())
        latest_us = record.received_us + self._future_us
        if frame.begun:
            accepted.begun_before[device] = self._begun(device, frame.begun)
        for block in frame.blocks:
            window = self._windows.get(block.stream)
            if window is None and self.control is not None:
                window = self.control.stream(block.stream)
            taken, untaken = sort_out(block, window, frame.sender, latest_us, self.membership)
            if taken is not None:
                accepted.rows.append(PaneRows(device, taken, record.received_us))
                answer.take(block.incarnation, block.nonce, taken.seqs)
            for reason, text, seqs in untaken:
                answer.refuse(reason, block.incarnation, block.nonce, seqs)
                accepted.refuse(record, text)

    def take_entries(self, frame: VariableFrame, record: Record, accepted: Accepted) -> None:
        """Take a device's entry of a variable's shard."""
        local = self._local_folds.get(frame.stream)
        if local is None:
            raise RecordRefusedError(UNKNOWN_STREAM)
        _check_keys(frame, keyed=local.keyed)
        if frame.keys:
            check_partials(local.fold, frame.columns)
        accepted.rows.append(EntryRows(frame, record.received_us))
        accepted.known.add(frame.about)

    def take_beat(self, frame: BeatFrame, record: Record, accepted: Accepted) -> None:
        """Take a device's promise to this sink, unless the broker had kept it: it may be old."""
        if record.retained:
            return
        self.overheard.compare(frame, record.received_us)
        self._note_beat(frame, record.received_us)
        if self.control is not None and frame.control != self.control.control:
            accepted.heard[frame.about] = False  # a promise speaks of one log
            return
        low = frame.low_of(*self.sink)
        if low is not None and low.store and self.lacks(frame.about, low.commit):
            accepted.heard[frame.about] = False  # a promise speaks of what has landed
            accepted.lost = max(accepted.lost, low.commit)
            return
        accepted.heard[frame.about] = bool(low and low.store)
        if low is None:
            return  # it promises to others, until it knows this sink
        if low.low_us is not None and low.low_us > record.received_us + self._future_us:
            raise RecordRefusedError("promise from the far future")
        done = frame.done or low.sink in frame.done_for
        accepted.promises |= accepted.promises.promise(
            frame.sender, frame.number, low.low_us, record.received_us, done=done
        )
        if accepted.promises.entries[frame.about].version == (*frame.sender[:2], frame.number):
            accepted.begun[frame.about] = self._begun(frame.about, frame.begun)

    def _note_beat(self, frame: BeatFrame, now_us: int) -> None:
        """Note a beat's fields beside its promise: what holds it, its clock, and other sinks."""
        device, (name, store) = frame.about, self.sink
        self.held_by[device] = frame.held_by
        self.away.discard(device)
        self.ahead_us.pop(device, None)
        if frame.clock_s is not None:
            self.ahead_us[device] = frame.clock_s * SECOND_US - now_us
        lows_us = [low.low_us for low in frame.lows if low.low_us is not None]
        reached_us = max(lows_us, default=BOTTOM_US)
        if reached_us <= now_us + self._future_us:
            self.reached_us[device] = reached_us
        known = {UNKNOWN_STORE, store_tag(store), *self.ancestors}
        if any(low.sink == name and low.store not in known for low in frame.lows):
            _add(self.elsewhere, device)
        else:
            self.elsewhere.discard(device)

    def _begun(self, device: str, stated: Begun) -> Begun:
        """Return from when on windows have a device's readings; never, where it sends none."""
        return (*stated, *self._unsent.get(device, ()))

    def take_shared(self, frame: SharedFrame, record: Record, accepted: Accepted) -> None:
        """Take a part of a shared variable's state, as far as it is news."""
        self._take_part(frame, record, accepted)
        accepted.known.add(frame.about)

    def take_repair(self, frame: RepairFrame, record: Record, accepted: Accepted) -> None:
        """Take what a device was sent because it lacked it: the lake may lack it, too."""
        self._take_part(frame, record, accepted)

    def _take_part(
        self, frame: SharedFrame | RepairFrame, record: Record, accepted: Accepted
    ) -> None:
        news = self.overheard.take(frame)
        if news is not None:
            at = (frame.variable, frame.stream, news, record.received_us)
            accepted.shared.append(SharedNews(*at))

    def take_presence(self, frame: PresenceFrame, record: Record, accepted: Accepted) -> None:  # noqa: ARG002
        """Note that a device is there: it sends few beats on its own, and is to be greeted.

        Its program may lack windows of this one: then their rows lack what it has read.
        """
        device = frame.about
        if not frame.online:
            _add(self.away, device)
            return
        self.away.discard(device)
        accepted.known.add(device)
        unsent = sorted(self._windows.keys() - {*frame.streams}) if frame.streams else ()
        if unsent and (device in self._unsent or len(self._unsent) < LANDED_DEVICES):
            self._unsent[device] = tuple((stream, LATEST_PANE_US) for stream in unsent)
            accepted.unsent[device] = self._unsent[device]
        else:
            self._unsent.pop(device, None)
            accepted.unsent.pop(device, None)

    def connected(self, now_us: int) -> None:
        """Note a new connection: the broker may have lost the commands that operators gave."""
        self._repeating.begin(self.commands.subjects, now_us)
        self.overheard.connected()
        self.reached_us.clear()

    def repeated(self, sender: Replica, now_us: int) -> Iterator[CommandFrame]:
        """Yield the commands that were not received for some time, for everybody to receive."""
        for subject in [] if self._is_signed else self._repeating.due(now_us):
            self._repeated += 1
            yield CommandFrame.of(sender, self._repeated, subject, self.commands)

    @property
    def commands(self) -> CommandLog:
        """All commands of operators that were taken."""
        return CommandLog(self.membership, None if self.control is None else self.control.log)

    def take_hello(self, frame: HelloFrame, record: Record, accepted: Accepted) -> None:
        """Note that somebody asks what is known of a device.

        A device that asks about itself gets all that has landed. So from then on, nothing of its
        earlier lives may land any more.
        """
        if record.retained:
            return
        if frame.about == frame.sender.device:
            now_us, before = record.received_us, self.witness.of(frame.about)
            nonce = frame.sender.nonce
            refusal = sender_refusal(frame, self.witness.known(frame.about, now_us, nonce=nonce))
            if refusal is None and self._lives.announces(frame.sender, now_us, before):
                self.witness.learn(frame.sender)
        if len(accepted.hellos) < MOST_HELLOS:
            accepted.hellos[frame.sender.device, frame.about] = frame

    def take_command(self, frame: CommandFrame, record: Record, accepted: Accepted) -> None:
        """Take an operator's command, unless it is known."""
        now_us, new = record.received_us, frame.commands()
        parameters = () if self.control is None else self.control.parameters
        incarnation = self.witness.known(frame.about, now_us).incarnation
        reason = command_refusal(frame, self.commands, parameters, incarnation)
        if reason is not None:
            raise RecordRefusedError(reason)
        if not new <= self.commands:
            self.membership |= new.membership
            if self.control is not None and self.control.hear(new.control):
                accepted.promises, accepted.begun = Frontier(), {}  # of the log before
            owed_us = owed_until(new.membership, now_us, self.reached_us)
            accepted.rows.append(CommandRows(new, now_us, owed_us))
            accepted.owed_us |= owed_us
            accepted.commands |= new
        is_newest = new == self.commands.about(frame.subject)
        self._repeating.hear(frame.subject, now_us, is_newest=is_newest)


def _check_keys(frame: VariableFrame, *, keyed: bool) -> None:
    if not keyed and (frame.shard, frame.keys or ("",)) != (0, ("",)):
        raise RecordRefusedError("keys of a variable that has no keys")
    if keyed and any(key_shard(key) != frame.shard for key in frame.keys):
        raise RecordRefusedError("a key of another shard")


def _add(devices: set[str], device: str) -> None:
    """Remember a device, if there is room: a stranger may name thousands."""
    if len(devices) < LANDED_DEVICES:
        devices.add(device)
