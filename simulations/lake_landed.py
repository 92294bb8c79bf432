"""The tables that a lander writes beside the lake of simulated worlds, process after process.

A world runs a lander's real code over a lake in memory (`simulations.world.lake`), and is worth as
much as that lake does what tables do. Here the same segments land in both. Processes end between
any two commits, and somebody goes back to an earlier version of the table.
The law: a process begins with what the lake in memory knows of devices and commands, what was
refused is counted once, and the lake is another store where it lost rows, and only there.

    >>> troubles(3)
    []
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

from deltalake import DeltaTable

from cloud_tier.lake.tables import LakeTables
from cloud_tier.lander.columns import LandedColumns
from cloud_tier.lander.landing import Landing
from crdts import Member, Membership, Replica, Version
from device_agent.gateway.core import WaitingTerms
from lasp_edge import Program, folds
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.acceptance import Acceptance, Accepted, Record
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.commands import CommandFrame, CommandLog
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import BeatFrame, PaneFrame
from lasp_edge.protocol.frontier import Listening, Tick
from lasp_edge.protocol.sinks import DEFAULT_SINK, SinkLow, store_tag
from lasp_edge.protocol.topics import Topics, topic_of
from lasp_edge.units import SECOND_US
from simulations.world.faults import START_US
from simulations.world.lake import SegmentRows, SimulatedLake
from simulations.world.power import Power

LANDER: Final = "lander"
OPERATOR: Final = Replica(1, 1, "operator")
DEVICES: Final = ("attic", "cellar")
NO_FRAME: Final = b"no frame"
"""The payload of a bad frame."""
SEGMENTS: Final = 8
SPAN_US: Final = 10 * SECOND_US
_REPLACED, _COMMANDED, _REFUSED = 0.3, 0.2, 0.4
"""How often a device has another life, and how many segments have a command, or a bad frame."""
_KILLED, _WENT_BACK = 0.4, 0.2
"""How often a process ends at a segment, and how often somebody goes back after one."""
_COMMITS: Final = 2
"""Commits of a segment, at most, after which its process may end."""


class LanderKilledError(Exception):
    """The lander's process ends here."""


class MortalLanding(Landing):
    """Writes to tables until its process ends.

    Attributes:
        left: after how many commits of segments it ends; None for never.
    """

    left: int | None = None

    def _write(self, table: DeltaTable, added: Any, number: int) -> None:
        if self.left == 0:
            raise LanderKilledError
        self.left = None if self.left is None else self.left - 1
        super()._write(table, added, number)


def warmth() -> Plan:
    """Return a program with a window."""
    program = Program("warmth")
    warm = program.event("warm", resolution="1")
    program.window("by_room", source=warm, fold=folds.mean(), size_s=10)
    return program.plan()


class DrawnSegments:
    """What devices and an operator send.

    Args:
        random: draws it.
        plan: of the program.

    Attributes:
        refused: how many of the frames are bad.
    """

    def __init__(self, random: Random, plan: Plan) -> None:
        self._random, self._plan, self.refused = random, plan, 0
        self._lives = dict.fromkeys(DEVICES, 1)

    def records(self, number: int) -> list[Record]:
        """Return the messages of the next segment."""
        at_us, chance = START_US + number * SPAN_US, self._random.random
        frames: list[Frame] = []
        for device in DEVICES:
            self._lives[device] += chance() < _REPLACED
            replica = Replica(self._lives[device], self._lives[device], device)
            frames += [self._panes(replica, number, at_us), _beat(replica, number, at_us)]
        if chance() < _COMMANDED:
            device, version = self._random.choice(DEVICES), Version(0, 0, 0)
            decided = Membership({device: Member(number, chance() < 1 / 2, version)})
            frames.append(CommandFrame.of(OPERATOR, number, (device,), CommandLog(decided)))
        topics = Topics(self._plan.name)
        sent = [(topic_of(each, topics), each.encode()) for each in frames]
        if chance() < _REFUSED:
            self.refused += 1
            sent.append((sent[0][0], NO_FRAME))
        return [Record(at_us, topic, retained=False, payload=each) for topic, each in sent]

    def _panes(self, replica: Replica, number: int, at_us: int) -> PaneFrame:
        window = self._plan.windows["by_room"]
        pane_us = at_us // window.span_us * window.span_us
        block = PaneEntries(
            stream=window.stream,
            span_us=window.span_us,
            incarnation=replica.incarnation,
            nonce=replica.nonce,
            columns=((1,), (self._random.randint(0, 100),)),
            keys=("",),
            panes_us=(pane_us,),
            seqs=(number,),
        )
        return PaneFrame(replica, number, (block,))


def _beat(replica: Replica, number: int, at_us: int) -> BeatFrame:
    low = SinkLow(DEFAULT_SINK, store_tag(""), at_us, 0)
    return BeatFrame(replica, number, (low,), done=False, reports=())


class TwoLakes:
    """The tables and the lake in memory, and the process that lands in both.

    Args:
        folder: of the tables.
        random: draws where a process ends.
        plan: of the program.
    """

    def __init__(self, folder: Path, random: Random, plan: Plan) -> None:
        self._random, self._plan = random, plan
        self._tables, self._columns = LakeTables(folder), LandedColumns(plan)
        self._tables.create(plan.columns)
        self._memory = SimulatedLake("lake", plan, DEFAULT_SINK, WaitingTerms(), Power())
        self._images: list[tuple[int, SimulatedLake]] = []
        self._stores = set[str]()
        self._losses = self._landed = 0
        self._begin()

    def _begin(self) -> None:
        """Begin a process."""
        landing = self._landing = MortalLanding(self._tables, LANDER)
        streams = (self._plan.sent_streams, self._plan.published_folds.values())
        known = (landing.incarnations(), landing.membership())
        topics, sink = Topics(self._plan.name), (DEFAULT_SINK, landing.lake_id)
        self._acceptance = Acceptance(*streams, topics, sink, *known)

    def land(self, number: int, records: list[Record]) -> None:
        """Let a segment land, whose process may end at it: then the next one lands it."""
        is_killed = self._random.random() < _KILLED
        self._landing.refresh()
        self._landing.left = self._random.randint(0, _COMMITS) if is_killed else None
        accepted = self._write(number, records)
        if is_killed:
            self._begin()
            accepted = accepted or self._write(number, records)
        assert accepted is not None, "only a process that is killed fails"
        rows = SegmentRows(accepted, _tick(number))
        self._memory.land(number, rows, accepted.refused)
        self._landed = number
        self._images.append((self._landing.newest, self._memory.copied("image")))

    def _write(self, number: int, records: list[Record]) -> Accepted | None:
        """Return what the process has accepted and landed; None if it ended before."""
        accepted = self._acceptance.take(records)
        table = self._columns.table(accepted, LANDER, _tick(number))
        try:
            self._landing.land(number, table, accepted.refused)
        except LanderKilledError:
            return None
        return accepted

    def go_back(self) -> None:
        """Put an earlier version of the table in its place; the lander finds out at a start."""
        if len(self._images) < 2:  # noqa: PLR2004 - nothing landed after an earlier version
            return
        version, image = self._random.choice(self._images[:-1])
        DeltaTable(self._tables.landing).restore(version)
        self._memory = self._memory.put_back("image", image)
        self._losses += 1
        self._images = []
        self._begin()

    def troubles(self, refused: int) -> Iterator[str]:
        """Yield in what the next process begins with something else.

        Args:
            refused: how many frames were bad.
        """
        self._stores.add(self._landing.lake_id)
        self._begin()
        self._stores.add(self._landing.lake_id)
        if len(self._stores) != 1 + self._losses:
            yield f"it lost rows {self._losses} times, and was the stores {sorted(self._stores)}"
        found = self._landing.incarnations(), self._landing.membership(), self._landing.landed
        known = self._memory.incarnations(), self._memory.membership, self._landed
        if found != known:
            yield f"a lander begins with {found}, and has landed {known}"
        rejects = self._tables.table(self._tables.rejects).to_pyarrow_table().to_pylist()
        counted = sum(row["frames"] for row in rejects if row["frame"] == NO_FRAME)
        if counted != refused:
            yield f"{refused} frames were refused, and {counted} are counted"


def _tick(number: int) -> Tick:
    return Tick(number, Listening(START_US + number * SPAN_US, START_US))


def troubles(seed: int) -> list[str]:
    """Return in what tables and lake in memory differ; empty where the law holds."""
    random, plan = Random(f"{seed} landed"), warmth()
    segments = DrawnSegments(random, plan)
    with TemporaryDirectory() as folder:
        lakes = TwoLakes(Path(folder), random, plan)
        for number in range(1, SEGMENTS + 1):
            lakes.land(number, segments.records(number))
            found = list(lakes.troubles(segments.refused))
            if found:
                return [f"after segment {number}: {each}" for each in found]
            if random.random() < _WENT_BACK:
                lakes.go_back()
    return []
