"""Economy: what real agents write to their cards and send, beside shipping each reading as JSON.

Run: `python -m simulations.benchmarks economy`; it takes some four minutes of real time, `--quick`
two. Two fleets of three agents run side by side, each a `lasp-edge agent` as it is shipped, with
the folds of the greenhouse: one takes a reading a second on each device, the other one a minute.
Their broker is mosquitto, a lander acknowledges their panes, and each connects through a wire that
counts the bytes in both directions, MQTT's own included. What the kernel counts as written
(`write_bytes`) is what a card is given: the log, its index, checkpoints, whole pages.

The first minute does not count: an agent that starts may write and send some times at once. What
the frames alone weigh, on virtual time, is asserted in `tests/device_agent/agent/test_economy.py`.
A checkpoint of the log, some 100 kB an hour, may or may not lie within the time that is measured.
"""

import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple, Self

from lasp_edge.examples import greenhouse
from lasp_edge.language.plan import Plan
from lasp_edge.link import BrokerUrl, Link, Message
from lasp_edge.protocol.kinds import Subscriber
from lasp_edge.protocol.publication import Publication
from lasp_edge.protocol.sizes import reading_as_json_bytes
from lasp_edge.protocol.topics import Topics, subscriptions, topic_of
from lasp_edge.tool.loading import load_plan
from simulations.benchmarks.measure import MET, MISSED, OURS, Line, at_most, quantity
from simulations.benchmarks.wiretap import Wiretap
from simulations.processes.broker import PrivateBroker
from simulations.processes.relay import Relay
from simulations.world.lander import SimulatedLander

DEVICES = ("kitchen", "cellar", "attic")
RATES = {"1 a second": 1, "1 a minute": 60}
"""Seconds between two readings of a device."""
WARM_S, MEASURED_S, QUICK_S = 75, 180, 60
DAY_S = 86_400
FLASH_GOAL_MB, SENT_GOALS = 30, {"1 a second": 1.0, "1 a minute": 3.0}
"""Megabytes written a day at most, and bytes sent as multiples of JSON's."""
MODULE = "economy_program"
PROGRAM = Path(greenhouse.__file__).read_text(encoding="utf-8").replace("temperature", "load")
"""The greenhouse, of a reading that every Linux machine gives."""

_FIXED_HEAD, _TOPIC_LENGTH, _PACKET_ID, _PUBACK = 2, 2, 2, 4
_PROPERTIES, _ALIAS, _LENGTH_IN_A_BYTE = 1, 3, 127


json_bytes = partial(reading_as_json_bytes, greenhouse.program.plan().name)
"""What a device sends of one reading that it publishes as JSON."""


def wire_bytes(publication: Publication) -> int:
    """Return what a publication takes in MQTT 5 on a topic that has an alias."""
    packet_id = _PACKET_ID if publication.qos else 0
    rest = _TOPIC_LENGTH + packet_id + _PROPERTIES + _ALIAS + len(publication.payload)
    return _FIXED_HEAD + (rest > _LENGTH_IN_A_BYTE) + rest


class Cost(NamedTuple):
    """What one agent has cost so far, in bytes; `kinds` says what was sent, by kind of packet."""

    written: int
    sent: int
    heard: int
    kinds: Counter[str]

    def since(self, before: "Cost") -> "Cost":
        """Return what was added."""
        return Cost(
            self.written - before.written,
            self.sent - before.sent,
            self.heard - before.heard,
            self.kinds - before.kinds,
        )


class MeasuredAgent:
    """An agent's process, its wire, and its counts."""

    def __init__(self, process: asyncio.subprocess.Process, relay: Relay, tap: Wiretap) -> None:
        self.process = process
        self._relay, self._tap = relay, tap

    @classmethod
    async def start(
        cls, folder: Path, fleet: str, device: str, every_s: int, broker_port: int
    ) -> Self:
        """Start an agent as it is shipped."""
        tap = Wiretap()
        relay = Relay(broker_port, sent=tap.take)
        words = ["agent", f"{MODULE}:program", "--device", device, "--fleet", fleet]
        words += ["--broker", f"mqtt://127.0.0.1:{relay.port}"]
        words += ["--data-dir", str(folder / fleet / device), "--source", "host"]
        words += ["--every", str(every_s), "--with-tag", f"room={device}"]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "lasp_edge", *words),
            cwd=folder,
            stdout=asyncio.subprocess.DEVNULL,
        )
        return cls(process, relay, tap)

    def cost(self) -> Cost:
        """Return what it has cost so far."""
        lines = Path(f"/proc/{self.process.pid}/io").read_text(encoding="ascii").splitlines()
        counts = dict(line.split(": ") for line in lines)
        sent, heard = self._relay.sent_bytes, self._relay.received_bytes
        return Cost(int(counts["write_bytes"]), sent, heard, self._tap.sizes.copy())

    async def stop(self) -> None:
        """End it."""
        self.process.terminate()
        await self.process.wait()
        self._relay.close()


class SmallLander:
    """Takes the panes of a fleet and acknowledges them."""

    def __init__(self, url: str, plan: Plan, fleet: str) -> None:
        self._topics = Topics(fleet)
        self._landed = SimulatedLander("lake-1", plan, topics=self._topics)
        filters = subscriptions(self._topics, Subscriber.LANDER)
        self._link = Link(
            BrokerUrl.parse(url), client_id=fleet, subscriptions=filters, jitter=Random(1)
        )
        self._link.start()

    async def serve(self) -> None:
        """Work until it is cancelled; a lander commits once a second."""
        try:
            while True:
                await asyncio.sleep(1.0)
                for event in self._link.poll(0.0):
                    if isinstance(event, Message) and event.payload:
                        self._take(event)
        finally:
            self._link.stop(0.0)

    def _take(self, message: Message) -> None:
        now_us = time.time_ns() // 1_000  # noqa: TID251 - real agents run on the real clock
        answer = self._landed.hear(message.topic, message.payload, now_us)
        if answer is not None:
            self._link.publish(topic_of(answer, self._topics), answer.encode())


async def measured(folder: Path, broker: PrivateBroker, seconds: int) -> dict[str, list[Cost]]:
    """Return what each agent of each fleet costs in some seconds."""
    plan = load_plan(f"{MODULE}:program")
    landers = []
    fleets: dict[str, list[MeasuredAgent]] = {}
    try:
        for number, (rate, every_s) in enumerate(RATES.items()):
            fleet = f"greenhouse{number}"
            landers.append(asyncio.create_task(SmallLander(broker.url, plan, fleet).serve()))
            fleets[rate] = [
                await MeasuredAgent.start(folder, fleet, device, every_s, broker.port)
                for device in DEVICES
            ]
        await asyncio.sleep(WARM_S)
        before = {rate: [agent.cost() for agent in agents] for rate, agents in fleets.items()}
        await asyncio.sleep(seconds)
        return {
            rate: [
                agent.cost().since(then) for agent, then in zip(agents, before[rate], strict=True)
            ]
            for rate, agents in fleets.items()
        }
    finally:
        for lander in landers:
            lander.cancel()
        await asyncio.gather(*landers, return_exceptions=True)
        for agents in fleets.values():
            await asyncio.gather(*[agent.stop() for agent in agents])


def table(*, quick: bool = False) -> Iterator[Line]:
    """Yield the lines of this benchmark."""
    if not Path("/proc/self/io").exists():
        yield Line("economy", OURS, note="skipped: bytes written are read from /proc of Linux")
        return
    seconds = QUICK_S if quick else MEASURED_S
    with tempfile.TemporaryDirectory(prefix="economy-", dir="/var/tmp") as directory:
        folder = Path(directory)
        (folder / f"{MODULE}.py").write_text(PROGRAM)
        sys.path.insert(0, directory)
        try:
            with PrivateBroker(folder / "broker") as broker:
                costs = asyncio.run(measured(folder, broker, seconds))
        finally:
            sys.path.remove(directory)
    for rate, of_agents in costs.items():
        yield from lines(rate, of_agents, seconds)


def lines(rate: str, costs: list[Cost], seconds: int) -> Iterator[Line]:
    """Yield the lines of one fleet: the mean of its devices."""
    written, sent, heard = (
        sum(column) / len(costs)
        for column in zip(*[(cost.written, cost.sent, cost.heard) for cost in costs], strict=True)
    )
    as_json = sum(map(json_bytes, DEVICES)) / len(DEVICES) / RATES[rate]
    day_mb = written * DAY_S / seconds / 1e6
    note = f"over {seconds} s of real time; the mean of {len(costs)} agents"
    goal = at_most(day_mb, FLASH_GOAL_MB, "MB")
    yield Line(f"{rate}: written to the card a day", OURS, None, day_mb, "MB", None, goal, note)
    what, times = f"{rate}: bytes a second", SENT_GOALS[rate]
    ratio, goal_b = sent / seconds / as_json, times * as_json
    verdict = MET if ratio <= times else MISSED
    goal = f"sent <= {times:g} x JSON ({quantity(goal_b, 'B')}){verdict}"
    yield Line(what, "sent", None, sent / seconds, "B", None, goal, f"{ratio:.2f} times JSON")
    kinds = sum((cost.kinds for cost in costs), Counter[str]())
    for kind, size in kinds.most_common():
        share = size / len(costs) / seconds
        yield Line(
            what, "of it", None, share, "B", note=f"{kind}: {share / as_json:.2f} times JSON"
        )
    yield Line(what, "heard", None, heard / seconds, "B", note="of two others and a lander")
    note = f"{json_bytes(DEVICES[0])} B a reading of {DEVICES[0]}, as short as JSON allows"
    yield Line(what, "JSON, sent", None, as_json, "B", 1 / ratio, "", note)
