"""Start: what an agent takes until it has published for the first time.

Run: `python -m simulations.benchmarks start`, best where only the base install is: what a developer
has installed beside it costs CPU, too. An agent is started three times, each with an empty data
directory, on this machine's own sensors, with mosquitto as its broker. The first thing that it
publishes says that it is there. Seconds of real time are those of this machine, busy or not; CPU
seconds are the kernel's count for the process. The least of the three counts.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from simulations.benchmarks.economy import DEVICES, MODULE, PROGRAM, MeasuredAgent
from simulations.benchmarks.measure import OURS, Line, sizes, times
from simulations.benchmarks.wiretap import Packet
from simulations.processes.broker import PrivateBroker

GOAL_S, GOAL_MIB = 1.0, 30.0
ROUNDS, QUICK_ROUNDS = 3, 1
_LOOK_S = 0.01
_LONGEST_S = 60.0
_NO_PUBLICATION = frozenset(packet.name for packet in Packet) - {Packet.PUBLISH.name}
_USER_TICKS, _SYSTEM_TICKS = 11, 12
"""Places in /proc/PID/stat behind the name (proc(5): utime and stime)."""


class Started(NamedTuple):
    """What one agent took until it published."""

    real_s: float
    cpu_s: float
    peak_mib: float


def table(*, quick: bool = False) -> Iterator[Line]:
    """Yield the lines of this benchmark."""
    if not Path("/proc/self/stat").exists():
        yield Line("start", OURS, note="skipped: what a process takes is read from /proc of Linux")
        return
    with tempfile.TemporaryDirectory(prefix="start-") as directory:
        folder = Path(directory)
        (folder / f"{MODULE}.py").write_text(PROGRAM)
        with PrivateBroker(folder / "broker") as broker:
            rounds = range(QUICK_ROUNDS if quick else ROUNDS)
            found = [asyncio.run(_started(folder, f"fleet{n}", broker.port)) for n in rounds]
    real_s, cpu_s, peak_mib = map(min, zip(*found, strict=True))
    what = "start of an agent until it publishes"
    yield from times(f"{what}: CPU", {OURS: cpu_s}, goal_s=GOAL_S)
    yield from sizes(f"{what}: real time", "s", {OURS: real_s})
    yield from sizes(f"{what}: memory, most", "MiB", {OURS: peak_mib}, goal=GOAL_MIB)


async def _started(folder: Path, fleet: str, broker_port: int) -> Started:
    began_s = time.monotonic()  # noqa: TID251 - a real process on the real clock
    agent = await MeasuredAgent.start(folder, fleet, DEVICES[0], 1, broker_port)
    try:
        while not agent.cost().kinds.keys() - _NO_PUBLICATION:
            real_s = time.monotonic() - began_s  # noqa: TID251 - as above
            if agent.process.returncode is not None or real_s > _LONGEST_S:
                raise RuntimeError(f"the agent published nothing in {real_s:.0f} s")
            await asyncio.sleep(_LOOK_S)
        real_s = time.monotonic() - began_s  # noqa: TID251 - as above
        return Started(real_s, *_taken(agent.process.pid))
    finally:
        await agent.stop()


def _taken(pid: int) -> tuple[float, float]:
    """Return CPU seconds and the most resident MiB of a process so far."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(") ")[2].split()
    ticks = int(stat[_USER_TICKS]) + int(stat[_SYSTEM_TICKS])
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    (peak,) = (line.split()[1] for line in status if line.startswith("VmHWM:"))
    return ticks / os.sysconf("SC_CLK_TCK"), int(peak) / 1024
