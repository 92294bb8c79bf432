"""One agent under test: core and store on a directory, on a clock that the test moves."""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from crdts import BoundedLWWSet, Counter, Replica
from device_agent.agent.core import Core, Durable
from device_agent.agent.intake.batch import Batch
from device_agent.agent.settings import Settings
from device_agent.agent.state.pane_table import pane_of
from lasp_edge import Plan, Program, folds
from lasp_edge.folds.columns import Partial
from lasp_edge.protocol.acks import AckFrame, Answer
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.fencing import VouchFrame
from lasp_edge.protocol.frames import BeatFrame, PaneFrame, VariableFrame
from lasp_edge.protocol.kinds import decode
from lasp_edge.protocol.publication import Publication
from lasp_edge.protocol.shards import key_shard
from lasp_edge.protocol.sinks import DEFAULT_SINK
from lasp_edge.protocol.topics import topic_of
from lasp_edge.units import SECOND_US
from simulations.world.disk import OpenedStore
from simulations.world.lander import LANDER, SimulatedLander

NOW_US = 1_700_000_000 * SECOND_US
MINUTE_US, HOUR_US = 60 * SECOND_US, 3_600 * SECOND_US
DAY_US = 24 * HOUR_US
PANE_US = 10 * SECOND_US
"""The slide of the greenhouse's window, so the length of its panes."""
LAKE = "lake-1"
_NONCES = itertools.count(1_000)


def greenhouse(
    *, size_s: float = 60, slide_s: float = 10, bound: int = 100, keyed: bool = False
) -> Plan:
    """Return a program with a window, a local and a dynamic fold, and a shared counter."""
    program = Program("greenhouse")
    temperature = program.event("temperature", resolution="0.01", unit="°C")
    samples = program.declare_dynamic(BoundedLWWSet(bound=bound), "samples")
    total = program.declare(Counter(), "total")

    @program.on_event(temperature)
    def sampled(event, update):
        update(samples, BoundedLWWSet.add, event.value, event.time_us)
        update(total, Counter.increment, 1)

    local = program.fold(samples, folds.mean(), "local_average")
    program.fold_dynamic(local, "global_average")
    program.window(
        "by_room",
        source=temperature,
        fold=folds.struct(count=folds.count(), total=folds.sum(), low=folds.min()),
        size_s=size_s,
        slide_s=slide_s,
        key=(lambda event: event.tags.get("room", "")) if keyed else None,
    )
    return program.plan()


def rooms(
    fold: Any = None, *, bound: int | None = 5, max_age_s: float | None = None, version: int = 1
) -> Plan:
    """Return a program with a set for each room, a local and a dynamic fold by room."""
    program = Program("rooms")
    temperature = program.event("temperature", resolution="0.01")
    samples = program.declare_dynamic(
        BoundedLWWSet(bound=bound, max_age_s=max_age_s),
        "samples",
        key=lambda event: event.tags["room"],
        version=version,
    )

    @program.on_event(temperature)
    def sampled(event, update):
        update(samples, BoundedLWWSet.add, event.value, event.time_us)

    program.fold_dynamic(program.fold(samples, fold or folds.mean(), "here"), "everywhere")
    return program.plan()


def entry_of(
    replica: Replica,
    number: int,
    variable: str,
    stream: int,
    partial: Iterable[Any],
    key: str = "",
) -> VariableFrame:
    """Return a device's entry of one key; "" of a variable without keys."""
    columns = tuple((part,) for part in partial)
    shard = key_shard(key) if key else 0
    return VariableFrame(replica, number, variable, stream, shard, (key,), (number,), columns)


def partial_of(frame: VariableFrame) -> Partial:
    """Return the partial in an entry of a variable without keys."""
    assert frame.keys == ("",)
    return tuple(column[0] for column in frame.columns)


def ack_of(
    device: str, *frames: PaneFrame, sink: tuple[str, str] = (DEFAULT_SINK, LAKE), reason: int = 0
) -> AckFrame:
    """Return what a sink says of all entries of frames: they have landed, or were not taken."""
    answer = Answer()
    for frame in frames:
        for block in frame.blocks:
            if reason:
                answer.refuse(reason, block.incarnation, block.nonce, block.seqs)
            else:
                answer.take(block.incarnation, block.nonce, block.seqs)
    (ack,) = answer.frames(LANDER, 1, device, sink)
    return ack


class Device:
    """An agent on a data directory: it can be killed and started again.

    Unless it is `fenced`, it publishes at once, and asks nobody who it was before. A test
    need not kill it in the end: `tests.device_agent.conftest` does.

    Attributes:
        running: all that run.
        landed: what its lander took.
        sent: every publication since the last `clear`.
    """

    running: ClassVar[set["Device"]] = set()

    def __init__(
        self,
        directory: Path,
        program: Plan | None = None,
        *,
        name: str = "pi-1",
        settings: Settings | None = None,
        now_us: int = NOW_US,
        fenced: bool = False,
        nonce: int | None = None,
    ) -> None:
        self.directory = directory
        self.program = program or greenhouse()
        self.name = name
        self.settings = settings or Settings(keep_readings=True)
        if not fenced:
            self.settings = replace(self.settings, fence_wait_us=0)
        self.now_us = now_us
        self.landed = SimulatedLander(LAKE, self.program)
        self.sent: list[Publication] = []
        self.start(nonce)

    def start(self, nonce: int | None = None) -> None:
        """Start a process on the directory."""
        self.store = OpenedStore(self.directory)
        nonce = next(_NONCES) if nonce is None else nonce
        self.core = Core(self.program, self.name, nonce, self.store.restored(), self.settings)
        self.core.intake.sources.cursor("test")
        self.durable = Durable(self.core, self.store)
        self.core.handle_connected(self.now_us)
        self.running.add(self)

    def kill(self) -> None:
        """End the process without a word."""
        self.running.discard(self)
        self.store.close()

    def restart(self, nonce: int | None = None) -> None:
        """Kill it and start it again."""
        self.kill()
        self.start(nonce)

    def read(
        self,
        values: Iterable[Any],
        times_us: Iterable[int | None] | None = None,
        tags: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        """Take in readings of the temperature; the clock is moved on to the newest own time."""
        values = list(values)
        times = [None] * len(values) if times_us is None else list(times_us)
        self.now_us = max([self.now_us, *(time_us for time_us in times if time_us is not None)])
        self.take(values, times, [tags or {}] * len(values), **more)

    def take(
        self,
        values: list[Any],
        times_us: list[int | None],
        tags: list[Mapping[str, str]],
        source: str = "test",
        name: str = "temperature",
        **more: Any,
    ) -> None:
        """Take in a batch as it is."""
        names = [name] * len(values)
        self.durable.read(Batch(source, names, times_us, values, tags, **more), self.now_us)

    def tick(self, seconds: float = 1.0) -> list[Publication]:
        """Let time pass; return what was published."""
        self.now_us += round(seconds * SECOND_US)
        published = list(self.durable.tick(self.now_us))
        self.sent += published
        return published

    def frames(self, kind: type[Frame], published: Iterable[Publication] | None = None) -> list:
        """Return the frames of a kind among what was published."""
        source = self.sent if published is None else published
        found = [decode(p.payload) for p in source if p.payload and is_of_frames(p.topic)]
        return [frame for frame in found if isinstance(frame, kind)]

    def hear(self, frame: Frame, topic: str | None = None) -> None:
        """Let it hear a frame on its proper topic."""
        self.durable.hear(topic or self.topic_of(frame), frame.encode(), self.now_us)

    def topic_of(self, frame: Frame) -> str:
        """Return the topic a frame belongs on."""
        return topic_of(frame, self.core.agent.topics)

    def acknowledge(
        self, *frames: PaneFrame, lake: str = LAKE, sink: str = DEFAULT_SINK, reason: int = 0
    ) -> None:
        """Let a sink say that all entries of frames have landed, or were not taken."""
        self.hear(ack_of(self.name, *frames, sink=(sink, lake), reason=reason))

    def land(self, seconds: float = 1.0) -> list[PaneFrame]:
        """Let time pass with a lander that takes and acknowledges everything."""
        frames = self.frames(PaneFrame, self.tick(seconds))
        for frame in frames:
            answer = self.lands(frame)
            assert answer is not None
            self.hear(answer)
        return frames

    def lands(self, frame: Frame) -> AckFrame | VouchFrame | None:
        """Let the lander hear a frame; return its answer."""
        return self.landed.hear(self.topic_of(frame), frame.encode(), self.now_us)

    def settle(self, ticks: int = 400) -> None:
        """Stop reading and go on until everything has landed."""
        self.core.handle_end()
        for _ in range(ticks):
            if self.core.done:
                return
            self.land()
        raise AssertionError(f"not done after {ticks} ticks: {self.core.report()}")

    @property
    def low_us(self) -> int | None:
        """What the newest beat promises."""
        return self.low_of()

    def low_of(self, sink: str = DEFAULT_SINK) -> int | None:
        """What the newest beat promises to a sink; None where it has no row for it."""
        lows = self.frames(BeatFrame)[-1].lows
        return next((low.low_us for low in lows if low.sink == sink), None)

    @property
    def counted(self) -> dict[str, int]:
        """The counted outcomes."""
        return self.core.counters.totals

    def stored_panes(self) -> dict[tuple[str, int], Partial]:
        """Return (key, pane start) -> the combination over all replicas, from the store."""
        window = self.program.windows["by_room"]
        found: dict[tuple[str, int], Partial] = {}
        for pane, row in self.rows():
            before = found.get((pane.key, pane.pane_us), window.fold.zero)
            found[pane.key, pane.pane_us] = window.fold.combine(before, row.partial)
        return found

    def rows(self) -> list:
        """Return the store's pane entries."""
        rows = self.store.database.execute("SELECT * FROM pane ORDER BY pane_us")
        return list(map(pane_of, rows))


def is_of_frames(topic: str) -> bool:
    """Return whether a topic is for frames, and not for people or for Home Assistant."""
    levels = topic.split("/")
    return levels[0] == "lasp" and levels[3] not in {"out", "fleet"}


def truth_of(window: Any, readings: Iterable[dict[str, Any]]) -> dict[tuple[str, int], Partial]:
    """Return (key, pane start) -> partial, recomputed from kept readings."""
    found: dict[tuple[str, int], Partial] = {}
    for reading in readings:
        key = reading["tags"].get("room", "") if window.keyed else ""
        at = (key, reading["time_us"] // window.span_us * window.span_us)
        lifted = window.fold.lift(reading["q"], reading["time_us"])
        found[at] = window.fold.combine(found.get(at, window.fold.zero), lifted)
    return found
