"""A standalone Spark cluster on loopback, and jobs on it in processes of their own."""

import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from cloud_tier.command.submit import options_of
from cloud_tier.lake.checkpoint import merged
from cloud_tier.lake.tables import LakeTables
from cloud_tier.spark.jars import spark_home
from cloud_tier.spark.java import find_java, launcher_home
from tests.brokers import free_port
from tests.conftest import CHECKOUT
from tests.end_to_end import support_site
from tests.end_to_end.support_site import Process

LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SMALL = {
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": LIGHT,
    "spark.driver.extraJavaOptions": LIGHT,
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
}
"""Settings that make a cluster cheap; none of them is needed."""
_DEPLOYED = "org.apache.spark.deploy"


class Cluster:
    """A master and two workers.

    Args:
        folder: for what they write.

    Attributes:
        url: of the master.
    """

    def __init__(self, folder: Path) -> None:
        self.url = f"spark://127.0.0.1:{free_port()}"
        self._folder = folder
        self._home = spark_home()
        self._processes: list[Process] = []
        self._workers: list[Process] = []

    def start(self) -> None:
        """Start it, and wait until the workers have registered."""
        port = self.url.rpartition(":")[2]
        master = self._serve("master", f"{_DEPLOYED}.master.Master", "--port", port)
        until(lambda: f"at {self.url}" in master.last_words(), master)
        for name in ("worker-1", "worker-2"):
            small = ("--cores", "1", "--memory", "1g", "--work-dir", str(self._folder / name))
            worker = f"{_DEPLOYED}.worker.Worker"
            self._workers.append(self._serve(name, worker, *small, self.url))
        for worker in self._workers:
            until(lambda it=worker: "Successfully registered" in it.last_words(), worker)

    def stop(self) -> None:
        """Kill all that was started."""
        for process in reversed(self._processes):
            process.end()

    def job(self, *arguments: str, name: str = "job", master: str = "") -> Process:
        """Start `lasp-edge cloud` on the cluster, or on a server of Spark Connect."""
        on = ["--master", master or self.url, "--no-lander", "--trigger", "0.2"]
        on += [] if master else settings()
        return self._run(Process(self._folder, name), "cloud", *arguments, *on)

    def submit(
        self, what: str, *arguments: str, options: Sequence[str] = (), name: str = "submitted"
    ) -> Process:
        """Start it, or a server of Spark Connect, by `spark-submit`."""
        command = [str(self._home / "bin" / "spark-submit"), "--master", self.url]
        process = Process(self._folder, name, command, self._environ())
        return self._run(process, *settings(), *options, *options_of(what), *arguments)

    def executors(self) -> list[int]:
        """Return the process ids of the executors."""
        return [
            pid
            for worker in self._workers
            for pid, found in worker.members().items()
            if "CoarseGrainedExecutorBackend" in found
        ]

    def _serve(self, name: str, *arguments: str) -> Process:
        command = [str(self._home / "bin" / "spark-class")]
        what, *others = arguments
        process = Process(self._folder, name, command, self._environ())
        return self._run(process, what, "--host", "127.0.0.1", "--webui-port", "0", *others)

    def _run(self, process: Process, *arguments: str) -> Process:
        self._processes.append(process)
        process.run(arguments)
        return process

    def _environ(self) -> Mapping[str, str]:
        found = {
            "JAVA_HOME": str(launcher_home(find_java())),
            "SPARK_HOME": str(self._home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "768m",
            "SPARK_DAEMON_JAVA_OPTS": LIGHT,
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join([str(CHECKOUT), os.environ.get("PYTHONPATH", "")]),
        }
        return MappingProxyType(found)


def settings() -> list[str]:
    """Return the settings as words of a command."""
    return [word for setting in SMALL.items() for word in ("--conf", "=".join(setting))]


def until(happens: Callable[[], bool], process: Process) -> None:
    """Wait until something happens that a process does."""
    support_site.until(lambda: happens() or not process.runs, lambda: process.last_words()[-3_000:])
    assert process.runs or happens(), process.last_words()[-3_000:]


def finish(process: Process) -> None:
    """Wait for the end of a process that ends well by itself."""
    support_site.until(lambda: not process.runs, process.last_words)
    assert process.exit_code == 0, process.last_words()[-3_000:]


def answers(port: int) -> bool:
    """Return whether somebody accepts connections at a port of this machine."""
    try:
        socket.create_connection(("127.0.0.1", port), 1.0).close()
    except OSError:
        return False
    return True


def all_merged(tables: LakeTables) -> bool:
    """Return whether a job has merged all that landed."""
    found = merged(tables)
    if found is None or found.version is None:
        return False
    return found.version >= tables.table(tables.landing).version()
