"""A private MQTT broker on a free loopback port: mosquitto where it is found, else amqtt.

It is an operating system process of its own with its own configuration, data and log in a
directory of the caller's, so that a demo or a test can stop it, kill it and start it empty without
touching a broker that belongs to somebody else. `start` returns when the broker has answered an
MQTT CONNECT, not merely opened its port.
"""

import contextlib
import importlib.util
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple, Self

from lasp_edge.errors import EnvironmentLacks
from lasp_edge.tool.installing import install_line

now_s = time.monotonic  # noqa: TID251 a process's start takes real time

Kind = Literal["mosquitto", "amqtt"]

AMQTT_LACKS = "it keeps nothing on disk, nor for a device that is away"
"""It leaves a CONNECT of MQTT 5 unanswered and lets two clients have the same id. Retained
messages, QoS 1 between two live peers and Last Will work."""
_MOSQUITTO_PLACES = ("/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/sbin")
_CONNECT_3_1_1 = b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x0a\x00\x00"
_ACCEPTED = b"\x20\x02\x00\x00"
_START_S = 120.0
_STOP_S = 60.0


class Broker(NamedTuple):
    """A broker program that this machine has.

    `lacks` is empty, or names its gaps compared with mosquitto, as the end of a sentence.
    """

    kind: Kind
    command: Sequence[str]
    lacks: str = ""


def find_broker(kind: Kind | None = None) -> Broker:
    """Return the broker to use: mosquitto before amqtt, or only the `kind` that is asked for.

    Raises:
        EnvironmentLacks: this machine has none.
    """
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *_MOSQUITTO_PLACES])
    mosquitto = shutil.which("mosquitto", path=path)
    if mosquitto and kind != "amqtt":
        return Broker("mosquitto", [mosquitto, "-c"])
    if kind != "mosquitto" and importlib.util.find_spec("amqtt") is not None:
        program = [sys.executable, "-m", "amqtt.scripts.broker_script", "-c"]
        return Broker("amqtt", program, AMQTT_LACKS)
    raise EnvironmentLacks(
        f"there is no MQTT broker ({kind or 'neither mosquitto nor amqtt'})",
        "sudo apt install mosquitto" if kind == "mosquitto" else install_line("demo"),
    )


class PrivateBroker:
    """A broker process with a port and a directory of its own; a context manager.

    Its port stays the same over stops and starts. `kill` loses as much as a power cut would.

    Args:
        directory: Receives configuration, data and log; made if it is not there.
        broker: The program; `find_broker()` if not given.
    """

    def __init__(self, directory: Path, broker: Broker | None = None) -> None:
        self._broker = broker or find_broker()
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        self.kind = self._broker.kind
        self.lacks = self._broker.lacks
        self.port = free_port()

    @property
    def url(self) -> str:
        """The address for `--broker`; spares amqtt the MQTT 5 that it would leave unanswered."""
        protocol = "?protocol=3.1.1" if self.kind == "amqtt" else ""
        return f"mqtt://127.0.0.1:{self.port}{protocol}"

    @property
    def pid(self) -> int | None:
        """The process, while it runs."""
        return None if self._process is None else self._process.pid

    def start(self) -> Self:
        """Start the process and wait until it accepts a CONNECT.

        Raises:
            EnvironmentLacks: it does not come up; the end of its log says why.
        """
        assert self._process is None, "it runs already"
        (self._directory / "data").mkdir(parents=True, exist_ok=True)
        configuration = self._directory / "broker.conf"
        configuration.write_text(self._configuration(), encoding="utf-8")
        with (self._directory / "broker.log").open("ab") as log:
            # A session of its own: the terminal's Ctrl-C is for the program that stops this one.
            self._process = subprocess.Popen(  # noqa: S603 the program that find_broker found
                [*self._broker.command, str(configuration)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._wait_until_it_accepts(
            self._process, f"{' '.join(self._broker.command)} {configuration}"
        )
        return self

    def _wait_until_it_accepts(self, process: subprocess.Popen[bytes], line: str) -> None:
        ends_s = now_s() + _START_S
        while process.poll() is None and now_s() < ends_s:
            if _accepts_connect(self.port) and process.poll() is None:
                return
            time.sleep(0.02)
        self.kill()
        log = (self._directory / "broker.log").read_text(encoding="utf-8", errors="replace")
        raise EnvironmentLacks(f"{self.kind} does not start ({log.strip()[-200:]})", line)

    def stop(self) -> None:
        """End it in order, by force after a minute; does nothing if it does not run."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            try:
                process.wait(timeout=_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def kill(self) -> None:
        """End it by SIGKILL; does nothing if it does not run."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGKILL)
            process.wait()

    def forget(self) -> None:
        """Throw away its files: the next start is that of an empty broker."""
        assert self._process is None, "stop it first"
        shutil.rmtree(self._directory / "data", ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _configuration(self) -> str:
        if self.kind == "amqtt":
            # JSON is YAML. Without the two logging plugins it does not print every packet.
            listener = {"type": "tcp", "bind": f"127.0.0.1:{self.port}"}
            anybody = {
                "amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}
            }
            return json.dumps({"listeners": {"default": listener}, "plugins": anybody})
        lines = [
            f"listener {self.port} 127.0.0.1",
            "allow_anonymous true",
            "persistence true",
            f"persistence_location {self._directory / 'data'}/",
            # A consumer that acknowledges once it is on disk must not wait for every 20 messages.
            "max_inflight_messages 1000",
            "max_queued_messages 100000",
            "set_tcp_nodelay true",
            "log_dest stderr",
        ]
        with contextlib.suppress(KeyError):  # root drops its rights, and could not write its data
            lines.append(f"user {pwd.getpwuid(os.geteuid()).pw_name}")
        return "\n".join(lines) + "\n"


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _accepts_connect(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2.0) as probe:
            probe.sendall(_CONNECT_3_1_1)
            answer = probe.recv(4)
            probe.sendall(b"\xe0\x00")  # DISCONNECT
    except OSError:
        return False
    return answer == _ACCEPTED
