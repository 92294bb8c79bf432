"""Who takes part: the private broker, the cloud job, and the devices, each on its own wire."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self, TypeVar

from lasp_edge.errors import Exit
from lasp_edge.language.plan import Plan
from lasp_edge.tool.screen import Screen, aligned
from simulations.demo.broker import PrivateBroker
from simulations.demo.devices import Condition, Device, Report, Value
from simulations.demo.lake import Commands, trouble_with
from simulations.demo.live import LiveTable, Measure
from simulations.demo.merging import SPARK, Merging
from simulations.demo.outages import Outages
from simulations.demo.processes import Child, Children
from simulations.demo.rooms import HOUSE, measurements
from simulations.demo.told import Told
from simulations.demo.trouble import Trouble

T = TypeVar("T")
now_ns = time.time_ns  # noqa: TID251 - what an operator says has times of this machine's clock

_LOOK_S = 0.2
_MOST_NAMES = 5
TELL_S = 15.0
_STARTING = "{} has merged nothing yet"


@dataclass(frozen=True)
class Cast:
    """Who is to take part.

    Attributes:
        spec: the program, as MODULE:ATTRIBUTE.
        plan: the same, loaded.
        devices: names.
        words: arguments of every agent: its sources. What they read from standard input is given
            by a simulated room of the device's name.
        lake: where the tables are kept; None for a folder that goes with the demo.
        command: the words before a sub-command of `lasp-edge`.
        merging: who merges what the devices send.
        is_ours: the program is the demo's own, so its parameters are known.
        wait_s: X, for how long windows wait for devices before they are shown; None for no wait.
        interval_s: how often devices publish: a demo is looked at.
    """

    spec: str
    plan: Plan
    devices: Sequence[str]
    words: Sequence[str]
    lake: Path | None
    command: Sequence[str]
    merging: Merging = SPARK
    is_ours: bool = False
    wait_s: float | None = None
    interval_s: float = 1.0


class Stage:
    """Everything that runs during a demo; leaving the block ends all of it.

    Attributes:
        broker: the private broker, from the block's beginning.
        devices: by name, from the block's beginning.
        lake: the folder of the tables.
        told: what an operator said, in order.
        outages: for how long each device was away.
        complete_us: since when all devices had been started; they are away only after it.
    """

    def __init__(self, cast: Cast, screen: Screen) -> None:
        self.cast = cast
        self.screen = screen
        self.children = Children()
        self.lake = cast.lake or self.children.folder / "lake"
        self.commands = Commands(self.children, cast.command)
        self.devices: dict[str, Device] = {}
        self._clock = asyncio.get_running_loop().time
        self._table = LiveTable(Measure.of(cast.plan), self._clock)
        self._began_s = self._said_s = self._clock()
        self.told: list[Told] = []
        self.outages, self.complete_us = Outages(self._clock), 0
        self._is_live = True
        self._closing = AsyncExitStack()
        self._cloud: Child | None = None
        self._cloud_lines: list[str] = []

    async def __aenter__(self) -> Self:
        self._closing.push_async_callback(self.children.close)
        try:
            self.broker = PrivateBroker(self.children.folder / "broker")
            self._closing.callback(self._stop_broker)
            self.broker.start()
            assert self.broker.pid is not None
            self.children.guard(self.broker.pid)
        except BaseException:
            await self._closing.aclose()
            raise
        words = [*self.cast.command, "agent", self.cast.spec, *self.cast.words, "--keep-readings"]
        words += ["--interval", f"{self.cast.interval_s:g}"]
        for number, name in enumerate(self.cast.devices, 1):
            place = self.children.folder / f"device-{number}"
            sensor = self._sensor(name) if "stdin" in self.cast.words else None
            self.devices[name] = Device(name, words, self.children, self.broker, place, sensor)
        return self

    def _sensor(self, room: str) -> Iterator[str] | None:
        return measurements(room, Random(room)) if room in HOUSE else None

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self.children.stop_all()  # While the broker still takes their last words.
        finally:
            await asyncio.gather(*(device.relay.close() for device in self.devices.values()))
            await self._closing.aclose()

    def _stop_broker(self) -> None:
        pid = self.broker.pid
        self.broker.stop()
        if pid is not None:
            self.children.release(pid)

    async def start_cloud(self) -> None:
        """Start what merges everything into windows."""
        words = [*self.cast.command, *self.cast.merging.words(self.cast.spec, self.lake)]
        wait_s = self.cast.wait_s
        words += [] if wait_s is None else ["--tentative-after", f"{wait_s:g}"]
        words += ["--broker", self.broker.url, "--until-idle"]
        words.append(str(self.cast.merging.idle_s))
        words += ["--roster", ",".join(self.devices)]
        self._cloud = await self.children.start("cloud", words, self._cloud_lines.append)

    async def kill_cloud(self) -> None:
        """End what merges without warning; of Spark, with its lander and its JVM."""
        assert self._cloud is not None
        await self._cloud.kill()
        self.children.forget(self._cloud)

    async def start_devices(self) -> None:
        """Start every agent."""
        for device in self.devices.values():
            await device.start()

    def cloud_is_ready(self) -> bool:
        """Whether what merges has started, which it says in its first line."""
        return bool(self._cloud_lines)

    async def until(
        self,
        condition: Callable[[], bool],
        most_s: float,
        what: str,
        moving: Callable[[], object] = lambda: None,
    ) -> None:
        """Wait for a condition.

        `what` says it in words, for when it does not come true. The time counts from the last
        change of what `moving` returns.

        Raises:
            Trouble: it did not come true, or a process ended by itself.
        """
        ends, before = self._clock() + most_s, moving()
        while not condition():
            if moving() != before:
                ends, before = self._clock() + most_s, moving()
            if self._clock() > ends:
                raise Trouble(f"after {most_s:.0f} s still not {what}{self._standing()}")
            await self._look_around()

    async def pass_time(self, seconds: float) -> None:
        """Let the fleet run for a while."""
        ends = self._clock() + seconds
        while self._clock() < ends:
            await self._look_around()

    async def meanwhile(self, work: Awaitable[T]) -> T:
        """Let the fleet run until something else is done, and return what came of that."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                await self._look_around()
            return task.result()
        finally:
            task.cancel()

    async def _look_around(self) -> None:
        for device in self.devices.values():
            device.measure()
            if device.is_connected():
                self.outages.note(device.name)
        self.screen.show(self.table() if self._is_live else [self._summary()])
        if not self.screen.is_terminal and self._clock() > self._said_s + TELL_S:
            self.say(self._summary())
        for child in self._running():
            if child is self._cloud and child.exit_code == Exit.FINE:
                # Nothing came for a while, as on a busy machine; what comes now is merged, too.
                self.children.forget(child)
                await self.start_cloud()
            elif child.ended_unasked:
                raise trouble_with(child)
        await asyncio.sleep(_LOOK_S)

    def say(self, *lines: str) -> None:
        """Write lines that stay."""
        self.screen.say(*lines)
        self._said_s = self._clock()

    def accepted(self) -> int:
        """Return how many readings all devices have told of."""
        return sum(d.report.accepted for d in self.devices.values() if d.report is not None)

    def _summary(self) -> str:
        if not self._is_live:
            merging = self.cast.merging
            return f"  ... {merging.news(self._cloud_lines) or _STARTING.format(merging.name)}"
        dirty = sum(d.report.dirty for d in self.devices.values() if d.report is not None)
        return f"  ... {self.accepted():,} readings so far, {dirty:,} entries still to send"

    def cloud_progress(self) -> tuple[int, int]:
        """Return what changes as long as anything is merged: the lines that are said, commits."""
        commits = sum(1 for _ in self.lake.glob("*/_delta_log/*.json"))
        return len(set(self._cloud_lines)), commits

    def progress(self) -> list[Report | None]:
        """Return what changes as long as something moves."""
        return [device.report for device in self.devices.values()]

    def _standing(self) -> str:
        """Return how the devices stand that are not through, for a line that says what is wrong."""
        words = [d.standing() for d in self.devices.values() if not d.is_done()]
        if disputed := self._disputed():
            words.append(f"not agreed on {', '.join(disputed[:_MOST_NAMES])}")
        return f" ({'; '.join(words)})" if words else ""

    def _running(self) -> list[Child]:
        children = [device.child for device in self.devices.values()]
        return [child for child in (*children, self._cloud) if child is not None]

    def table(self) -> list[str]:
        """Return the live table's lines."""
        return ["", *aligned(self._table.rows(self.devices.values()))]

    def freeze_table(self) -> None:
        """Let the live table stay as it is now."""
        self._is_live = False
        self.screen.show([])
        self.say(*self.table(), "")

    def all_report(self) -> bool:
        """Whether every agent runs and has told something."""
        return all(d.condition is Condition.RUNNING for d in self.devices.values())

    def note_complete(self) -> None:
        """Note that all devices have been started."""
        self.outages, self.complete_us = Outages(self._clock), now_ns() // 1_000

    def is_settled(self) -> bool:
        """Whether every reading has landed and every device knows that all hold the same."""
        return all(device.is_done() for device in self.devices.values()) and not self._disputed()

    def _disputed(self) -> list[str]:
        """Return the values on which the devices do not agree, as far as they reported."""
        reports = [device.report for device in self.devices.values() if device.report is not None]
        plan = self.cast.plan
        derived = {name for report in reports for name in report.values} - plan.local_folds.keys()
        names = sorted({*plan.dynamic_folds, *derived})
        return [
            name
            for name in names
            if not _agreed(
                [report.values.get(name) for report in reports],
                derived=name not in plan.dynamic_folds,
            )
        ]

    def lasted_s(self) -> float:
        """Return how long ago the stage was made, in seconds."""
        return self._clock() - self._began_s

    def silent_us(self) -> dict[str, int]:
        """Return for how many microseconds each device has not said that it has a connection."""
        return {name: round(self.outages.silent_s(name) * 1_000_000) for name in self.devices}

    async def wait_for_cloud(self, most_s: float) -> None:
        """Wait until the job has merged everything and ended by itself.

        It may take as long as it likes, while it does something every `most_s` seconds.

        Raises:
            Trouble: it did not, or not well.
        """
        assert self._cloud is not None
        cloud, self._cloud = self._cloud, None
        await self.until(
            lambda: cloud.exit_code is not None,
            most_s,
            f"all merged by {self.cast.merging.name}, and nothing moves",
            moving=self.cloud_progress,
        )
        self.screen.show([])
        if cloud.exit_code != 0:
            raise trouble_with(cloud)
        self.children.forget(cloud)

    async def stop_devices(self) -> None:
        """End every agent in order."""
        await asyncio.gather(*(device.stop() for device in self.devices.values()))


def _agreed(held: Sequence[Value | None], *, derived: bool) -> bool:
    """Return whether devices hold the same value, and know it; derived sets are only compared."""
    first = next(iter(held), None)
    if derived:
        return all(value == first for value in held)
    return first is not None and all(
        value is not None and value.inputs == first.inputs and value.settled and not value.absent
        for value in held
    )
