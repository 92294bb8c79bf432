"""The relay counts what it passes on, and passes nothing on while it is cut."""

import asyncio
from collections.abc import Awaitable, Callable

from simulations.demo.relay import Relay

Play = Callable[[Relay], Awaitable[None]]


def with_relay(play: Play) -> Relay:
    """Play against a relay to a server that sends everything back twice."""

    async def twice(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(1 << 16):
            writer.write(chunk * 2)
            await writer.drain()
        writer.close()

    async def run() -> Relay:
        server = await asyncio.start_server(twice, "127.0.0.1", 0)
        relay = Relay(server.sockets[0].getsockname()[1])
        await relay.start()
        try:
            await asyncio.wait_for(play(relay), 20)
        finally:
            await relay.close()
            server.close()
        return relay

    return asyncio.run(run())


async def ask(relay: Relay, payload: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
    writer.write(payload)
    answer = await reader.readexactly(2 * len(payload))
    writer.close()
    return answer


def test_every_byte_arrives_and_is_counted_in_both_directions():
    payload = bytes(range(256)) * 4000

    async def play(relay: Relay) -> None:
        await ask(relay, payload)
        assert await ask(relay, b"abc") == b"abcabc"

    relay = with_relay(play)
    assert relay.sent_bytes == len(payload) + 3
    assert relay.received_bytes == 2 * relay.sent_bytes


def test_a_cut_ends_what_is_open_and_refuses_what_is_new_until_it_is_restored():
    async def play(relay: Relay) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
        writer.write(b"a")
        assert await reader.readexactly(2) == b"aa"
        relay.cut()
        assert await _ended(reader)
        reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
        writer.write(b"b")
        assert await _ended(reader)
        relay.restore()
        assert await ask(relay, b"c") == b"cc"

    relay = with_relay(play)
    assert (relay.sent_bytes, relay.received_bytes) == (2, 4)


def test_what_is_held_arrives_later_over_the_same_connection():
    async def play(relay: Relay) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
        writer.write(b"a")
        assert await reader.readexactly(2) == b"aa"
        relay.hold()
        writer.write(b"b")
        answer = asyncio.create_task(reader.readexactly(2))
        for _ in range(50):
            await asyncio.sleep(0)
        assert (relay.sent_bytes, answer.done()) == (1, False)
        relay.restore()
        assert await answer == b"bb"
        writer.close()

    assert with_relay(play).sent_bytes == 2


def test_a_broker_that_is_away_ends_the_connection():
    async def run() -> bool:
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        relay = Relay(port)
        await relay.start()
        reader, _ = await asyncio.open_connection("127.0.0.1", relay.port)
        ended = await _ended(reader)
        await relay.close()
        return ended

    assert asyncio.run(run())


async def _ended(reader: asyncio.StreamReader) -> bool:
    try:
        return await asyncio.wait_for(reader.read(1), 10) == b""
    except ConnectionError:
        return True
