"""How many files of the project execution passes: for a reading, an idle tick, a control entry.

Run: `python -m simulations.benchmarks files`, or `python -m simulations.benchmarks.files` for the
names of the files, in the order in which execution enters them, and the calls in each. Agent and
gateway run as a driver runs them, on a clock of this benchmark, with a store in a temporary
directory, and `sys.setprofile` records each call of a function. Of these are counted:

- files: distinct files of `crdts`, `lasp_edge`, `device_agent` and `cloud_tier` with a call in it;
  libraries, Python's own modules and the simulator do not count
- moves: calls into another file than the call before it
- functions: distinct functions

Each way is passed a few times before it is counted, so that nothing is imported or made for the
first time. The program is a greenhouse: a dynamic variable with a local fold and one for the fleet,
a shared counter, and a window. For the control entry the window has a parameter, too.
"""

import sys
from collections import Counter as Counted
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType

from crdts import BoundedLWWSet, ControlLog, Counter, Replica
from device_agent.agent.core import Core, Durable
from device_agent.agent.intake.batch import Batch
from device_agent.agent.settings import Settings
from device_agent.agent.state.store import Store
from device_agent.gateway.core import GatewayCore, WaitingTerms
from device_agent.gateway.store import FleetStore
from lasp_edge import Event, Plan, Program, Update, folds
from lasp_edge.language.regimes import WindowRegimes
from lasp_edge.protocol.acceptance import Acceptance, Record
from lasp_edge.protocol.commands import CommandFrame, CommandLog
from lasp_edge.protocol.frames import PaneFrame
from lasp_edge.protocol.frontier import Listening
from lasp_edge.protocol.kinds import decode
from lasp_edge.protocol.overheard import Overheard
from lasp_edge.protocol.topics import Topics, topic_of
from lasp_edge.units import SECOND_US
from simulations.benchmarks.measure import OURS, Line, at_most

BEGIN_US = 1_700_000_000 * SECOND_US
PANES, PANE_S = 10, 10
OPERATOR = Replica(1, 5, "operator")
GOALS = {"a reading, to its commit": 35, "an idle tick": 20, "a control entry's tick": 40}
"""Files at most."""
ROOT = Path(__file__).resolve().parents[2]
ROOMS = tuple(f"{ROOT / room}/" for room in ("crdts", "lasp_edge", "device_agent", "cloud_tier"))


class Trail:
    """The functions of the project that were called, in order."""

    def __init__(self) -> None:
        self.calls: list[CodeType] = []

    def of(self, work: Callable[[], object]) -> "Trail":
        """Do some work, recording its calls."""
        sys.setprofile(self._record)
        try:
            work()
        finally:
            sys.setprofile(None)
        return self

    def _record(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(ROOMS):
            self.calls.append(frame.f_code)

    @property
    def files(self) -> set[str]:
        """The files that execution passed."""
        return {code.co_filename for code in self.calls}

    @property
    def moves(self) -> int:
        """How often a call entered another file than the call before it."""
        return sum(a.co_filename != b.co_filename for a, b in pairwise(self.calls))

    @property
    def functions(self) -> int:
        """How many functions were called."""
        return len(set(self.calls))


def greenhouse(*, controlled: bool = False) -> Plan:
    """Return the program; `controlled`: its window adds a parameter to each value."""
    program = Program("greenhouse")
    temperature = program.event("temperature", resolution="0.01", unit="°C")
    samples = program.declare_dynamic(BoundedLWWSet(bound=100), "samples")
    total = program.declare(Counter(), "total")

    @program.on_event(temperature)
    def sampled(event: Event, update: Update) -> None:
        update(samples, BoundedLWWSet.add, event.value, event.time_us)
        update(total, Counter.increment, 1)

    local = program.fold(samples, folds.mean(), "local_average")
    program.fold_dynamic(local, "global_average")
    fold = folds.struct(count=folds.count(), total=folds.sum(), low=folds.min())
    offset = program.parameter("offset", "0", resolution="0.01") if controlled else None
    program.window(
        "by_room",
        source=temperature,
        fold=fold,
        size_s=60,
        slide_s=PANE_S,
        uses=(offset,) if offset else (),
        value=(lambda event, at: event.value + at[offset]) if offset else None,
    )
    return program.plan()


class _Device:
    """An agent that reads, and whose panes nobody acknowledges."""

    def __init__(self, plan: Plan, directory: Path) -> None:
        self.store = Store(directory)
        self.core = Core(plan, "pi-1", 7, self.store.restored(), Settings(fence_wait_us=0))
        self.durable = Durable(self.core, self.store)
        self.core.handle_connected(BEGIN_US)
        self.now_us = BEGIN_US
        self.frames: list[PaneFrame] = []
        self.close = self.store.close

    def read(self) -> None:
        """Read one value, and commit it."""
        batch = Batch("sensor", ["temperature"], [self.now_us], [20.5], [{}])
        self.durable.read(batch, self.now_us, is_pressing=True)

    def tick(self) -> None:
        """Let a driver's tick pass."""
        for publication in self.durable.tick(self.now_us):
            if "/pane/" in publication.topic:
                frame = decode(publication.payload)
                assert isinstance(frame, PaneFrame)
                self.frames.append(frame)

    def work(self, seconds: int) -> None:
        """Read one value a second."""
        for _ in range(seconds):
            self.now_us += SECOND_US
            self.read()
            self.tick()

    def hear(self, offset: str) -> ControlLog:
        """Receive an operator's entry, and return it: the sensor was wrong from the beginning."""
        log = ControlLog().set("offset", "", BEGIN_US, offset, "bench")
        frame = CommandFrame.of(OPERATOR, 1, ("offset", ""), CommandLog(control=log))
        self.durable.hear(topic_of(frame, self.core.agent.topics), frame.encode(), self.now_us)
        return log


def _acceptance(plan: Plan, sink: str) -> Acceptance:
    streams, published = plan.pane_streams, plan.published_folds.values()
    topics, overheard = Topics(plan.name), Overheard({})
    return Acceptance(streams, published, topics, (sink, "store"), overheard=overheard)


def trails() -> Iterator[tuple[str, Trail]]:
    """Yield each way by name."""
    with ExitStack() as stack:
        directories = [Path(stack.enter_context(TemporaryDirectory())) for _ in range(3)]
        plan = greenhouse()
        device = _Device(plan, directories[0])
        stack.callback(device.close)
        device.work(PANES * PANE_S)
        device.now_us += SECOND_US
        yield "a reading, to its commit", Trail().of(device.read)
        device.tick()
        device.tick()
        device.now_us += 1  # the time differs, and nothing is due
        yield "an idle tick", Trail().of(device.tick)
        yield "a control entry's tick", _after_entry(directories[1])
        yield from _receivers(plan, device, directories[2])


def _after_entry(directory: Path) -> Trail:
    """Return the way of the tick that makes panes again."""
    plan = greenhouse(controlled=True)
    device = _Device(plan, directory)
    try:
        device.work(PANES * PANE_S)
        trail = Trail()
        for offset in ("0.1", "0.2"):
            log, trail = device.hear(offset), Trail()
            trail.of(device.tick)
            regimes = WindowRegimes(plan.windows["by_room"], plan.functions, log)
            panes = device.store.newest_panes(regimes.pieces[-1].stream, 100 * SECOND_US)
            assert len(list(panes)) == PANES, "this tick makes the panes again"
        return trail
    finally:
        device.close()


def _receivers(plan: Plan, device: _Device, directory: Path) -> Iterator[tuple[str, Trail]]:
    """Yield the ways of a pane frame at a lander and at a gateway, up to its commit."""
    frames = device.frames
    lander, store = _acceptance(plan, "default"), FleetStore(directory)
    core = GatewayCore(plan, _acceptance(plan, "gateway"), store, OPERATOR, WaitingTerms())
    topics = device.core.agent.topics
    records = [Record(device.now_us, topic_of(f, topics), False, f.encode()) for f in frames]  # noqa: FBT003
    listening = Listening(device.now_us, BEGIN_US)

    def gateway(record: Record) -> None:
        store.commit(core.take([record], listening).changes)

    for record in records[:-1]:
        lander.take([record])
        gateway(record)
    yield "a pane frame at a lander", Trail().of(lambda: lander.take(records[-1:]))
    yield "a pane frame at a gateway", Trail().of(lambda: gateway(records[-1]))
    store.close()


def table(*, quick: bool = False) -> Iterator[Line]:  # noqa: ARG001 - one run is all
    """Yield the lines of this benchmark."""
    for what, trail in trails():
        files = len(trail.files)
        goal = at_most(files, GOALS[what], "files") if what in GOALS else ""
        note = f"{trail.moves} moves, {trail.functions} functions"
        yield Line(what, OURS, None, files, "files", goal=goal, note=note)


def _main() -> None:
    """Print the files of each way."""
    for what, trail in trails():
        print(f"{what}: {len(trail.files)} files")
        for file, calls in Counted(call.co_filename for call in trail.calls).items():
            print(f"  {calls:4} {file.removeprefix(f'{ROOT}/')}")


if __name__ == "__main__":
    _main()
