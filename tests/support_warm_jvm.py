"""One warm JVM for the tests of a process of pytest, lent to one Spark process after the other.

A JVM that starts takes 5 s of processor time, and the first steps in it 15 s more than later ones.
A test whose matter is what a command does with Spark, not how its JVM lives and dies, starts it
inside `WarmJvm.lent()`. There `LASP_EDGE_JAVA_HOME` is a folder whose `java` starts no JVM: it
gives the port of the warm one to the command, and waits for its standard input to end, as a JVM
does. Then the Spark that the command started is stopped, if the command did not stop it. Who asks
meanwhile waits for that; a busy machine takes some seconds. Once this process itself has the JVM,
it keeps it, and a JVM of the command's own starts. Spark and Delta are real in each case.
"""

import os
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import pytest
from py4j.clientserver import ClientServer, JavaParameters, PythonParameters

from cloud_tier.spark.driver import Driver, spark_class_path, started
from cloud_tier.spark.jars import delta_jars
from cloud_tier.spark.java import find_java
from tests.brokers import PATIENCE_S

_BORROW = """#!{python} -ISE
import os, socket, struct, sys
if "-version" not in sys.argv:
    lender = socket.socket(socket.AF_UNIX)
    lender.connect({address!r})
    lender.sendall(b"%d" % os.getppid())
    port, _, secret = lender.makefile("rb").readline().strip().partition(b" ")
    if port:
        info = os.environ["_PYSPARK_DRIVER_CONN_INFO_PATH"]
        with open(info + ".new", "wb") as file:
            file.write(struct.pack(">ii", int(port), len(secret)) + secret)
        os.rename(info + ".new", info)
        sys.stdin.buffer.read()
        sys.exit()
os.execv({java!r}, [{java!r}, *sys.argv[1:]])
"""


class WarmJvm:
    """A JVM that runs from its first use until the block ends.

    Args:
        folder: an empty directory.
    """

    def __init__(self, folder: Path) -> None:
        self._home = folder / "home"
        self._java = find_java()
        # The path of a socket has a limit of 107 bytes.
        self._sockets = tempfile.TemporaryDirectory(prefix="jvm-")
        address = str(Path(self._sockets.name, "lender"))
        self._listens = socket.socket(socket.AF_UNIX)
        self._listens.bind(address)
        self._listens.listen()
        script = self._home / "bin" / "java"
        script.parent.mkdir(parents=True)
        java = str(self._java.executable)
        script.write_text(_BORROW.format(python=sys.executable, address=address, java=java))
        script.chmod(0o755)
        self._free = threading.Lock()
        self._is_kept = False

    def __enter__(self) -> Self:
        jars = delta_jars(java=self._java)
        with started(Driver(self._java, spark_class_path(jars), short_run=True)) as process:
            self._process = process
            self._port = int(os.environ["PYSPARK_GATEWAY_PORT"])
            self._secret = os.environ["PYSPARK_GATEWAY_SECRET"]
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listens.close()
        self._process.communicate()  # Closes its standard input, by which it ends.
        self._sockets.cleanup()

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Have the processes that start inside the block borrow the JVM, and this process, too."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("LASP_EDGE_JAVA_HOME", str(self._home))
            yield

    def _serve(self) -> None:
        while True:
            try:
                borrower, _ = self._listens.accept()
            except OSError:
                return
            threading.Thread(target=self._lend, args=(borrower,), daemon=True).start()

    def _lend(self, borrower: socket.socket) -> None:
        """Give a process the JVM once it is free, and take it back when the process has ended."""
        with borrower:
            starter = borrower.recv(20)
            if self._is_kept or not self._free.acquire(timeout=PATIENCE_S):
                borrower.sendall(b"\n")
                return
            self._is_kept = starter == b"%d" % os.getpid()
            try:
                borrower.sendall(f"{self._port} {self._secret}\n".encode())
                borrower.recv(1)
                self._stop_spark()
            finally:
                self._free.release()

    def _stop_spark(self) -> None:
        """Stop the Spark of a process that was killed."""
        java = JavaParameters(port=self._port, auth_token=self._secret)
        client = ClientServer(java, PythonParameters(port=0, eager_load=False))
        try:
            of_scala = getattr(client.jvm.org.apache.spark, "SparkContext$")
            active = getattr(of_scala, "MODULE$").getActive()
            if active.isDefined():
                active.get().stop()
        finally:
            client.close()
