"""Real brokers for tests: private processes, an old one that knows no MQTT 5, and what to await."""

import contextlib
import os
import pwd
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from lasp_edge.errors import EnvironmentLacks
from lasp_edge.link import Connected, Event, Link, Message
from simulations.processes.broker import Broker, Kind, PrivateBroker, find_broker, free_port
from tests.support_missing import lacks

PATIENCE_S = 900.0
"""No test waits for an event that long unless it is to fail, however busy the machine is."""


def broker_program(kind: Kind | None = None) -> Broker:
    """Return a broker of a kind, or any: mosquitto before amqtt.

    LASP_EDGE_TEST_BROKER=amqtt runs the tests as on a machine without mosquitto.
    """
    only = os.environ.get("LASP_EDGE_TEST_BROKER")
    if kind and only and kind != only:
        lacks(f"LASP_EDGE_TEST_BROKER is {only}, and this needs {kind}")
    try:
        return find_broker(kind or only)
    except EnvironmentLacks as error:
        lacks(str(error))


def private_broker(directory: Path, kind: Kind | None = None) -> PrivateBroker:
    """Return a broker of a kind, or any, that keeps its files in a directory."""
    return PrivateBroker(directory, broker_program(kind))


class ConfiguredMosquitto(PrivateBroker):
    """mosquitto with lines of the test's own in its configuration."""

    def __init__(self, directory: Path, *lines: str, listener: tuple[str, ...] = ()) -> None:
        super().__init__(directory, broker_program("mosquitto"))
        self._lines = lines
        self._listener = listener

    def _configuration(self) -> str:
        lines = super()._configuration().splitlines()
        changed = {line.split()[0] for line in self._lines}
        kept = [line for line in lines[1:] if line.split()[0] not in changed]
        return "\n".join([lines[0], *self._listener, *kept, *self._lines]) + "\n"


class Mosquitto(PrivateBroker):
    """mosquitto with a configuration file that somebody else wrote, on the port that stands there.

    It counts as started when its port is open: it may want TLS or a password.
    """

    def __init__(self, directory: Path, configuration: str, port: int) -> None:
        super().__init__(directory, broker_program("mosquitto"))
        self._text = configuration
        self.port = port

    def _configuration(self) -> str:
        return self._text

    def _wait_until_it_accepts(self, process: subprocess.Popen[bytes], line: str) -> None:
        def is_open() -> bool:
            log = (self._directory / "broker.log").read_text()
            assert process.poll() is None, f"{line}: {log}"
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port)).close()
                return True
            return False

        until_true(is_open)


def mosquitto(directory: Path, *lines: str, listener: tuple[str, ...] = ()) -> Mosquitto:
    """Return a broker that keeps nothing and asks whatever these lines say."""
    port = free_port()
    first = (f"listener {port}", *listener, "log_dest stderr", "log_type all")
    return Mosquitto(directory, "\n".join([*first, *lines, *runs_as_us()]) + "\n", port)


def runs_as_us() -> list[str]:
    """Return the line that keeps a broker started by root from giving up its rights."""
    return [f"user {pwd.getpwuid(os.geteuid()).pw_name}"]


def until(link: Link, enough: Callable[[list[Event]], bool], seconds: float = PATIENCE_S) -> list:
    """Poll until the events so far are enough, and return them."""
    events: list[Event] = []
    ends_s = time.perf_counter() + seconds
    while not enough(events):
        left_s = ends_s - time.perf_counter()
        assert left_s > 0, f"waited in vain; trouble: {link.trouble}; came: {events[-5:]}"
        events += link.poll(min(left_s, 1.0))
    return events


def until_connected(link: Link, seconds: float = PATIENCE_S) -> Connected:
    """Poll until the link is connected."""
    return next(
        event
        for event in until(link, lambda events: any(map(is_connected, events)), seconds)
        if is_connected(event)
    )


def until_messages(link: Link, count: int, seconds: float = PATIENCE_S) -> list[Message]:
    """Poll until so many messages have come."""
    return messages(until(link, lambda events: len(messages(events)) >= count, seconds))


def until_true(condition: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
    """Look at a condition until it holds, and leave most of the core to what brings it about."""
    ends_s = time.perf_counter() + seconds
    looked_s = time.thread_time()
    while not condition():
        assert time.perf_counter() < ends_s, "waited in vain"
        time.sleep(0.02 + 4 * (time.thread_time() - looked_s))
        looked_s = time.thread_time()


def is_connected(event: Event) -> bool:
    """Return whether an event says that a link is up."""
    return isinstance(event, Connected)


def messages(events: list[Event]) -> list[Message]:
    """Return the messages among events."""
    return [event for event in events if isinstance(event, Message)]


class OldBroker:
    """A front before a real broker that knows no MQTT 5, in one of the ways that are met.

    `refuse`: answers CONNACK 1 and closes, as mosquitto 1.4 did. `close`: closes without a word.
    `hang`: never answers. `pass`: lets MQTT 5 through. `late`: so, after two seconds. 3.1.1 goes to
    the real broker.
    """

    def __init__(self, behind_port: int, manner: str) -> None:
        self.manner = manner
        self.protocols: list[int] = []
        self._behind_port = behind_port
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._sockets: list[socket.socket] = [self._server]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """The front's address."""
        return f"mqtt://127.0.0.1:{self.port}"

    def cut(self) -> None:
        """Cut all connections; new ones are accepted."""
        for each in self._sockets[1:]:
            _shut(each)

    def close(self) -> None:
        """End it."""
        for each in self._sockets:
            _shut(each)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self._server.accept()
                self._sockets.append(peer)
                threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connect = peer.recv(4096)
            protocol = connect[connect.index(b"MQTT") + 4]
            self.protocols.append(protocol)
            if self.manner == "late":
                time.sleep(2)
            elif protocol == 5 and self.manner != "pass":
                if self.manner == "refuse":
                    peer.sendall(b"\x20\x02\x00\x01")
                if self.manner == "hang":
                    peer.recv(4096)
                _shut(peer)
                return
            behind = socket.create_connection(("127.0.0.1", self._behind_port))
            self._sockets.append(behind)
            behind.sendall(connect)
            threading.Thread(target=_pump, args=(behind, peer), daemon=True).start()
            _pump(peer, behind)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    _shut(source)
    _shut(target)


def _shut(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()


@contextlib.contextmanager
def old_broker(behind: PrivateBroker, manner: str) -> Iterator[OldBroker]:
    """Yield a front before a running broker."""
    front = OldBroker(behind.port, manner)
    try:
        yield front
    finally:
        front.close()
