"""Accidents of the processes of a site: drawn from one seed, and carried out when they are due."""

import os
import random
import signal
import time
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from simulations.processes.process import now_s
from tests.brokers import PATIENCE_S
from tests.end_to_end.support_site import Site

AGENTS, BROKERS, LANDERS = 6, 2, 3
"""How many of each are killed."""
JOB_KILLED = ((0.15, 0.3), (0.5, 0.6), (0.8, 0.95))
"""When the job is killed, in parts of the whole: Spark must be able to come up in between."""
CALM_S = 2.0
"""Nothing happens so soon after the start: there must be something to lose."""
LONGEST_DOWN_S = 4.0
_AGAIN_S = 0.5
_LOOK_S = 0.2
_PROCESS_OF = {"lander": "cloud_tier.command.lander", "jvm": "PythonGatewayServer"}


class Accident(NamedTuple):
    """One accident.

    Attributes:
        at_s: when, counted from the start of the agents.
        kind: who is killed: `agent`, `broker` (which forgets everything), `lander`, `cloud` (the
            job with all its processes), `job` (its first process alone) or `jvm` (Spark alone).
        device: whose agent.
        lasts_s: how long until somebody starts it again.
    """

    at_s: float
    kind: str
    device: str
    lasts_s: float


def drawn(seed: int, devices: Sequence[str], within_s: float) -> list[Accident]:
    """Return a seed's accidents in order. The job is killed in each of three ways."""
    chance = random.Random(seed)
    ways = chance.sample(["cloud", "job", "jvm"], 3)
    times = [
        (chance.uniform(early * within_s, late * within_s), kind)
        for kind, (early, late) in zip(ways, JOB_KILLED, strict=True)
    ]
    kinds = ["agent"] * AGENTS + ["broker"] * BROKERS + ["lander"] * LANDERS
    times += [(chance.uniform(CALM_S, within_s), kind) for kind in kinds]
    return [
        Accident(at_s, kind, chance.choice(devices), chance.uniform(0.1, LONGEST_DOWN_S))
        for at_s, kind in sorted(times)
    ]


class Trial:
    """Lets accidents happen to a site, until all is healed and merged.

    Args:
        site: its broker runs, and nothing else.
        accidents: what is to happen.

    Attributes:
        done: what has happened, and when.
        ended: what the job ended with when nobody had killed its first process.
    """

    def __init__(self, site: Site, accidents: Sequence[Accident]) -> None:
        self.done: list[tuple[float, str]] = []
        self.ended: list[int | None] = []
        self._site = site
        self._due: list[tuple[float, str, str, float]] = []
        for accident in accidents:
            heappush(self._due, (accident.at_s, *accident[1:]))
        self._may_start = True
        self._is_ending = False

    def run(self) -> None:
        """Start everything and return when everything has been merged."""
        site = self._site
        site.start_cloud()
        site.start_agents()
        began_s = moved_s = now_s()
        healed = False
        while not healed:
            clock_s = now_s() - began_s
            while self._due and self._due[0][0] <= clock_s:
                self._happen(clock_s, *heappop(self._due)[1:])
                moved_s = now_s()
            self._see_to_the_job()
            healed = not self._due and site.cloud.runs and site.agreed()
            assert self._due or now_s() - moved_s < PATIENCE_S, f"never healed\n{site.standing()}"
            time.sleep(_LOOK_S)
        site.finish_cloud()

    def _happen(self, clock_s: float, kind: str, device: str, lasts_s: float) -> None:
        action = getattr(self, f"_{kind}")
        if not action(clock_s, device, lasts_s):
            heappush(self._due, (clock_s + _AGAIN_S, kind, device, lasts_s))
            return
        name = f"{kind} {device}" if kind.endswith("agent") else kind
        self.done.append((round(clock_s, 2), name))

    def _later(self, clock_s: float, kind: str, device: str = "") -> None:
        heappush(self._due, (clock_s, kind, device, 0.0))

    def _agent(self, clock_s: float, device: str, lasts_s: float) -> bool:
        agent = self._site.agents[device]
        if agent.runs:
            agent.kill()
            self._later(clock_s + lasts_s, "start_agent", device)
            return True
        return False

    def _start_agent(self, _clock_s: float, device: str, _lasts_s: float) -> bool:
        self._site.start_agent(device)
        return True

    def _broker(self, clock_s: float, _device: str, lasts_s: float) -> bool:
        broker = self._site.broker
        if broker.pid is None:
            return False
        broker.kill()
        broker.forget()
        self._later(clock_s + lasts_s, "start_broker")
        return True

    def _start_broker(self, *_: object) -> bool:
        self._site.broker.start()
        return True

    def _cloud(self, clock_s: float, _device: str, lasts_s: float, *, alone: bool = False) -> bool:
        if not self._site.cloud.runs or self._is_ending:
            return False
        self._site.cloud.kill(alone=alone)
        self._may_start = False
        self._later(clock_s + lasts_s, "start_cloud")
        return True

    def _job(self, clock_s: float, device: str, lasts_s: float) -> bool:
        return self._cloud(clock_s, device, lasts_s, alone=True)

    def _start_cloud(self, *_: object) -> bool:
        self._may_start = True
        return True

    def _lander(self, *_: object) -> bool:
        return self._kill_one("lander")

    def _jvm(self, *_: object) -> bool:
        """Kill Spark where it is up: what never came up is lacking, which has another exit code.

        The job has time to end by itself.
        """
        cloud = self._site.cloud
        is_up = cloud.runs and "Spark is ready" in cloud.printed.read_text()
        self._is_ending = is_up and self._kill_one("jvm")
        return self._is_ending

    def _kill_one(self, what: str) -> bool:
        """Kill one process of the job; False if it has none such now."""
        cloud = self._site.cloud
        if not cloud.runs:
            return False
        pids = [pid for pid, words in cloud.members().items() if _PROCESS_OF[what] in words]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        return bool(pids)

    def _see_to_the_job(self) -> None:
        """Start the job again when it has ended, as a service manager would."""
        cloud = self._site.cloud
        if self._may_start and not cloud.runs:
            self._is_ending = False
            if cloud.exit_code is not None and cloud.exit_code >= 0:
                self.ended.append(cloud.exit_code)
            self._site.start_cloud()
