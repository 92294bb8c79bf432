"""Recordings replayed into a lake: made as the frames that devices send, taken as a lander does.

A device of a recording sends one frame after the other, each with `FRAME_PANES` panes, and a beat
at the end of each part. No agent runs: the frames are those that its core would make.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa

from cloud_tier.lake.tables import LakeTables
from cloud_tier.lander.columns import LandedColumns
from cloud_tier.lander.landing import Landing
from cloud_tier.lander.run import collector_off
from crdts import Replica
from lasp_edge import Program, folds
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.acceptance import Acceptance, Accepted, Record
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import BeatFrame, PaneFrame
from lasp_edge.protocol.frontier import Listening, Tick
from lasp_edge.protocol.sinks import SinkLow, store_tag
from lasp_edge.protocol.topics import Topics, topic_of
from simulations.benchmarks.cloud_rows import BEGIN_US

FRAME_PANES = 500
LANDER = "benchmark"
LISTENED_US = 24 * 3_600_000_000
"""Microseconds that the lander has listened before the recording begins: devices may be waited for
as long."""
_SINK = "lake"


class RecordedFleet(NamedTuple):
    """What a fleet measured.

    Attributes:
        name: what it is called.
        size_us: of its only window, and of a pane.
        panes: of each device.
        readings: of each pane.
        devices: how many.
        parts: it is landed and merged in this many.
    """

    name: str
    size_us: int
    panes: int
    readings: int
    devices: int
    parts: int

    @property
    def rows(self) -> int:
        """How many pane rows there are."""
        return self.panes * self.devices

    def plan(self) -> Plan:
        """Return the program that measured it."""
        made = Program("replay")
        event = made.event("temperature", resolution="0.01")
        made.window("over", source=event, fold=folds.mean(), size_s=self.size_us / 1e6)
        return made.plan()

    def spans(self) -> Iterator[range]:
        """Yield the panes of each part."""
        each = -(-self.panes // self.parts)
        for first in range(0, self.panes, each):
            yield range(first, min(first + each, self.panes))

    def total_q(self, device: int, pane: int) -> int:
        """Return the sum of a pane's readings."""
        return (31 * pane + 7 * device) % 9_973


class FleetReplay:
    """Lands a recording, part by part.

    Args:
        recording: what is landed.
        lake: its tables exist.
    """

    def __init__(self, recording: RecordedFleet, lake: LakeTables) -> None:
        self._recording, plan = recording, recording.plan()
        self._window, self._topics = plan.windows["over"], Topics(plan.name)
        self._landing = Landing(lake, LANDER)
        self._columns = LandedColumns(plan)
        self._acceptance = Acceptance(
            plan.windows.values(), (), self._topics, (_SINK, self._landing.lake_id)
        )
        self._numbers = dict.fromkeys(range(recording.devices), 0)
        self._segments = 0

    def land(self, panes: range) -> pa.Table:
        """Land these panes of all devices, and that they are complete; return the rows."""
        return self.take(self.records(panes), panes)

    def take(self, records: Iterable[Record], panes: range) -> pa.Table:
        """Land these messages in one commit; return the rows."""
        now_us = self._begin_us(panes.stop)
        with collector_off():
            accepted = self._acceptance.take(records)
            table = self.rows(accepted, now_us)
        assert not accepted.refused, accepted.refused
        self._landing.land(self._segments, table, accepted.refused)
        return table

    def rows(self, accepted: Accepted, now_us: int) -> pa.Table:
        """Return what was accepted as rows of `landing`, with a tick."""
        self._segments += 1
        clock = Listening(now_us, self._begin_us(0) - LISTENED_US)
        return self._columns.table(accepted, LANDER, Tick(self._segments, clock))

    def records(self, panes: range) -> Iterator[Record]:
        """Yield the messages in which devices send these panes."""
        received_us = self._begin_us(panes.stop)
        for frame in self._frames(panes):
            topic = topic_of(frame, self._topics)
            yield Record(received_us, topic, retained=False, payload=frame.encode())

    def _frames(self, panes: range) -> Iterator[Frame]:
        for device in self._numbers:
            replica = Replica(1, 7, f"pi-{device}")
            for first in range(panes.start, panes.stop, FRAME_PANES):
                sent = range(first, min(first + FRAME_PANES, panes.stop))
                self._numbers[device] += 1
                block = self._block(device, sent)
                yield PaneFrame(replica, self._numbers[device], (block,))
            self._numbers[device] += 1
            tag = store_tag(self._landing.lake_id)
            low = SinkLow(_SINK, tag, self._begin_us(panes.stop))
            seq = panes.stop
            yield BeatFrame(replica, self._numbers[device], (low,), False, (), seq)  # noqa: FBT003

    def _block(self, device: int, panes: range) -> PaneEntries:
        each = len(panes)
        totals = tuple([self._recording.total_q(device, pane) for pane in panes])
        return PaneEntries(
            self._window.stream,
            self._recording.size_us,
            1,
            7,
            ((self._recording.readings,) * each, totals),
            ("",) * each,
            tuple([self._begin_us(pane) for pane in panes]),
            tuple([pane + 1 for pane in panes]),
        )

    def _begin_us(self, pane: int) -> int:
        size_us = self._recording.size_us
        return BEGIN_US // size_us * size_us + (pane - self._recording.panes) * size_us
