"""How far this device's sources had come, as other processes report it, and when it is believed.

What lies in the future of a trusted clock is not believed, or a forged time would make all readings
doubtful. So while no clock is trusted, the reports wait; and so do the readings.
"""

from typing import Final

from device_agent.agent.agent import Agent
from device_agent.agent.changes import Restored
from device_agent.agent.clock import DeviceClock
from device_agent.agent.intake.batch import Batch
from device_agent.agent.intake.progress import STAMP_AHEAD_US, IntakeProgress
from device_agent.agent.intake.routes import first_us
from device_agent.agent.intake.source_highs import WAITED, SourceHighs
from device_agent.agent.state.counters import Counters
from lasp_edge.protocol.fencing import ProcessReport

TWICE: Final = "fence: readings that may count twice"


class PeerReports:
    """Brings to the highs how far the sources had come by other processes.

    Args:
        highs: take it.
        progress: reaches at least the furthest time that some life surely had accepted.
        clock: shows which times are in the future.
        counters: count what may count twice.
        max_skew_us: how far ahead a reading may be.

    Attributes:
        waiting: the reports that wait for a clock that is trusted.
    """

    def __init__(
        self,
        highs: SourceHighs,
        progress: IntakeProgress,
        clock: DeviceClock,
        counters: Counters,
        max_skew_us: int,
    ) -> None:
        self._highs, self._progress, self._clock = highs, progress, clock
        self._counters, self._max_skew_us = counters, max_skew_us
        self.waiting: list[ProcessReport] = []
        self._has_reached = False

    def learn(self, report: ProcessReport, now_us: int) -> None:
        """Take a report, as soon as a clock is trusted; see `SourceHighs.learn`."""
        self.waiting.append(report)
        self.catch_up(now_us)

    def catch_up(self, now_us: int) -> None:
        """Take the reports that have waited, if a clock is trusted now."""
        if not self.waiting or not self._clock.trusted:
            return
        most_us = self._clock.time_us(now_us) + self._max_skew_us
        for reporter, highs in self.waiting:
            self._highs.learn(highs, reporter, most_us=most_us)
        self.waiting.clear()
        self._note_twice()
        furthest_us = self._highs.furthest_doubt_us()
        if furthest_us is not None:
            self._progress.reach(furthest_us)
            self._has_reached = True

    def without_placed(self, batch: Batch, now_us: int) -> Batch:
        """Return a batch without readings that waited, and that an earlier life may have placed.

        Each life dates them by its own clock, so that one may have found them somewhat earlier.
        """
        if batch.dated_us is None:
            return batch
        self.catch_up(now_us)
        doubt_us = self._highs.doubt_us(WAITED)
        if doubt_us is None or batch.dated_us > doubt_us + STAMP_AHEAD_US:
            return batch
        left = batch.with_own_times()
        self._counters.add("doubtful", len(batch) - len(left))
        return left

    def doubt_us(self, batch: Batch, now_us: int) -> int | None:
        """Return up to which own time a batch's readings are doubtful; None if they are not."""
        self.catch_up(now_us)
        doubt_us = self._highs.doubt_us(batch.source)
        if doubt_us is None:
            return None
        doubtful = any(type(at) is int and at <= doubt_us for at in batch.times_us)
        return doubt_us if doubtful else None

    def learn_of_lost_life(self) -> None:
        """Note that there was a process whose accepted readings nobody knows."""
        self._highs.learn_of_lost_life()
        self._note_twice()

    def _note_twice(self) -> None:
        if self._highs.maybe_twice:
            self._counters.add(TWICE, self._highs.maybe_twice)
            self._highs.maybe_twice = 0

    def take_reached(self) -> bool:
        """Return whether the progress was moved since the last call: then it is to be stored."""
        reached, self._has_reached = self._has_reached, False
        return reached


class KnownProgress:
    """How far the readings have come, as this device and others know.

    Args:
        agent: what all parts share.
        restored: what the store holds.

    Attributes:
        readings: of this device.
        highs: how far each source with own times has come, and which readings are doubtful.
        peer_reports: takes how far they have come by other processes.
    """

    def __init__(self, agent: Agent, restored: Restored) -> None:
        settings, spans_us = agent.settings, [w.span_us for w in agent.plan.windows.values()]
        floor_us = first_us(spans_us)
        self.readings = IntakeProgress(settings.retain_us, floor_us, restored.facts)
        self.highs = SourceHighs(restored.facts, restored.replicas)
        found = (self.highs, self.readings, agent.clock, agent.counters)
        self.peer_reports = PeerReports(*found, settings.max_skew_us)
