"""A wire between one device and the broker that counts every byte, and can be cut or deaf.

Each device of the demo connects to its own relay on the loopback interface, and the relay to the
broker. So the bytes are those of the sockets, MQTT's own included, in both directions, and cutting
one device off takes neither rights nor the broker's help.
"""

import asyncio
import contextlib
from collections.abc import Callable

_CHUNK_BYTES = 1 << 16

Tap = Callable[[bytes], None]


class Relay:
    """Passes bytes between one device and a port on this machine.

    Args:
        broker_port: where the connections go.
        sent: is given what the device sends.
        received: is given what the broker sends.

    Attributes:
        sent_bytes: from the device to the broker.
        received_bytes: from the broker to the device.
        is_cut: connections end at once.
    """

    def __init__(
        self, broker_port: int, sent: Tap | None = None, received: Tap | None = None
    ) -> None:
        self.sent_bytes = 0
        self.received_bytes = 0
        self.is_cut = False
        self._hears = asyncio.Event()
        self._hears.set()
        self._broker_port = broker_port
        self._sent, self._received = sent or _ignore, received or _ignore
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)

    @property
    def port(self) -> int:
        """The port that the device connects to."""
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def cut(self) -> None:
        """End every connection at once and refuse new ones."""
        self.is_cut = True
        for writer in list(self._writers):
            writer.transport.abort()

    def hold(self) -> None:
        """Pass nothing on, and let connections stand: whoever is there does not notice it yet."""
        self._hears.clear()

    def restore(self) -> None:
        """Let the device in again, and pass on what was held."""
        self.is_cut = False
        self._hears.set()

    async def close(self) -> None:
        """Stop listening and end what is open."""
        self.cut()
        self._hears.set()
        if self._server is not None:
            self._server.close()

    async def _connected(
        self, device_reader: asyncio.StreamReader, device_writer: asyncio.StreamWriter
    ) -> None:
        if self.is_cut:
            device_writer.transport.abort()
            return
        try:
            broker_reader, broker_writer = await asyncio.open_connection(
                "127.0.0.1", self._broker_port
            )
        except OSError:
            device_writer.transport.abort()
            return
        ends = {device_writer, broker_writer}
        self._writers |= ends
        try:
            await asyncio.gather(
                _pass_on(device_reader, broker_writer, self._count_sent, self._hears),
                _pass_on(broker_reader, device_writer, self._count_received, self._hears),
            )
        finally:
            self._writers -= ends
            for writer in ends:
                writer.transport.abort()

    def _count_sent(self, chunk: bytes) -> None:
        self.sent_bytes += len(chunk)
        self._sent(chunk)

    def _count_received(self, chunk: bytes) -> None:
        self.received_bytes += len(chunk)
        self._received(chunk)


def _ignore(_chunk: bytes) -> None:
    pass


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, count: Tap, hears: asyncio.Event
) -> None:
    """Pass bytes on until one side ends, then end the other."""
    with contextlib.suppress(OSError):
        while chunk := await reader.read(_CHUNK_BYTES):
            await hears.wait()
            count(chunk)
            writer.write(chunk)
            await writer.drain()
    writer.close()
