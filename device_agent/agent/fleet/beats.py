"""Beats and presence: the periodic reports of a device about itself.

A beat reports each variable that the device holds, and up to when its readings are complete. It is
sent when it has something new, as often as the interval allows; for whoever has come: a device, a
lander, an operator; and else seldom, so that the device counts as connected. A promise is new when
it has passed the end of a pane: no window closes before. Presence is retained: the device
is connected; the broker's Last Will is that it is not any more.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, Protocol

from crdts import Replica
from device_agent.agent.agent import Agent
from device_agent.agent.allowance import Allowance
from device_agent.agent.fleet.commands import OperatorCommands
from device_agent.agent.fleet.exchange import Exchange
from device_agent.agent.fleet.fence import Fence
from device_agent.agent.fleet.programs import bounds_of, streams_of, units_of
from device_agent.agent.intake.intake import Intake
from device_agent.agent.panes.delivery import PaneDelivery
from device_agent.agent.parts import Handler, Part
from lasp_edge.language.plan import is_apart
from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.fencing import SourceHigh
from lasp_edge.protocol.frames import (
    EVERY_WINDOW,
    LONGEST_SOURCE,
    AskFrame,
    BeatFrame,
    PresenceFrame,
    VariableFrame,
    VariableReport,
)
from lasp_edge.protocol.publication import Publication
from lasp_edge.protocol.sharing import RepairFrame, SharedFrame
from lasp_edge.protocol.sinks import SinkLow
from lasp_edge.release import RELEASE
from lasp_edge.timers import ALWAYS_US, NEVER_US, Timer, is_time
from lasp_edge.units import SECOND_US

BURST, RESERVE = 4, 2
"""Beats that may follow each other; two of them are for the time when nothing more is read."""
LEAST_US = 2 * SECOND_US
"""Microseconds between two beats, at least: as often as a fleet at rest agrees on something new."""
MOST_MET = 1_000
"""Others that are remembered as known: some 100 kB."""
ROWS_US = 10 * SECOND_US
"""Microseconds by which a promise passes rows of results before it is new: each is a pane alone."""
REST_US = 5 * SECOND_US
"""Microseconds without a reading, or a change by a peer, after which the fleet is at rest."""


class _Content(NamedTuple):
    """The part of a beat that makes it new whenever it changes: all but its lows and its clock."""

    sender: Replica
    done: bool
    done_for: frozenset[str]
    reports: tuple[VariableReport, ...]
    seq: int
    highs: tuple[SourceHigh, ...]
    control: int
    begun: tuple[tuple[int, int], ...]


class OrderedAnswers(Protocol):
    """What a device answers at events in order."""

    def has_places(self, least_us: int, end_us: int) -> bool:
        """Return whether there is an event in order with least_us <= time < end_us.

        Where devices share nothing else, a promise is new if it has passed one.
        """

    def is_owed(self, beats: int, before_us: int | None, low_us: int | None) -> bool:
        """Return whether a promise is owed again since an answer left.

        Args:
            beats: how many beats there were.
            before_us: the low watermark of the last one.
            low_us: what the next one would promise.
        """


class Beats(Part):
    """Publishes this device's presence and beats.

    Args:
        agent: what all parts share.
        exchange: the variables that a beat reports, and when a beat is due.
        intake: tells how far the sources are.
        panes: tells what has landed.
        fence: tells how far the sources have come, for all who may be asked one day.
        commands: knows the log of parameters.
        waits: returns whether panes are still to be built.
        answers: to events in order; None where no scan has local events.
    """

    name = "beats"

    def __init__(
        self,
        agent: Agent,
        exchange: Exchange,
        intake: Intake,
        panes: PaneDelivery,
        fence: Fence,
        commands: OperatorCommands,
        waits: Callable[[], bool],
        answers: OrderedAnswers | None = None,
    ) -> None:
        self._agent = agent
        self._exchange = exchange
        self._intake = intake
        self._panes = panes
        self._fence, self._commands = fence, commands
        self._waits, self._answers = waits, answers
        self._passes = answers.has_places if answers and is_apart(agent.plan) else None
        self._alarms = 0
        self._last: tuple[_Content, tuple[SinkLow, ...]] | None = None
        self._announced = False
        self._presences = 0
        settings = agent.settings
        # Half an interval after the entries were published: then all devices hold the same.
        self._allowance = Allowance(
            settings.beat_us,
            LEAST_US,
            burst=BURST,
            reserve=RESERVE,
            offset_us=settings.interval_us // 2,
        )
        self._keep_alive = Timer(settings.keep_alive_us)
        self._least = Timer(min(LEAST_US, settings.beat_us))
        spans_us = {window.span_us for window in agent.plan.windows.values()}
        self._spans_us = sorted(spans_us | ({ROWS_US} if agent.plan.stream_results else set()))
        self._moved_us = 0
        self._at_rest = False
        self._met: dict[str, int] = {}
        self._is_asked = False

    @property
    def handlers(self) -> Mapping[type[Frame], Handler]:
        return {
            PresenceFrame: self._hear_presence,
            AskFrame: self._hear_ask,
            AckFrame: self._meet,
            VariableFrame: self._note_change,
            SharedFrame: self._note_change,
            RepairFrame: self._note_change,
        }

    def _note_change(self, frame: Frame, now_us: int) -> None:
        """Note that a peer changed what is held here."""
        if frame.sender.device != self._agent.replica.device:
            self._moved_us = now_us

    def _hear_ask(self, frame: AskFrame, _now_us: int) -> None:
        self._is_asked |= not frame.variable

    def _meet(self, frame: Frame, _now_us: int) -> None:
        """Have a beat sent for somebody who has received none of this device yet."""
        other = frame.sender
        if self._met.get(other.device) != other.nonce:
            if len(self._met) >= MOST_MET:
                self._met.clear()
            self._met[other.device] = other.nonce
            self._is_asked = True

    def _hear_presence(self, frame: PresenceFrame, now_us: int) -> None:
        """Publish that this device is connected where a late Last Will denies it, of any life."""
        is_own = frame.sender.device == self._agent.replica.device
        if not is_own and frame.online:
            self._meet(frame, now_us)
        if is_own and not frame.online:
            self.connected(now_us)

    def connected(self, _now_us: int) -> None:
        self._last, self._announced = None, False

    def note_alarms(self, count: int) -> None:
        """Have the presence published again where it states another number of alarms."""
        if count != self._alarms:
            self._alarms, self._announced, self.due_us = count, False, ALWAYS_US

    def succeed(self) -> None:
        self.connected(0)
        self._agent.beats = 0

    def tick(self, now_us: int) -> None:
        """Decide whether a beat is to be sent in this round."""
        is_due = self._exchange.beat_due = self._is_due(self._content(now_us), now_us)
        self.due_us = ALWAYS_US if is_due else self._next_us(now_us)

    def _next_us(self, now_us: int) -> int:
        """Return from when on a beat may be due, if nothing is received meanwhile."""
        if self._intake.sources.finished:
            return ALWAYS_US
        rest_us = max(self._moved_us, self._intake.read_us) + REST_US
        return min(
            self._keep_alive.next_us,
            self._least.next_us if self._is_asked else NEVER_US,
            self._allowance.next_us(now_us),
            max(rest_us, self._allowance.next_us(now_us, at_rest=True)),
        )

    def _is_due(self, content: _Content, now_us: int) -> bool:
        if self._last is None or not self._announced:
            return True
        last, lows = self._last
        if content[1:3] != last[1:3] or self._keep_alive.is_over(now_us):
            return True
        if self._is_asked and self._least.is_over(now_us):
            return True
        if not self._has_news(content, last, lows, now_us):
            return False
        moved_us = max(self._moved_us, self._intake.read_us)
        self._at_rest = is_time(now_us, moved_us + REST_US, REST_US)
        # Who reads nothing more has little left to say, and somebody may wait for it.
        is_end = self._intake.sources.finished and self._least.is_over(now_us)
        return is_end or self._allowance.is_due(now_us, at_rest=self._at_rest)

    def _has_news(
        self, content: _Content, last: _Content, lows: tuple[SinkLow, ...], now_us: int
    ) -> bool:
        """Return whether somebody waits for a beat with this content."""
        now = self._panes.lows(now_us)
        if _are_owed(self._answers, self._agent.beats, lows, now):
            return True
        if self._passes is None:
            if content != last or lows == now:
                return content != last
            return _panes_of(lows, self._spans_us) != _panes_of(now, self._spans_us)
        # Nobody joins panes; how far sources have come travels with each answer, too.
        if content._replace(seq=0, highs=()) != last._replace(seq=0, highs=()):
            return True
        return _pass(lows, now, self._passes)

    def publications(self, now_us: int) -> Iterator[Publication]:
        if not self._exchange.beat_due:
            return
        if not self._announced:
            yield self.presence(online=True)
            self._announced = True  # the link took it, or else it asked for no more
        content, lows = self._content(now_us), self._panes.lows(now_us)
        beat = self._beat(content, lows, now_us)
        self._promise(lows)
        yield Publication.of(beat, self._agent.topics)
        self._last, self._agent.beats, self._is_asked = (content, lows), beat.number, False
        self._exchange.beat_due = False
        self._allowance.spend(now_us, at_rest=self._at_rest)
        self._keep_alive.begin(now_us)
        self._least.begin(now_us)

    @property
    def done(self) -> bool:
        """Whether nothing more will be read and everything has landed."""
        finished = self._intake.finished and not self._agent.clock.waiting
        return finished and self._panes.cache.all_landed and not self._waits()

    def _content(self, now_us: int) -> _Content:
        agent, seq, highs = self._agent, self._panes.memory.seq, self._fence.source_highs()
        reports = self._exchange.reports()
        done, done_for = self.done, frozenset[str]()
        if self._intake.finished and not (done or agent.clock.waiting or self._waits()):
            sinks, time_us = self._panes.sinks, agent.clock.time_us(now_us)
            done_for = self._panes.cache.landed_at(sinks, time_us)
        begun = tuple(sorted(self._panes.memory.begun.items()))
        doubt_us = self._intake.highs.furthest_doubt_us()
        if doubt_us is not None and doubt_us >= self._intake.progress.floor_us:
            begun = ((EVERY_WINDOW, doubt_us + 1), *begun)
        known = (reports, seq, highs, self._commands.control, begun)
        return _Content(agent.replica, done, done_for, *known)

    def _beat(self, content: _Content, lows: tuple[SinkLow, ...], now_us: int) -> BeatFrame:
        """Return the next beat."""
        clock, (sender, done, done_for, *_) = self._agent.clock, content
        clock_s = clock.time_us(now_us) // SECOND_US if clock.tells else None
        silent = self._intake.sources.silent_source[:LONGEST_SOURCE]
        rest = (content.control, self._floor_us(), done_for, silent, content.begun)
        fields = (lows, done, content.reports, content.seq, clock_s, content.highs, *rest)
        return BeatFrame(sender, self._agent.beats + 1, *fields)

    def _floor_us(self) -> int | None:
        """Return from when on all readings are here, for panes that are made again.

        What an earlier life had read may lack in the store: such panes are never made again.
        """
        if not self._agent.plan.parameters:
            return None
        floor_us, doubt_us = self._intake.progress.floor_us, self._intake.highs.furthest_doubt_us()
        return floor_us if doubt_us is None else max(floor_us, doubt_us + 1)

    def _promise(self, lows: tuple[SinkLow, ...]) -> None:
        """Let readings behind the low watermarks of a beat be late from now on."""
        progress = self._intake.progress
        known_us = [low.low_us for low in lows if low.low_us is not None]
        progress.promised_us = max([progress.promised_us, *known_us])
        self._panes.memory.unlanded.watch(progress.promised_us)

    def presence(self, *, online: bool) -> Publication:
        """Return the presence of this device."""
        self._presences += 1
        agent = self._agent
        plan, speaks = agent.plan, online and bool(agent.settings.home_assistant)
        alarms = self._alarms if online else 0
        states = units_of(plan), bounds_of(plan), alarms, streams_of(plan) if online else ()
        about = plan.digest, RELEASE, speaks, *states
        frame = PresenceFrame(agent.replica, self._presences, online, *about)
        return Publication.of(frame, self._agent.topics)


def _are_owed(
    answers: OrderedAnswers | None,
    beats: int,
    before: tuple[SinkLow, ...],
    lows: tuple[SinkLow, ...],
) -> bool:
    """Return whether somebody waits for low watermarks since an answer left."""
    return answers is not None and any(
        answers.is_owed(beats, old.low_us, new.low_us)
        for old, new in zip(before, lows, strict=False)
    )


def _pass(
    before: tuple[SinkLow, ...], lows: tuple[SinkLow, ...], passes: Callable[[int, int], bool]
) -> bool:
    """Return whether low watermarks are for other sinks, or have passed an event in order."""
    if [(low.sink, low.store) for low in lows] != [(low.sink, low.store) for low in before]:
        return True
    return any(
        new.low_us is not None
        and new.low_us != old.low_us
        and (old.low_us is None or passes(old.low_us, new.low_us))
        for old, new in zip(before, lows, strict=True)
    )


def _panes_of(lows: tuple[SinkLow, ...], spans_us: list[int]) -> list[tuple[object, ...]]:
    """Return in which panes, of each of these spans, low watermarks are."""
    return [
        (low.sink, low.store, low.low_us and [low.low_us // span_us for span_us in spans_us])
        for low in lows
    ]
