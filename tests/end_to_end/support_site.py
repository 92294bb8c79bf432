"""Real agents, a real broker and the real cloud job, each a process of its own, for one test."""

import contextlib
import json
import os
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from cloud_tier.job.job import Job
from cloud_tier.job.run import Run
from cloud_tier.lake.definitions import record
from cloud_tier.lake.tables import LakeTables
from lasp_edge.language.plan import Plan
from lasp_edge.tool.loading import load_plan
from simulations.processes import process
from simulations.processes.broker import PrivateBroker
from simulations.processes.process import now_s
from simulations.processes.watchdog import kill_sessions
from tests.brokers import PATIENCE_S, broker_program
from tests.cloud_tier.lakes import QUICK
from tests.conftest import CHECKOUT
from tests.end_to_end import support_recorded, tables

IDLE_S = 5.0
COMPILED = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
"""What Spark does by itself, and the tests of single steps switch off: here are many rows."""
TRIGGER_S = 4
"""A cold step takes nearly as long on two busy cores: fewer steps merge the same rows."""
_LOOK_S = 0.2
_MOST_OF_ERRORS, _MOST_OF_OUTPUT = 20_000, 1_000


def until(condition: Callable[[], object], what: Callable[[], str]) -> None:
    """Look at a condition until it holds; fail with `what` if it never does.

    Looking takes a fifth of the time at most: others need the cores.
    """
    looked_s = now_s()
    ends_s = looked_s + PATIENCE_S
    while not condition():
        assert now_s() < ends_s, f"after {PATIENCE_S:.0f} s still not: {what()}"
        time.sleep(_LOOK_S + 4 * (now_s() - looked_s))
        looked_s = now_s()


def session_of(leader: int) -> dict[int, str]:
    """Return the living processes of a session, with their command lines."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            pid = int(entry.name)
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            if os.getsid(pid) == leader and state not in "ZX":
                found[pid] = (entry / "cmdline").read_text().replace("\0", " ")
    return found


class Process(process.Process):
    """A command of which no process may be left; the arguments are those of the demo's."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments, cwd=CHECKOUT)

    def members(self) -> dict[int, str]:
        """Return every living process that any life has started."""
        found: dict[int, str] = {}
        for session in self.sessions:
            found |= session_of(session)
        return found

    def kill(self, *, alone: bool = False) -> None:
        """End it by SIGKILL, with all that it started or alone, and wait until all is gone."""
        super().kill(alone=alone)
        until(lambda: not self.members(), lambda: f"gone: {self.members()}")

    def stop(self) -> int:
        """End it by SIGTERM, wait until all that it started is gone, and return its exit code."""
        self.signal(signal.SIGTERM)
        until(
            lambda: self.exit_code is not None and not self.members(),
            lambda: f"gone: {self.members()}",
        )
        assert self.exit_code is not None
        return self.exit_code

    def end(self) -> None:
        """End whatever any life has left."""
        kill_sessions(set(self.sessions))
        super().kill()

    def last_words(self) -> str:
        """Return the end of what all its lives have printed."""
        texts = []
        for path in sorted(self._folder.glob(f"{self.name}.*")):
            most = _MOST_OF_ERRORS if path.suffix == ".err" else _MOST_OF_OUTPUT
            text = path.read_text(errors="replace")[-most:].strip()
            texts += [f"--- {path.name}", text] if text else []
        return "\n".join(texts)


class Agent(Process):
    """A device's agent."""

    def report(self) -> dict[str, Any]:
        """Return the newest report of this life; nothing before the first."""
        with self.printed.open("rb") as file:
            file.seek(max(0, self.printed.stat().st_size - 65_536))
            lines = file.read().split(b"\n")[:-1]
        found: dict[str, Any] = json.loads(lines[-1]) if lines else {}
        return found


class Site:
    """One broker, one lake and a fleet of agents that replay a recording.

    Leaving the block ends everything and fails where something is left.

    Args:
        folder: receives all files.
        recording: JSON lines.
        devices: names.
        words: further arguments of every agent.
        program: MODULE:program.
        fields: how lines become readings.
    """

    def __init__(
        self,
        folder: Path,
        recording: Path,
        devices: Sequence[str],
        *words: str,
        program: str = support_recorded.SPEC,
        fields: Sequence[str] = tuple(support_recorded.FIELDS),
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.lake = folder / "lake"
        self.program = program
        self.devices = sorted(devices)
        self.broker = PrivateBroker(folder / "broker", broker_program())
        self.cloud = Process(folder, "cloud")
        self.lander = Process(folder, "lander")
        self.agents = {
            name: Agent(folder, f"agent-{number}") for number, name in enumerate(self.devices, 1)
        }
        self._words = ["--source", f"jsonl:{recording}", "--report", "0.3", "--interval", "1"]
        self._words += [*fields, *words]

    def __enter__(self) -> Self:
        self.broker.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        everybody = [self.cloud, self.lander, *self.agents.values()]
        left = {each.name: each.members() for each in everybody}
        for each in everybody:
            each.end()
        self.broker.kill()
        assert kind or not any(left.values()), left

    def start_agent(self, device: str) -> None:
        """Start a device's agent, for the first time or again."""
        place = ["--device", device, "--broker", self.broker.url]
        place += ["--data-dir", str(self.folder / f"data of {device}")]
        self.agents[device].run(["agent", self.program, *place, *self._words])

    def start_agents(self) -> None:
        """Start every agent."""
        for device in self.devices:
            self.start_agent(device)

    def start_cloud(self) -> None:
        """Start the cloud job; it ends when nothing new has come for a while."""
        words = ["--lake", str(self.lake), "--roster", ",".join(self.devices)]
        words += ["--until-idle", str(IDLE_S), "--trigger", str(TRIGGER_S)]
        self.cloud.run(["cloud", self.program, *words, "--broker", self.broker.url])

    def start_lander(self) -> None:
        """Start a lander alone; `merge` does later what the job does."""
        self.lander.run(
            ["lander", self.program, "--lake", str(self.lake), "--broker", self.broker.url]
        )

    def merge(self, spark: Any) -> None:
        """Have the lander, if there is one, land what it has; merge all in the session given."""
        if self.lander.runs:
            assert self.lander.stop() == 0, self.standing()
        merge(spark, load_plan(self.program), self.lake, self.devices)

    def merge_landed(self, spark: Any) -> None:
        """Have the job merge in the session given what has landed by now, and end."""
        _job_run(spark, load_plan(self.program), self.lake, self.devices, trigger_s=None).run()

    def reports(self) -> dict[str, dict[str, Any]]:
        """Return the newest report of each agent."""
        return {device: agent.report() for device, agent in self.agents.items()}

    def heard(self) -> None:
        """Wait until something of every agent has landed."""
        table = self.lake / "landing"
        query = "SELECT count(DISTINCT device) AS devices FROM w WHERE kind = 'pane'"
        until(
            lambda: (
                tables.count(self.lake, "landing")
                and tables.sql(self.lake, table.name, query)[0]["devices"] == len(self.devices)
            ),
            lambda: f"heard\n{self.standing()}",
        )

    def landed(self) -> bool:
        """Whether every agent has read everything and nothing of it has still to land."""
        reports = self.reports().values()
        return all(each and each["done"] and not each["dirty"] for each in reports)

    def agreed(self) -> bool:
        """Whether every agent says, besides, that the fleet agrees on every fleet-wide value."""
        reports = list(self.reports().values())
        if not self.landed() or not all(each["connected"] for each in reports):
            return False
        return all(map(_one, _fleet_values(reports).values()))

    def settle(self) -> None:
        """Wait until all agents have landed everything and agree."""
        until(self.agreed, lambda: f"settled\n{self.standing()}")

    def finish_cloud(self) -> None:
        """Wait until the job has ended by itself, having merged everything."""
        until(lambda: not self.cloud.runs, lambda: f"idle\n{self.standing()}")
        assert self.cloud.exit_code == 0, self.standing()
        until(lambda: not self.cloud.members(), lambda: f"gone: {self.cloud.members()}")

    def stop(self) -> None:
        """End the agents in order; they must say so by their exit codes."""
        codes = {device: agent.stop() for device, agent in self.agents.items()}
        assert set(codes.values()) == {0}, f"{codes}\n{self.standing()}"

    def standing(self) -> str:
        """Return how everything stands, for a failure."""
        reports = [json.dumps(report) for report in self.reports().values()]
        return "\n".join([*reports, self.last_words()])

    def last_words(self) -> str:
        """Return the end of everything that the processes have printed."""
        return "\n".join(
            each.last_words() for each in (self.cloud, self.lander, *self.agents.values())
        )


def merge(spark: Any, plan: Plan, lake: Path, devices: Sequence[str]) -> None:
    """Run the job, as it is set for this machine, until all that has landed is merged.

    Args:
        spark: the session that tests share, which has no longer to start and to compile.
        plan: of the program.
        lake: which has landed rows.
        devices: who is waited for.
    """
    _job_run(spark, plan, lake, devices, trigger_s=0.05, until_idle_s=0.0).run()


def _job_run(
    spark: Any, plan: Plan, lake: Path, devices: Sequence[str], **when: float | None
) -> Run:
    """Return the job's run over a lake whose tables exist, as it is set for this machine."""
    for name, value in {**QUICK, **COMPILED}.items():
        spark.conf.set(name, value)
    place = LakeTables(lake)
    place.create(plan.columns, plan.stream_results.values())
    record(plan, place)
    job = Job(plan, place, roster=tuple(devices), dead_after_us=600_000_000)
    return Run(spark, job, None, say=lambda _: None, **when)


def _fleet_values(reports: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return each fleet-wide value as every device holds it, by its name."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for report in reports:
        for name, value in report.get("values", {}).items():
            if "inputs" in value:
                found[name].append(value)
    return found


def _one(values: Sequence[dict[str, Any]]) -> bool:
    inputs = {value["inputs"] for value in values}
    return len(inputs) <= 1 and all(v["settled"] and not v["except"] for v in values)
