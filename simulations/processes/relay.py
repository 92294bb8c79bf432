"""A wire between one device and the broker that counts every byte, and can be cut or deaf.

Each device of the demo connects to its own relay on the loopback interface, and the relay to the
broker. So the bytes are those of the sockets, MQTT's own included, in both directions, and cutting
one device off takes neither rights nor the broker's help.
"""

import contextlib
import socket
from collections.abc import Callable
from threading import Event, Thread

_CHUNK_BYTES = 1 << 16

_ESTABLISHED = b"\x01"
"""The state of a TCP connection that no side has ended, as the kernel numbers it."""

Tap = Callable[[bytes], None]


class Relay:
    """Passes bytes between one device and a port on this machine, in threads of its own.

    Args:
        broker_port: where the connections go.
        sent: is given the device's bytes.
        received: is given the broker's bytes.

    Attributes:
        port: for the device to connect to.
        sent_bytes: from the device to the broker.
        received_bytes: from the broker to the device.
        accepted: how often the device has connected.
    """

    def __init__(
        self, broker_port: int, sent: Tap | None = None, received: Tap | None = None
    ) -> None:
        self.sent_bytes = self.received_bytes = self.accepted = 0
        self._broker_port, self._sent, self._received = broker_port, sent, received
        self._passes, self._is_cut, self._holds = Event(), False, 0
        self._passes.set()
        self._ends: set[socket.socket] = set()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End every connection at once and refuse new ones."""
        self._is_cut = True
        for end in list(self._ends):
            _shut(end)

    def hold(self) -> None:
        """Pass nothing on, and let connections stand: neither side notices it yet."""
        self._holds += 1
        self._passes.clear()

    def restore(self) -> None:
        """Let the device in again, and pass on what was held of connections that still stand.

        As in a network: what a device has sent by one that it has given up since never arrives.
        """
        self._is_cut = False
        self._passes.set()

    def close(self) -> None:
        """Stop listening and end all connections."""
        _shut(self._server)
        self._server.close()
        self.cut()
        self._passes.set()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                device, _ = self._server.accept()
                self.accepted += 1
                Thread(target=self._connect, args=(device,), daemon=True).start()

    def _connect(self, device: socket.socket) -> None:
        to = ("127.0.0.1", self._broker_port)
        self._passes.wait()  # what opens a connection does not reach the broker either
        if _has_ended(device):
            device.close()
            return
        with device, contextlib.suppress(OSError), socket.create_connection(to) as broker:
            self._pass_on(device, broker)

    def _pass_on(self, device: socket.socket, broker: socket.socket) -> None:
        """Pass bytes on in both directions until one side ends."""
        ends = {device, broker}
        self._ends |= ends
        if not self._is_cut:
            back = Thread(target=self._pump, args=(broker, device, self._count_received))
            back.start()
            self._pump(device, broker, self._count_sent)
            back.join()
        self._ends -= ends

    def _pump(self, source: socket.socket, target: socket.socket, count: Tap) -> None:
        holds = self._holds
        with contextlib.suppress(OSError):
            while chunk := source.recv(_CHUNK_BYTES):
                self._passes.wait()
                if holds != self._holds:  # it may have come while nothing passed
                    holds = self._holds
                    if _has_ended(source):
                        break
                count(chunk)
                target.sendall(chunk)
        _shut(source)
        _shut(target)

    def _count_sent(self, chunk: bytes) -> None:
        self.sent_bytes += len(chunk)
        if self._sent is not None:
            self._sent(chunk)

    def _count_received(self, chunk: bytes) -> None:
        self.received_bytes += len(chunk)
        if self._received is not None:
            self._received(chunk)


def _has_ended(end: socket.socket) -> bool:
    """Return whether the other side has ended a connection, whatever it has sent before.

    Where the kernel does not say so (only Linux does), it has not.
    """
    asked = getattr(socket, "TCP_INFO", None)
    with contextlib.suppress(OSError):
        info = b"" if asked is None else end.getsockopt(socket.IPPROTO_TCP, asked, 1)
        return info not in {b"", _ESTABLISHED}
    return True


def _shut(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
