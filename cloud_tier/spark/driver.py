"""Spark's driver JVM, started directly: without the launcher's second JVM, with a class archive.

`spark-submit` starts one JVM to work out how to start another. For a local master there is little
to work out: Spark's JARs, the module options that Spark needs and pyspark's own gateway. A class
archive (JEP 310: classes parsed and verified once, mapped into memory at each start) then saves
most of what is left. `cloud_tier.spark.prefetch` makes it; without it all works, but slower.

The gateway ends when its standard input does, so the JVM dies with this process however that
ends. It is its own process group: Ctrl-C reaches Python alone, which decides what stops.
"""

import hashlib
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from cloud_tier.spark.cache import cache_folder
from cloud_tier.spark.jars import spark_home
from cloud_tier.spark.java import Java
from lasp_edge.errors import EnvironmentLacks

LOG_CONFIGURATION = Path(__file__).with_name("log4j2.properties")

_OPENED = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)

# The JVM would tell at length why an archive does not fit; it works without one.
_QUIET = "-Xlog:disable"
_CODE_CACHE = "-XX:ReservedCodeCacheSize=240m"
"""Address space for compiled code: the JVM's own default. With the quick compiler alone the default
is 48 MB, which the code that Spark generates for a replay of some years fills; the JVM then only
interprets."""
_SHORT_RUN = (
    *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmn512m"),
    "-XX:MetaspaceSize=256m",  # Else all is looked through four times while classes are loaded.
    "-XX:CompileThresholdScaling=0.1",  # Planning interprets far more than it ever repeats.
)
"""For a job of seconds: the quick compiler alone, and the collector that has no threads of its own,
with room for what a step leaves behind. Forty steps took 116 s of processor time with it, and 130 s
with the JVM's default collector. And code is compiled after a tenth of the usual calls: a start and
28 steps took 51 s in place of 55."""
_STARTED: list[subprocess.Popen[bytes]] = []
"""The JVMs that this process has started; Python's own list of children knows no kinds."""
_ARCHIVE_UNUSED_S = 30 * 24 * 3600


@dataclass(frozen=True)
class Driver:
    """How to start the JVM.

    Attributes:
        java: What runs it.
        class_path: Every JAR, in a fixed order, since an archive is tied to the order.
        memory: The greatest heap, in Java's notation.
        short_run: Compile quickly rather than well, and collect garbage in one thread. Halves the
            processor time of a job of seconds, and slows a job of minutes down.
    """

    java: Java
    class_path: tuple[Path, ...]
    memory: str = "2g"
    short_run: bool = False

    def command(self, *extra: str) -> list[str]:
        """Return the command line of the JVM, `extra` being further JVM options."""
        options = [*self._class_options(), f"-Xmx{self.memory}", _CODE_CACHE]
        if self.short_run:
            options += _SHORT_RUN
        if self.archive.is_file():
            options += ["-Xshare:auto", f"-XX:SharedArchiveFile={self.archive}"]
        options += [f"-Dlog4j2.configurationFile={LOG_CONFIGURATION.as_uri()}"]
        options += ["-Duser.timezone=UTC", "-XX:-UsePerfData", *extra]
        return [*self.java.command(), *options, "org.apache.spark.api.python.PythonGatewayServer"]

    @property
    def archive(self) -> Path:
        """Return where the class archive is kept, whether or not it is there yet."""
        identity = [str(self.java.home), str(self.java.version)]
        for jar in self.class_path:
            identity += [str(jar), str(jar.stat().st_size)]
        digest = hashlib.sha256("\n".join(identity).encode()).hexdigest()
        return cache_folder() / "classes" / f"{digest[:16]}.jsa"

    def _class_options(self) -> list[str]:
        """Return what must be equal when an archive is made and when it is used."""
        class_path = os.pathsep.join(map(str, self.class_path))
        return [_QUIET, "-cp", class_path, *module_options()]

    def make_archive(self, class_list: Path) -> None:
        """Make the archive of the classes that an earlier run listed.

        Raises:
            EnvironmentLacks: The archive could not be written.
        """
        self.archive.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.archive.parent, prefix=".making-") as scratch:
            arrived = Path(scratch) / self.archive.name
            command = [str(self.java.executable), "-Xshare:dump", *self._class_options()]
            command += [f"-XX:SharedClassListFile={class_list}"]
            command += [f"-XX:SharedArchiveFile={arrived}"]
            ran = subprocess.run(  # noqa: S603 - every part is our own
                command, capture_output=True, text=True, check=False
            )
            if not arrived.is_file():
                what = f"no class archive was made (Java ended with code {ran.returncode})"
                raise EnvironmentLacks(what, f"df -h {self.archive.parent}")
            arrived.replace(self.archive)
        _remove_unused(self.archive)


def spark_class_path(jars: Sequence[Path]) -> tuple[Path, ...]:
    """Return Spark's JARs and then `jars`."""
    return (*sorted((spark_home() / "jars").glob("*.jar")), *jars)


def module_options() -> list[str]:
    """Return the options of Spark's launcher, less the module that not every runtime has."""
    options = [f"--add-opens={name}=ALL-UNNAMED" for name in _OPENED]
    options += ["-Dio.netty.tryReflectionSetAccessible=true"]
    options += ["-Dio.netty.allocator.type=pooled"]
    options += ["-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE"]
    return [*options, "--enable-native-access=ALL-UNNAMED"]


@contextmanager
def started(driver: Driver, *extra: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start the JVM; inside the block pyspark connects to it in place of starting one.

    The JVM lives on after the block, until this process ends or its standard input is closed.

    Raises:
        EnvironmentLacks: The JVM ended before it could be reached.
    """
    with tempfile.TemporaryDirectory(prefix="lasp-edge-") as folder:
        info = Path(folder) / "gateway"
        process = _start(driver.command(*extra), info)
        _STARTED.append(process)
        port, secret = _wait_for(info, process)
    if driver.archive.is_file():
        mark_used(driver.archive)
    gateway = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    os.environ.update(gateway)
    try:
        yield process
    finally:
        for name in gateway:
            os.environ.pop(name, None)


def end(process: subprocess.Popen[bytes]) -> None:
    """Disconnect pyspark from the JVM, end it and wait until it is gone."""
    from pyspark import SparkContext  # noqa: PLC0415 - an extra

    gateway = SparkContext._gateway  # noqa: SLF001 - pyspark has no public word for it
    if gateway is not None:
        gateway.shutdown()
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    process.communicate()  # Closes its standard input.


def kill() -> None:
    """Kill every JVM that this process started, in the middle of whatever it does.

    A batch that is torn by that is done again at the next start, and gives the same lake. Pyspark's
    messages about its lost connection are not shown.
    """
    logging.disable(logging.CRITICAL)
    for process in _processes():
        process.kill()
    for process in _processes():
        process.wait()


def _processes() -> list[subprocess.Popen[bytes]]:
    """Return the JVMs: those started here, and what pyspark's own launcher has become."""
    pyspark = sys.modules.get("pyspark")
    gateway = None if pyspark is None else pyspark.SparkContext._gateway  # noqa: SLF001 - as above
    launched = getattr(gateway, "proc", None)
    return [*_STARTED, *([] if launched is None else [launched])]


def _start(command: Sequence[str], info: Path) -> subprocess.Popen[bytes]:
    environ = os.environ | {
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(info),
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_CONNECT_MODE": "0",
    }
    return subprocess.Popen(  # noqa: S603 - every part is our own
        command,
        stdin=subprocess.PIPE,
        stdout=2,  # Standard output belongs to what the command prints.
        env=environ,
        process_group=0,
    )


def _wait_for(info: Path, process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """Return the gateway's port and secret once the JVM has written them."""
    while not info.is_file():
        if process.poll() is not None:
            what = f"Spark's JVM ended with code {process.returncode} before it could be reached"
            raise EnvironmentLacks(what, "LASP_EDGE_SPARK_LOG=info, and the same command again")
        time.sleep(0.02)
    # The file is renamed into place, so it is whole: a port and a string, as Java writes them.
    content = info.read_bytes()
    return int.from_bytes(content[:4], "big"), content[8:].decode()


def mark_used(archive: Path) -> None:
    """Note that a start used an archive; where nothing can be written, nobody removes it either."""
    with suppress(OSError):
        os.utime(archive)


def _remove_unused(newest: Path) -> None:
    """Remove archives that no start has used for a month: each is some 200 MB."""
    limit = newest.stat().st_mtime - _ARCHIVE_UNUSED_S
    for archive in newest.parent.glob("*.jsa"):
        if archive.stat().st_mtime < limit:
            archive.unlink(missing_ok=True)
