"""How shared variables travel: changes as small retained frames, and repair from one who knows.

- A change is published as the tail of this device's trace (`states`), which the broker retains. So
  devices that are never awake together still agree.
- Beats say a digest of what each device holds. Where a peer's differs, this device sends it the
  digest of its state and is sent what it lacks, in frames of bounded size. A late joiner, or a
  device that lost its store, gets the whole state so.

Source: Paulo Sérgio Almeida, Ali Shoker, Carlos Baquero, "Delta State Replicated Data Types", JPDC
111, 2018 (delta intervals); Vitor Enes, Paulo Sérgio Almeida, Carlos Baquero, João Leitão,
"Efficient Synchronization of State-based CRDTs", ICDE 2019 (only what is new is sent on; joins of
irreducibles; digest-driven repair).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgpack

from crdts import Lattice
from crdts.wire import encode
from device_agent.agent.agent import Agent
from device_agent.agent.parts import FrameRefusedError, Handler, Part
from device_agent.agent.variables.states import SharedState, pieces
from lasp_edge.protocol.differences import Differences
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import BeatFrame, VariableReport
from lasp_edge.protocol.publication import Publication
from lasp_edge.protocol.sharing import RepairFrame, SharedFrame, SummaryFrame, packed_digest
from lasp_edge.protocol.sizes import MAX_FRAME_BYTES
from lasp_edge.timers import NEVER_US, Timer
from lasp_edge.units import SECOND_US

TIDY_US = 60 * SECOND_US
"""Microseconds between two looks at what is out of date in the trace."""
REPAIR_FRAMES = 8
"""Repair frames of one round, at most: the link's queue and the readings' frames have room."""
REPAIRS = 64
"""Peers and variables that are being repaired at once, at most: what others ask for is bounded."""


@dataclass(slots=True)
class _Repair:
    """What is left to be sent to a peer; `part` is next."""

    parts: Iterator[Lattice]
    part: Lattice | None = None


class Sharing(Part):
    """Exchanges the shared variables with the fleet.

    Args:
        agent: what all parts share.
        states: the shared variables by name.
    """

    name = "sharing"

    def __init__(self, agent: Agent, states: Mapping[str, SharedState]) -> None:
        self._agent = agent
        self._states = dict(sorted(states.items()))
        self._rounds = Timer(agent.settings.interval_us)
        self._tidying = Timer(TIDY_US)
        self._numbers: dict[type[Frame], int] = {}
        self._repairs: dict[tuple[str, str], _Repair] = {}
        device, beat_us = agent.replica.device, agent.settings.beat_us
        self._differences = Differences(device, self._states, 2 * beat_us)
        self._asks: dict[str, str] = {}

    @property
    def handlers(self) -> Mapping[type[Frame], Handler]:
        return {
            SharedFrame: self._hear,
            RepairFrame: self._hear_repair,
            SummaryFrame: self._answer,
            BeatFrame: self._differences.take_reports,
        }

    @property
    def all_sent(self) -> bool:
        """Whether all that is held was published."""
        return not any(state.trace.unsent for state in self._states.values())

    def reports(self) -> tuple[VariableReport, ...]:
        """Return the entries of shared variables in this device's beat."""
        return tuple([state.report() for state in self._states.values()])

    def _state_of(self, frame: SharedFrame | RepairFrame | SummaryFrame) -> SharedState:
        state = self._states.get(frame.variable)
        if state is None or state.stream != frame.stream:
            raise FrameRefusedError("variable: another definition")
        return state

    def _part_in(self, frame: SharedFrame | RepairFrame) -> tuple[SharedState, Lattice]:
        state = self._state_of(frame)
        part = state.state_in(frame.state)
        if part is None:
            raise FrameRefusedError("variable: another definition")
        return state, part

    def _hear(self, frame: SharedFrame, _now_us: int) -> None:
        """Join a slot of a peer, or an own one that the broker kept."""
        me, device = self._agent.replica, frame.sender.device
        if device != me.device:
            state, part = self._part_in(frame)
            state.hear(part)
            state.confirm(device, part)
        elif frame.sender != me:  # of this life, it is an echo
            state, part = self._part_in(frame)
            state.recover(part, frame.sender.incarnation)
            state.trace.hear(frame.slot, frame.state)

    def _hear_repair(self, frame: RepairFrame, _now_us: int) -> None:
        state, part = self._part_in(frame)
        before = state.digest
        state.hear(part)
        if state.digest != before:
            self._differences.take_repair(state.name)

    def _answer(self, frame: SummaryFrame, _now_us: int) -> None:
        """Prepare what a peer lacks."""
        state, to = self._state_of(frame), (frame.sender.device, frame.variable)
        if to not in self._repairs and len(self._repairs) >= REPAIRS:
            raise FrameRefusedError("summary: too many at once")
        try:
            digest = msgpack.unpackb(frame.digest, use_list=False, strict_map_key=True)
            lacking = state.whole if digest is None else state.whole.delta_against(digest)
        except (ValueError, TypeError, OverflowError, msgpack.UnpackException):
            raise FrameRefusedError("summary: not a digest") from None
        self._repairs[to] = _Repair(pieces(lacking.copy()))

    def connected(self, _now_us: int) -> None:
        self._differences.restart()
        self.succeed()
        self._rounds.restart()

    def succeed(self) -> None:
        """Publish the whole trace again, without what is out of date in it."""
        for state in self._states.values():
            state.trace.renew()

    def unsent(self, publication: Publication) -> None:
        if not publication.pane_frame:
            self._rounds.restart()

    def tick(self, now_us: int) -> None:
        """Look for what is lacking, and whether the traces may become smaller."""
        for device, name in self._differences.due(now_us):
            self._asks[name] = device
        if self._tidying.is_due(now_us):
            for state in self._states.values():
                state.trace.tidy()

    def take_notes(self) -> None:
        self.has_notes = False
        for state in self._states.values():
            state.take_notes()

    def publications(self, now_us: int) -> Iterator[Publication]:
        if self._rounds.is_due(now_us):
            for state in self._states.values():
                yield from self._trace_of(state)
            yield from self._summaries()
            yield from self._parts()
        if not self._differences:
            soon_us = min(self._rounds.next_us, self._tidying.next_us)
            self.due_us = soon_us if self._states else NEVER_US

    def _trace_of(self, state: SharedState) -> Iterator[Publication]:
        """Publish the slots that changed, and then remove those that are used no more."""
        trace, me = state.trace, self._agent.replica
        for slot in sorted(trace.unsent):
            number = self._number(SharedFrame)
            yield from self._fitting(
                SharedFrame(me, number, state.name, state.stream, slot, trace.encoded(slot))
            )
            trace.written(slot)  # the link took it, or else it asked for no more
        for slot in sorted(trace.unused):
            nothing = SharedFrame(me, 1, state.name, state.stream, slot, b"")
            yield Publication.of(nothing, self._agent.topics)._replace(payload=b"")
            trace.written(slot)

    def _summaries(self) -> Iterator[Publication]:
        """Ask for what is lacking."""
        for name, device in sorted(self._asks.items()):
            state = self._states[name]
            digest, number = packed_digest(state.whole), self._number(SummaryFrame)
            yield from self._fitting(
                SummaryFrame(self._agent.replica, number, device, name, state.stream, digest)
            )
            self._asks.pop(name)

    def _parts(self) -> Iterator[Publication]:
        """Send some of what peers lack."""
        left = REPAIR_FRAMES
        for (device, name), repair in sorted(self._repairs.items(), key=lambda item: item[0]):
            while left:
                repair.part = next(repair.parts, None) if repair.part is None else repair.part
                if repair.part is None:
                    del self._repairs[device, name]
                    break
                number, stream = self._number(RepairFrame), self._states[name].stream
                yield from self._fitting(
                    RepairFrame(
                        self._agent.replica, number, device, name, stream, encode(repair.part)
                    )
                )
                repair.part = None
                left -= 1

    def _number(self, kind: type[Frame]) -> int:
        number = self._numbers[kind] = self._numbers.get(kind, 0) + 1
        return number

    def _fitting(self, frame: SharedFrame | SummaryFrame | RepairFrame) -> Iterator[Publication]:
        """Yield a frame's publication, if it is not larger than a frame may be."""
        publication = Publication.of(frame, self._agent.topics)
        if len(publication.payload) <= MAX_FRAME_BYTES:
            yield publication
        else:
            self._agent.counters.note(f"variable {frame.variable}: too large to be published")
