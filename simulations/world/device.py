"""A device of a simulated world: disk, clock, sources and connection around an agent's core."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from crdts import Replica
from device_agent.agent.clock import ClockReading
from device_agent.agent.intake.batch import Batch
from device_agent.agent.settings import Settings
from device_agent.agent.timing.judgement import LEAST_NEAR_US
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.kinds import FRAME_KINDS
from lasp_edge.protocol.limits import EARLIEST_PANE_US
from lasp_edge.protocol.publication import Publication
from lasp_edge.units import SECOND_US
from simulations.world.clock import Clock
from simulations.world.decoding import decoded
from simulations.world.disk import AgentDisk
from simulations.world.links import LegMessage
from simulations.world.meters import Arrivals, MeterFile
from simulations.world.odd_lines import odd_before, with_odd_lines
from simulations.world.process import AgentProcess
from simulations.world.programs import COLUMN, COLUMN_EARLIER_US, COLUMN_ROOM, LIVE, RECORDED
from simulations.world.sensors import Sensors
from simulations.world.streamed import METERS
from simulations.world.unreported import UnreportedLines

TWICE = "fence: readings that may count twice"
"""What a device accepted before it learnt that an earlier life may have, as its counter says."""
OUTCOMES = ("too_late", "in_the_future", "refused", "doubtful", "undated")
"""What is counted of readings that do not count."""
ANSWERS = f"/{FRAME_KINDS[AckFrame.kind].topic}/"
"""Stands in the topics of what sinks answer."""
EMPTY_EVERY = 4
"""Readings of its second source after which there is a page without any."""
LINES = 8
"""Lines of its recording that a source gives at once, at most."""


class RecordedLine(NamedTuple):
    """A line of a device's recording.

    Attributes:
        time_us: its own time.
        value: a power of four; see `programs`.
        room: its tag.
    """

    time_us: int
    value: int
    room: str


class VirtualDevice(AgentProcess):
    """A device, whatever happens to it.

    Args:
        name: its name; a clone has that of another.
        disk: what outlives its process.
        plan, settings, sources: of its agent.

    Attributes:
        clock: what it takes for the time.
        records: it has a recording.
        in_columns: lines before this one were taken in as columns, where their room is.
        unsynchronised: its kernel never knows that its clock is right.
        is_odd: its recording has lines that are no readings.
        recording: what its first source gives, line by line; it outlives everything.
        position: the next line; set back to the durable cursor at each start.
        acknowledged: the first line that is not known to be durable.
        live: readings of its second source that were accepted in each process: they are durable.
        unsure: readings of its second source that may have been lost, or counted.
        connected: whether the broker and it know of each other.
        start_step, connect_step: when it starts, and connects, next.
        deaf_until, mute_until, full_until, disk_until: until which step that lasts.
        held_until: until which step what it sends is held up.
        held: that.
        misses_entries_until: until which step it hears nothing of parameters, and all else.
        forgot: its store was lost, or went back; it may not know what it had sent.
        sure_from: the first line of the recording that was never lost with a store.
        is_copy: it began on a copy of another one's disk, which runs too.
        uncertain: a copy of it ran, so nobody can tell what its latest state is to be.
        starts: how often its process was started.
        begun_us: when it was started last.
        answered_us: when an answer of a sink first had the right time since then; 0 for never.
        vouched: which replicas landers have named since then as the latest of the device.
        reported_twice: readings of its earlier processes that may count twice.
        lives: the nonces of its processes, in the order of their starts.
        well_known: values of the fleet that its process has acted on.
        acted: value -> the `inputs` for which its handler was called last, if it must know of that.
        order: lines in the order in which they were taken in.
        order_us: when each of them was given.
        taken_us: when it took in lines last.
        reached_us: the greatest time of a line that it took in.
        furthest_us: the greatest time of a line that it was given; None before the first.
        promisable_us: up to when it may have promised while its sources were silent.
        came_us: when it was given the first line of that time.
        held_us: when readings of its second source were given that are not known to be durable.
        slots: how many readings each pane of a room has.
        meter: what its meter wrote; None where its program has no streams.
        uncounted: what the process before had counted when it began, and this one has not.
        goes_back: how often its store was lost, or went back.
        arrivals: when what it was given is of.
        unreported: lines that may count twice without anybody knowing it.
        live_us: when its second source gave readings.
        unkept: lines that were acknowledged to its source, and that its store does not have.
    """

    def __init__(
        self, name: str, disk: AgentDisk, plan: Plan, settings: Settings, sources: tuple[str, ...]
    ) -> None:
        super().__init__(name, disk, plan, settings, sources)
        self.clock = Clock()
        self.unsynchronised, self.is_odd, self.records = False, False, RECORDED in sources
        self._ahead_us = self._column_position = self.in_columns = self.sure_from = 0
        self.recording: list[RecordedLine] = []
        self.position = self.acknowledged = self.live = self.unsure = self.starts = 0
        self.connected = self.forgot = self.uncertain = self.is_copy = False
        self.begun_us = self.answered_us = 0
        self.vouched, self.lives, self.promisable_us = set[Replica](), list[int](), EARLIEST_PANE_US
        self.reported_twice = self._counted_twice = 0
        self.start_step = self.connect_step = self.full_until = self.disk_until = 0
        self.deaf_until = self.mute_until = self.misses_entries_until = 0
        self.held_until = self.taken_us = self._tick_us = 0
        self.held: list[LegMessage] = []
        self.acted, self.well_known = dict[str, str](), set[str]()
        self.order, self.order_us = list[RecordedLine](), list[int]()
        self._given_us = dict[int, int]()
        self.furthest_us: int | None = None
        self.held_us, self.live_us = list[int](), list[int]()
        self.slots: dict[tuple[int, str], int] = {}
        self.meter = MeterFile() if METERS in sources else None
        self.goes_back = self.reached_us = self.came_us = self.unkept = 0
        self._began: tuple[int, dict[str, int]] = (0, {})
        self.uncounted: list[str] = []
        self.arrivals, self.unreported = Arrivals(), UnreportedLines()

    def forget(self) -> None:
        """Note that its store went back: what it read before may be counted, or be lost."""
        self.forgot = True
        self.goes_back += 1
        if self.meter is not None:
            self.meter.sure_from = max(self.meter.sure_from, self.meter.position)
        self.acted.clear()
        self.sure_from, self.in_columns = max(self.sure_from, self.position), 0
        self.unsure, self.live = self.unsure + self.live, 0

    def now_us(self, true_us: int) -> int:
        """Return the time that its process goes by: from its start on, whatever is set."""
        return true_us + self._ahead_us if self._ahead_us else true_us  # the same for a whole fleet

    def begin(self, nonce: int, true_us: int) -> None:
        """Start a process: it takes its own time from the wall clock once."""
        self._ahead_us = self.clock.read(true_us) - true_us
        self.starts += 1
        self.held_us.clear()
        self.well_known.clear()
        self.lives.append(nonce)
        self.begun_us, self.vouched, self.answered_us = true_us, set[Replica](), 0
        self.start(nonce)
        if self.is_copy and self.starts == 1:
            self.unsure += self.core.agent.clock.waiting  # both of them place what waits
        is_same_store = self._compare_counts()
        self._counted_twice = self.counted(TWICE)
        self._tell_clock(true_us)
        self.arrivals.restart()
        cursor = self.core.intake.sources.cursor
        if self.records:
            position = int(cursor(RECORDED) or 0)
            self.unkept = max(0, self.acknowledged - position) if is_same_store else 0
            for line in range(self.acknowledged, position):
                if line in self._given_us:  # durable, and the power failed before it was reported
                    self.order.append(self.recording[line])
                    self.order_us.append(self._given_us[line])
            self.position = self.acknowledged = self._column_position = position
            self.unreported.begin(self.position)
        if self.meter is not None:
            self.meter.position = self.meter.acknowledged = int(cursor(METERS) or 0)

    def _compare_counts(self) -> bool:
        """Look for what the process before this one had counted when it began, on this store.

        Return whether it is the same store, and no older one.
        """
        (goes_back, before), counts = self._began, dict(self.core.counters.totals)
        self.uncounted = [name for name, times in before.items() if counts.get(name, 0) < times]
        is_same_store = goes_back == self.goes_back
        if not is_same_store:
            self.uncounted = []
        self._began = (self.goes_back, counts)
        return is_same_store

    def _tell_clock(self, true_us: int) -> None:
        clock = self.clock
        is_known = not clock.wrong and not self.unsynchronised
        boot = f"{self.name}, {clock.boots}"
        reading = ClockReading(clock.read(true_us), true_us - clock.booted_us, boot, is_known)
        self.core.handle_clock(reading, self.now_us(true_us))

    def read_recording(self, true_us: int) -> None:
        """Let its first source give the next lines, if there are any."""
        if self.core.agent.clock.holds_back or not self.core.fence.lets_read:
            return
        if self.meter is not None:
            self._read_meter(self.meter, true_us)
        if COLUMN in self.plan.events and self._column_position <= self.position:
            self._read_columns(true_us)
            return
        until = self._column_position if COLUMN in self.plan.events else self.position + LINES
        lines = self.recording[self.position : until]
        if not lines:
            return
        after = self.position + len(lines)
        self._given_us.update(dict.fromkeys(range(self.position, after), true_us))
        batch = Batch(
            RECORDED,
            ["timed"] * len(lines),
            [line.time_us for line in lines],
            [line.value for line in lines],
            [{"room": line.room} for line in lines],
            cursor=str(after),
        )
        batch = with_odd_lines(batch, self.position) if self.is_odd else batch
        self.position = after
        times_us = self.arrivals.coming([line.time_us for line in lines])
        _come_to(self, times_us, true_us)

        def is_durable() -> None:
            self.order_us += [true_us] * len(lines)
            self.taken_us = max(true_us, self._tick_us)
            self.reached_us = max([*times_us, self.reached_us])
            self._is_durable(lines, after, times_us)

        self._take(batch, true_us, is_durable)

    def _read_columns(self, true_us: int) -> None:
        """Give the next lines of a room as a column, a step before they are given one by one.

        Every second time it begins with the room's line before, which was given: files overlap.
        """
        lines = self.recording[self.position : self.position + LINES]
        after = self._column_position = self.position + len(lines)
        new = [line for line in lines if line.room == COLUMN_ROOM]
        before = self.recording[: self.position] if new and self.position % 2 else []
        again = [line for line in before if line.room == COLUMN_ROOM][-1:]
        column = _column([*again, *new], self.position)
        self.core.intake.column_least = 1
        times_us = [line.time_us - COLUMN_EARLIER_US for line in new]
        if times_us:
            _come_to(self, times_us, true_us)

        def is_durable() -> None:
            self.in_columns = max(after, self.in_columns)

        if len(column):
            self._take(column, true_us, is_durable)

    def _take(self, batch: Batch, true_us: int, acknowledge: Callable[[], None]) -> None:
        assert self.durable is not None
        self.durable.read(batch, self.now_us(true_us), acknowledge)

    def _is_durable(self, lines: list[RecordedLine], after: int, times_us: list[int]) -> None:
        self.order += lines
        self.acknowledged = after
        self.unreported.take(after - len(lines), after)
        self.arrivals.add(times_us)

    def _read_meter(self, meter: MeterFile, true_us: int) -> None:
        """Let its meter give the next lines, if there are any."""
        found = meter.batch()
        if found is None:
            return
        lines, batch = found
        after, times_us = meter.position, self.arrivals.coming([line.time_us for line in lines])
        streams = [each.stream for each in self.core.agent.plan.item_streams.values()]

        def is_durable() -> None:
            meter.acknowledged = after
            self.arrivals.add(times_us)
            for line in range(after - len(lines), after):
                meter.taken[line].update(streams)

        self._take(batch, true_us, is_durable)

    @property
    def has_read_all(self) -> bool:
        """Whether everything that was recorded is known to be durable."""
        meter = self.meter
        return self.acknowledged >= len(self.recording) and (
            meter is None or meter.acknowledged >= len(meter.lines)
        )

    def read_sensors(self, sensors: Sensors, batch: Batch, true_us: int) -> None:
        """Take in what sensors of any program give, if they give anything."""
        if len(batch) and self.core.fence.lets_read and not self.core.agent.clock.holds_back:
            self._take(batch, true_us, lambda: sensors.acknowledged(self.name, batch))

    def read_live(self, true_us: int) -> None:
        """Let its second source give a reading."""
        self.unsure += 1
        self.held_us.append(true_us)
        self.live_us.append(true_us)
        batch = Batch(LIVE, ["stamped"], [None], [1], [{}])
        self._take(batch, true_us, self._live_is_durable)
        if len(self.live_us) % EMPTY_EVERY == 0:
            self._take(Batch(LIVE, [], [], [], []), true_us, lambda: None)

    def _live_is_durable(self) -> None:
        self.unsure -= 1
        self.held_us.pop(0)
        self.live += 1

    def publications(self, true_us: int) -> Iterator[Publication]:
        """Do what is due, and yield what is to be published."""
        self._tick_us = true_us
        self._tell_clock(true_us)
        return self.tick(self.now_us(true_us))

    def take(self, topic: str, payload: bytes, true_us: int) -> None:
        """Take a message in."""
        assert self.durable is not None
        self.durable.hear(topic, payload, self.now_us(true_us))
        if not self.answered_us and ANSWERS in topic and _has_right_time(payload, true_us):
            self.answered_us = true_us

    def maybe_twice(self) -> int:
        """Return how many readings it reported as possibly counted twice, in all its processes."""
        now = self.counted(TWICE) - self._counted_twice if self.durable else 0
        return self.reported_twice + now

    def kill(self) -> None:
        """End the process without warning, if there is one."""
        self.reported_twice, self._counted_twice = self.maybe_twice(), 0
        super().kill()

    def counted(self, *names: str) -> int:
        """Return how many readings were counted under these names, by what it knows.

        Lines that are no readings are left out.
        """
        totals = self.core.counters.totals
        is_odd = self.is_odd and "refused" in names
        odd = min(totals.get("refused", 0), odd_before(self.position)) if is_odd else 0
        return sum([totals.get(name, 0) for name in names]) - odd


def _has_right_time(payload: bytes, true_us: int) -> bool:
    """Return whether an answer has the right time: the clock of a sink may be wrong, too."""
    try:
        frame = decoded(payload)
    except FrameError:
        return False
    clock_s = frame.clock_s if isinstance(frame, AckFrame) else None
    return clock_s is not None and abs(clock_s * SECOND_US - true_us) < LEAST_NEAR_US


def _come_to(device: VirtualDevice, times_us: list[int], true_us: int) -> None:
    """Note how far the lines have come that a device was given."""
    before_us, settings = device.furthest_us, device.core.agent.settings
    silent_us = true_us - device.came_us - settings.source_silent_us
    if before_us is not None and silent_us > 0:  # what it promised meanwhile stands
        until_us = before_us + silent_us - settings.lateness_us
        device.promisable_us = max(device.promisable_us, until_us)
    device.furthest_us = max([*times_us, before_us or times_us[0]])
    if device.furthest_us != before_us:
        device.came_us = true_us


def lets_go(device: VirtualDevice, message: LegMessage, step: int) -> bool:
    """Return whether what a device publishes is on its way; it may be held up, or lost."""
    if step < device.held_until:
        device.held.append(message)
        return False
    return step >= device.mute_until


def _column(lines: list[RecordedLine], position: int) -> Batch:
    """Return lines as a column; its source goes no further by it."""
    return Batch(
        RECORDED,
        [COLUMN] * len(lines),
        [line.time_us - COLUMN_EARLIER_US for line in lines],
        [line.value for line in lines],
        [{"room": line.room} for line in lines],
        cursor=str(position),
    )
