"""A lander's machine on disk: its log, its clock and its power, around the run that is really used.

Its process may end **between any two calls** that make something durable, or that send something.
The next one finds what was durable.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from deltalake import DeltaTable

from cloud_tier.lake.tables import LakeTables
from cloud_tier.lander.columns import LandedColumns
from cloud_tier.lander.landing import Landing
from cloud_tier.lander.run import LanderRun
from cloud_tier.lander.segments import Log
from crdts import Replica
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.acceptance import Acceptance
from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import BeatFrame
from lasp_edge.protocol.kinds import decode
from lasp_edge.protocol.listening import ListeningClock
from lasp_edge.protocol.replies import Publish
from lasp_edge.protocol.sinks import DEFAULT_SINK
from lasp_edge.protocol.topics import Topics
from simulations.lake_landed import NO_FRAME
from simulations.world.faults import START_US
from simulations.world.power import Power, PowerLostError

logging.getLogger("cloud_tier").addHandler(logging.NullHandler())
"""Nobody reads its log."""


@dataclass
class LakePlace:
    """A lake on disk, and what its landers have in common.

    Attributes:
        folder: of all that is on disk.
        random: draws everything.
        plan: of the program.
        lake: its tables.
        now_us: the true time.
        refused: how many bad frames were logged for sure.
        trouble: what must never happen, and did.
    """

    folder: Path
    random: Random
    plan: Plan
    lake: LakeTables
    now_us: int = START_US
    refused: int = 0
    trouble: list[str] = field(default_factory=list)


class DyingLanding(Landing):
    """Writes to tables while there is power.

    Args:
        power: of the machine; for the others see `Landing`.

    Attributes:
        beside: what somebody does right before the next segment is committed.
    """

    def __init__(self, lake: LakeTables, lander: str, power: Power) -> None:
        self.power = power
        self.beside: Callable[[], None] | None = None
        super().__init__(lake, lander)

    def _write(self, table: DeltaTable, added: Any, number: int) -> None:
        self.power.use()
        if self.beside is not None and table is self._landing:
            beside, self.beside = self.beside, None
            beside()
        super()._write(table, added, number)
        self.power.use()

    def begin_store(self) -> None:
        self.power.use()
        super().begin_store()
        self.power.use()


class DyingLog(Log):
    """A log that is written to while there is power.

    Args:
        power: of the machine; for the others see `Log`.
    """

    def __init__(self, folder: Path, new_id: str, power: Power) -> None:
        self.power = power
        super().__init__(folder, new_id)

    def sync(self) -> None:
        self.power.use()
        super().sync()

    def keep_devices(self, lines: Sequence[str]) -> None:
        self.power.use()
        super().keep_devices(lines)
        self.power.use()

    def drop(self, number: int) -> None:
        self.power.use()
        super().drop(number)


class OneLander:
    """A lander's machine: its log and clock outlive its processes.

    Args:
        place: of the lake.
        number: of the lander.

    Attributes:
        name: its id in the lake.
        folder: of its log.
        off_us: how far its clock is ahead.
        power: of the machine.
        connections: since when it has listened, by its clock -> the true time.
        reported: device -> its life, and how far its source had come, as a process has logged it.
        landing: what its process writes to; None while it is off.
        breaks: its connection ends in its next turn.
    """

    def __init__(self, place: LakePlace, number: int) -> None:
        self._place, self.name = place, f"lander-{number}"
        self.folder, self.off_us, self.power = place.folder / f"log-{number}", 0, Power()
        self.connections, self.reported = dict[int, int](), dict[str, tuple[int, int]]()
        self.landing: DyingLanding | None = None
        self._log: DyingLog | None = None
        self._run: LanderRun | None = None
        self._is_connected = self.breaks = False

    def _now_us(self) -> int:
        return self._place.now_us + self.off_us

    def _begin(self) -> LanderRun:
        """Begin a process, which lands what the log has."""
        plan, lake = self._place.plan, self._place.lake
        log = self._log = DyingLog(self.folder, self.name, self.power)
        landing = self.landing = DyingLanding(lake, self.name, self.power)
        streams = (plan.sent_streams, plan.published_folds.values())
        known = (landing.incarnations(), landing.membership())
        acceptance = Acceptance(
            *streams, Topics(plan.name), (DEFAULT_SINK, landing.lake_id), *known
        )
        run = LanderRun(
            log_=log,
            landing=landing,
            acceptance=acceptance,
            columns=LandedColumns(plan),
            sender=Replica(1, self._place.random.getrandbits(32), self.name),
            clock=ListeningClock(0, self._now_us, lambda: self._place.now_us),
        )
        run.recover()
        for device, reported in self.reported.items():
            if _known_of(acceptance, device) < reported:
                self._place.trouble.append(f"{self.name} forgets that {device} was at {reported}")
        return run

    def turn(self, records: Sequence[tuple[str, bytes]]) -> list[AckFrame]:
        """Let its process run once over what came; return what it answers before its power goes."""
        sent: list[AckFrame] = []

        def publish(frame: Frame) -> bool:
            self.power.use()
            sent.extend([frame] if isinstance(frame, AckFrame) else [])
            return True

        try:
            self._turn(records, publish)
        except PowerLostError:
            self.end()
        return sent

    def _turn(self, records: Sequence[tuple[str, bytes]], publish: Publish) -> None:
        run = self._run = self._run or self._begin()
        run.look()
        if run.must_restart or not self._is_connected:
            self.connections[self._now_us()] = self._place.now_us
        if not self._is_connected:
            run.connected()
            self._is_connected = True
        elif self.breaks:
            run.disconnected()
            self._is_connected, records = False, ()
        self.breaks = False
        for topic, payload in records:
            run.hear(topic, payload)
        assert self._log is not None, "a process has a log"
        self._log.sync()
        self._note(records)
        run.land_due()
        run.reply(publish)
        if run.must_restart:
            run.finish(publish)
            self.end()

    def _note(self, records: Sequence[tuple[str, bytes]]) -> None:
        """Note what the broker may forget now."""
        for _, payload in records:
            if payload == NO_FRAME:
                self._place.refused += 1
                continue
            frame = decode(payload)
            if isinstance(frame, BeatFrame):
                self.reported[frame.about] = frame.sender.incarnation, frame.highs[0].high_us

    def end(self) -> None:
        """End its process."""
        if self._log is not None:
            self._log.release()
        self._log = self.landing = self._run = None
        self._is_connected, self.power.calls = False, None

    def lose_log(self) -> None:
        """Lose the segments of its log, while it is off."""
        self.end()
        for path in self.folder.glob("*.segment"):
            path.unlink()
        self.reported.clear()


def _known_of(acceptance: Acceptance, device: str) -> tuple[int, int]:
    """Return which life of a device a process knows, and how far its source had come.

    Who knows of a later life, by another lander, need not know more of the ones before: it was
    asked by that one when it began, or never will be.
    """
    known = acceptance.witness.of(device)
    if known is None:
        return 0, 0
    return known.replica.incarnation, max([high.high_us for high in known.highs], default=0)
