"""Idle: the CPU of an agent that has little to do, beside the least that a client of MQTT can do.

Run: `python -m simulations.benchmarks idle`; it takes two minutes of real time, `--quick` one. A
publisher sends ten readings a second to mosquitto. A `lasp-edge agent` as it is shipped reads them
at `--interval 1`; a lander acknowledges its panes. The peer is a loop of paho-mqtt that subscribes
to the same topic and sums, in a process of its own at the same time. What each takes until ten
seconds after its start is its start; the rest, divided by the seconds, is what it takes to run. A
wake-up is a voluntary switch of one of its threads, as the kernel counts them.
"""

import asyncio
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from lasp_edge.link import BrokerUrl, Link
from lasp_edge.tool.loading import load_plan
from simulations.benchmarks.economy import MODULE, PROGRAM, SmallLander
from simulations.benchmarks.measure import OURS, Line, at_most
from simulations.processes.broker import PrivateBroker

READINGS_A_SECOND = 10
START_S, MEASURED_S, QUICK_S = 10, 100, 40
GOAL = 2.1
"""CPU of the running agent at most, as a multiple of the bare loop's: half of what it once took."""
TOPIC, PEER = "sensors/load", "bare paho loop"
_LOOP = f"""
import sys
import paho.mqtt.client as mqtt
total = 0.0
def add(client, userdata, message):
    global total
    total += float(message.payload)
client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
client.on_connect = lambda *_: client.subscribe("{TOPIC}", qos=1)
client.on_message = add
client.connect("127.0.0.1", int(sys.argv[1]))
client.loop_forever()
"""


class Taken(NamedTuple):
    """What a process has taken so far."""

    cpu_s: float
    wakes: int

    @classmethod
    def by(cls, pid: int) -> "Taken":
        """Return the counts of a process and all its threads."""
        cpu_ns = wakes = 0
        for thread in Path(f"/proc/{pid}/task").iterdir():
            cpu_ns += int((thread / "schedstat").read_text(encoding="ascii").split()[0])
            for line in (thread / "status").read_text(encoding="ascii").splitlines():
                if line.startswith("voluntary_ctxt_switches:"):
                    wakes += int(line.split()[1])
        return cls(cpu_ns / 1e9, wakes)


async def _publish(url: str) -> None:
    """Publish readings until it is cancelled."""
    link, random = Link(BrokerUrl.parse(url), client_id="sensors", jitter=Random(1)), Random(2)
    link.start()
    try:
        while True:
            await asyncio.sleep(1 / READINGS_A_SECOND)
            link.poll(0.0)
            link.publish(TOPIC, b"%.2f" % random.uniform(0, 4), qos=0)
    finally:
        link.stop(0.0)


async def _started(folder: Path, broker: PrivateBroker) -> list[asyncio.subprocess.Process]:
    """Return the running agent and the running peer."""
    agent = ["-m", "lasp_edge", "agent", f"{MODULE}:program", "--device", "kitchen"]
    agent += ["--broker", broker.url, "--data-dir", str(folder / "kitchen"), "--interval", "1"]
    agent += ["--source", "mqtt:sensors/{event}", "--with-tag", "room=kitchen"]
    return [
        await asyncio.create_subprocess_exec(
            sys.executable, *words, cwd=folder, stdout=asyncio.subprocess.DEVNULL
        )
        for words in (agent, ["-c", _LOOP, str(broker.port)])
    ]


async def measured(folder: Path, broker: PrivateBroker, seconds: int) -> list[tuple[Taken, Taken]]:
    """Return what agent and peer took to start, and until the end."""
    plan = load_plan(f"{MODULE}:program")
    tasks = [asyncio.create_task(_publish(broker.url))]
    tasks.append(asyncio.create_task(SmallLander(broker.url, plan, plan.name).serve()))
    processes = await _started(folder, broker)
    try:
        await asyncio.sleep(START_S)
        before = [Taken.by(process.pid) for process in processes]
        await asyncio.sleep(seconds)
        return list(zip(before, [Taken.by(process.pid) for process in processes], strict=True))
    finally:
        for task in tasks:
            task.cancel()
        for process in processes:
            process.terminate()
            await process.wait()
        await asyncio.gather(*tasks, return_exceptions=True)


def table(*, quick: bool = False) -> Iterator[Line]:
    """Yield the lines of this benchmark."""
    if not Path("/proc/self/schedstat").exists():
        yield Line("idle", OURS, note="skipped: what a process takes is read from /proc of Linux")
        return
    seconds = QUICK_S if quick else MEASURED_S
    with tempfile.TemporaryDirectory(prefix="idle-") as directory:
        folder = Path(directory)
        (folder / f"{MODULE}.py").write_text(PROGRAM)
        sys.path.insert(0, directory)
        try:
            with PrivateBroker(folder / "broker") as broker:
                found = asyncio.run(measured(folder, broker, seconds))
        finally:
            sys.path.remove(directory)
    yield from lines(found, seconds)


def lines(found: list[tuple[Taken, Taken]], seconds: int) -> Iterator[Line]:
    """Yield what agent and peer took, by start and by second."""
    ours, peer = [(after.cpu_s - before.cpu_s) / seconds for before, after in found]
    what = f"{READINGS_A_SECOND} readings a second"
    for (before, _), way in zip(found, (OURS, PEER), strict=True):
        yield Line(f"{what}: start", way, before.cpu_s, before.cpu_s, "s")
    note = f"over {seconds} s of real time"
    goal = at_most(ours / peer, GOAL, "times the bare loop")
    for spent, way, ratio in ((ours, OURS, None), (peer, PEER, peer / ours)):
        shown = goal if way == OURS else ""
        yield Line(f"{what}: CPU a second", way, spent * seconds, spent, "s", ratio, shown, note)
    for (before, after), way in zip(found, (OURS, PEER), strict=True):
        yield Line(f"{what}: wake-ups", way, None, (after.wakes - before.wakes) / seconds, "/s")
