"""A fleet of real device cores whose messages a lander's reader takes, and a lake of their rows."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cloud_tier.lander.columns import LandedColumns
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.acceptance import Acceptance, Record
from lasp_edge.protocol.frontier import Listening, Tick
from lasp_edge.protocol.sinks import DEFAULT_SINK
from lasp_edge.protocol.topics import Topics
from simulations.fleet import Fleet
from tests.cloud_tier.lakes import GlobalValue, LakeUnderTest
from tests.cloud_tier.support_devices import Row


class LandedFleet:
    """The fleet, its lake, and the way between.

    Args:
        spark: the session.
        program: of the devices and the lake.
        root: an empty directory.
        options: of the fleet.
    """

    def __init__(self, spark: Any, program: Plan, root: Path, **options: Any) -> None:
        self.program = program
        self.fleet = Fleet(program, **options)
        self.lake = LakeUnderTest(spark, program, root)
        streams = (program.pane_streams, program.published_folds.values())
        lander = self.fleet.lander
        self._acceptance = Acceptance(*streams, Topics(program.name), (DEFAULT_SINK, lander.lake))
        self._columns = LandedColumns(program)
        self._records: list[Record] = []
        self._segments = 0
        hear = lander.hear

        def recorded(topic: str, payload: bytes, now_us: int, **more: bool) -> Any:
            self._records.append(Record(now_us, topic, retained=False, payload=payload))
            return hear(topic, payload, now_us, **more)

        lander.hear = recorded  # type: ignore[method-assign]

    def land(self, batch: Callable[[list[Row]], list[Row]] = lambda rows: rows) -> None:
        """Merge what came since, as `batch` puts its rows; only retired devices are refused."""
        self._segments += 1
        records, self._records = self._records, []
        accepted = self._acceptance.take(records)
        assert {reason for _, reason in accepted.refused} <= {"of a retired device"}
        tick = Tick(self._segments, Listening(self.fleet.now_us, 0))
        self.lake.step(batch(self._columns.table(accepted, "lander", tick).to_pylist()))

    def globals(self, name: str) -> dict[str, GlobalValue]:
        """Return Spark's key -> value of a dynamic fold; every running device must have the same.

        A key that no device has any more is there with 0 devices.
        """
        found = {key: value for (fold, key), value in self.lake.globals().items() if fold == name}
        there = {key: value[:3] for key, value in found.items() if value.devices_in}
        for agent in self.fleet.running():
            own = agent.results(name)
            mine = {key: (r.partial, r.inputs, r.devices) for key, r in own.items() if r.devices}
            assert there == mine, (agent.name, name)
        return found
