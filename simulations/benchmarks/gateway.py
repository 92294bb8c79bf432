"""A gateway: entries a CPU second with all commits, and its memory, by fleet.

Run: `python -m simulations.benchmarks gateway`. Each device sends, once a minute, what it has of
the six panes of 10 s of each window, which is a minute long and slides by 10 s, and promises to
send nothing older. Frames are decoded, accepted and joined, windows are recomputed, and each turn
of two seconds is one transaction of SQLite in a temporary directory. A row is a revision of a
window; rows become final as the fleet's promises pass them. Memory is that of a process of its
own which has taken these minutes in.

The second way has the same windows with a parameter that their values use and that nobody has set.
Both take turns, and the ratio is of the least CPU seconds of each.
"""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from crdts import Replica
from device_agent.gateway.core import GatewayCore, WaitingTerms
from device_agent.gateway.store import FleetStore
from lasp_edge import Program, folds
from lasp_edge.language.fleet_regimes import FleetRegimes
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.acceptance import Acceptance, Record
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import BeatFrame, PaneFrame
from lasp_edge.protocol.frontier import Listening
from lasp_edge.protocol.overheard import Overheard
from lasp_edge.protocol.sinks import SinkLow, store_tag
from lasp_edge.protocol.topics import Topics, topic_of
from lasp_edge.units import SECOND_US
from simulations.benchmarks.measure import MET, MISSED, OURS, Line, cpu_s

FLEETS = ((10, 2), (40, 4), (100, 20))
"""Devices and windows: a house, a workshop, and a plant."""
MOST_RATIO = 1.1
"""CPU seconds of windows with an unset parameter beside those without: at most this many times."""
MINUTES = 4
BEGIN_US = 1_700_000_040 * SECOND_US
_PANES = 6
_SPAN_US = 10 * SECOND_US
_TURN_S = 2


def _plan(windows: int, *, parameter: bool = False) -> Plan:
    program = Program("benchmark")
    event = program.event("temperature", resolution="0.01")
    given: dict[str, Any] = {"source": event, "fold": folds.mean(), "size_s": 60, "slide_s": 10}
    if parameter:
        offset = program.parameter("offset", "0", resolution="0.01")
        given |= {"uses": (offset,), "value": lambda event, at: event.value + at[offset]}
    for number in range(windows):
        program.window(f"w{number}", **given)
    return program.plan()


def _frames(plan: Plan, regimes: FleetRegimes, device: int, minute: int) -> Iterator[Frame]:
    """Yield what a device sends once a minute."""
    replica = Replica(1, device + 1, f"pi-{device}")
    first_us = BEGIN_US + minute * 60 * SECOND_US
    panes_us = tuple(first_us + at * _SPAN_US for at in range(_PANES))
    first_seq = minute * _PANES * len(plan.windows) + 1
    streams = [regimes.of(name).regime_at(first_us).pieces[0].stream for name in plan.windows]
    blocks = [
        PaneEntries(
            stream,
            _SPAN_US,
            *replica[:2],
            ((10,) * _PANES, tuple(20_000 + device + at for at in range(_PANES))),
            ("",) * _PANES,
            panes_us,
            tuple(range(first_seq + _PANES * place, first_seq + _PANES * (place + 1))),
        )
        for place, stream in enumerate(streams)
    ]
    yield PaneFrame(replica, 2 * minute + 1, tuple(blocks))
    low = SinkLow("gateway", store_tag("store"), first_us + 60 * SECOND_US)
    yield BeatFrame(replica, 2 * minute + 2, (low,), False, ())  # noqa: FBT003


def _turns(plan: Plan, devices: int) -> Iterator[tuple[int, list[Record]]]:
    """Yield the time and the messages of each turn; devices send all over the minute."""
    topics, per_minute = Topics(plan.name), 60 // _TURN_S
    regimes = FleetRegimes(plan)
    for minute in range(MINUTES):
        for turn in range(per_minute):
            now_us = BEGIN_US + (minute + 1) * 60 * SECOND_US + turn * _TURN_S * SECOND_US
            yield (
                now_us,
                [
                    Record(now_us, topic_of(frame, topics), False, frame.encode())  # noqa: FBT003
                    for device in range(turn, devices, per_minute)
                    for frame in _frames(plan, regimes, device, minute)
                ],
            )


def _core(plan: Plan, store: FleetStore) -> GatewayCore:
    acceptance = Acceptance(
        plan.windows.values(),
        (),
        Topics(plan.name),
        ("gateway", "store"),
        overheard=Overheard({}),
    )
    return GatewayCore(plan, acceptance, store, Replica(1, 7, "gateway"), WaitingTerms())


def _take(plan: Plan, turns: Iterable[tuple[int, list[Record]]], directory: Path) -> int:
    """Take all turns in, and return how many rows they made."""
    store, rows = FleetStore(directory), 0
    core = _core(plan, store)
    for now_us, records in turns:
        turn = core.take(records, Listening(now_us, BEGIN_US - 3_600 * SECOND_US))
        if turn.changes:
            store.commit(turn.changes)
        rows += len(turn.changes.rows)
    store.close()
    return rows


def memory_mib(devices: int, windows: int) -> float:
    """Return the most memory that a process took that was such a gateway."""
    line = [sys.executable, "-m", "simulations.benchmarks.gateway", str(devices), str(windows)]
    done = subprocess.run(line, capture_output=True, text=True, check=True)  # noqa: S603 - ours
    return float(done.stdout)


def _measured(plans: Iterable[Plan], devices: int, rounds: int) -> tuple[list[float], int]:
    """Return the least CPU seconds of all turns under each plan, in turn, and how many rows."""
    given = [(plan, list(_turns(plan, devices))) for plan in plans]
    spent_s, rows = [float("inf")] * len(given), set()

    def work(at: int, directory: TemporaryDirectory[str]) -> None:
        with directory as name:
            rows.add(_take(*given[at], Path(name)))

    for _ in range(rounds):
        for at in range(len(given)):
            once_s = cpu_s(partial(work, at), TemporaryDirectory, rounds=1)
            spent_s[at] = min(spent_s[at], once_s)
    (every,) = rows
    return spent_s, every


def table(*, quick: bool = False) -> Iterator[Line]:
    """Yield the lines of this benchmark."""
    for devices, windows in FLEETS[:1] if quick else FLEETS:
        entries = devices * windows * _PANES * MINUTES
        plans = _plan(windows), _plan(windows, parameter=True)
        rounds = 3 if quick else max(3, 1_200 // devices // windows)
        (plain_s, unset_s), rows = _measured(plans, devices, rounds)
        what = f"a gateway of {devices} devices and {windows} windows, entries with commits"
        cost = f"{rows:,} rows; {plain_s / MINUTES / 60:.1%} of one core"
        yield Line(what, OURS, plain_s, entries / plain_s, "entries/s", goal=cost)
        ratio = unset_s / plain_s
        met = MET if ratio <= MOST_RATIO else MISSED
        goal = f"{ratio:.2f} times the CPU, <= {MOST_RATIO}{'' if quick else met}"
        yield Line(what, "unset", unset_s, entries / unset_s, "entries/s", goal=goal)
        what = f"the same: memory of the process, {MINUTES} minutes taken in"
        yield Line(what, OURS, None, memory_mib(devices, windows), "MiB")


def _main() -> None:
    """Be a gateway for some minutes, and print its memory in MiB."""
    devices, windows = map(int, sys.argv[1:])
    plan = _plan(windows)
    with TemporaryDirectory() as directory:
        _take(plan, _turns(plan, devices), Path(directory))
    lines = Path("/proc/self/status").read_text().splitlines()
    (peak,) = [line for line in lines if line.startswith("VmHWM")]
    print(int(peak.split()[1]) / 1024)


if __name__ == "__main__":
    _main()
