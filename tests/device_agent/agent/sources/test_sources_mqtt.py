"""An MQTT topic as a source: acknowledged once durable, redelivered until then."""

import random
import socket
from contextlib import suppress
from threading import Thread

import pytest

from device_agent.agent.sources.choice import source_from_spec
from device_agent.agent.sources.mqtt_topic import SENT_AGAIN
from device_agent.agent.sources.source import SourceContext
from lasp_edge.link import BrokerUrl, Link, Message
from lasp_edge.link.connection import now_s
from tests.brokers import until_connected, until_true

pytestmark = pytest.mark.broker


@pytest.fixture
def sender(broker):
    link = Link(BrokerUrl.parse(broker.url), client_id="sender", jitter=random.Random(1))
    link.start()
    until_connected(link)
    yield link
    link.stop()


@pytest.fixture
def opened(broker):
    """Return a function that opens the source as a process would; all are closed at the end."""
    sources = []

    def start(topic, *, cursor=None, url=broker.url, fleet="", **options):
        context = SourceContext(
            ["temperature", "humidity"],
            "d",
            random.Random(1),
            BrokerUrl.parse(url),
            options,
            fleet=fleet,
        )
        source = source_from_spec(f"mqtt:{topic}", context)
        sources.append(source)
        source.open(cursor)
        until_true(lambda: source.link.connected)
        return source

    yield start
    for source in sources:
        source.close()


def polled(source, count):
    """Poll until so many messages were taken, and return the batches."""
    batches, taken = [], 0

    def enough():
        nonlocal taken
        batch = source.poll(0)
        if batch is not None:
            batches.append(batch)
            taken = int(batch.cursor.partition(" ")[0])
        return taken >= count

    until_true(enough)
    return batches


def send(link, topic, *payloads, retain=False):
    for payload in payloads:
        until_true(lambda payload=payload: link.publish(topic, payload, retain=retain))
    until_true(lambda: link.in_flight == 0)


def readings(batches):
    return [
        reading
        for batch in batches
        for reading in zip(batch.names, batch.times_us, batch.values, strict=True)
    ]


def refused(batches):
    counts = {}
    for batch in batches:
        for reason, count in batch.refused.items():
            counts[reason] = counts.get(reason, 0) + count
    return counts


def test_agents_of_two_fleets_on_one_machine_take_every_message_each(opened, sender):
    both = [opened("home/#", fleet=fleet) for fleet in ("house", "garden")]
    values = [20 + number for number in range(8)]
    send(sender, "home/temperature", *[b"%d" % value for value in values])
    for source in both:
        assert [value for _, _, value in readings(polled(source, 8))] == values
        assert source.link.counts.connections == 1


def test_objects_and_bare_numbers_become_readings(opened, sender):
    source = opened("home/#")
    send(sender, "home/x", b'{"temperature": 21.5, "humidity": 40}')
    send(sender, "home/kitchen/temperature", b"22", b" 22.5 ")
    send(sender, "home/kitchen/pressure", b"1000")
    send(sender, "home/temperature", b'[{"temperature": 1}, 2]', b'"3"', b"ON", b"null", b"[[]]")
    send(sender, "home/x", b"", b"\xff", b"{bad", b'{"other": 1}')
    batches = polled(source, 13)
    assert readings(batches) == [
        ("temperature", None, 21.5),
        ("humidity", None, 40),
        ("temperature", None, 22),
        ("temperature", None, 22.5),
        ("temperature", None, 1),
        ("temperature", None, 2),
        ("temperature", None, 3),
        ("temperature", None, 1),
    ]
    assert refused(batches) == {
        "neither a JSON object nor a value": 2,
        "not JSON": 3,
        'no event "pressure": the program has "temperature", "humidity"': 1,
        'no event of temperature, humidity: the message has "other"': 1,
    }


def test_a_text_on_a_topic_without_an_event_is_not_json(opened, sender):
    source = opened("s/#")
    send(sender, "s/s4", b"not json", b"21", b"on", b'"a text"')
    none = 'no event "s4": the program has "temperature", "humidity"'
    assert refused(polled(source, 4)) == {f"not JSON, and {none}": 1, none: 3}


def test_the_only_mapped_event_is_what_a_bare_number_is(opened, sender):
    source = opened("s/+", event={"temperature": "data.temp"})
    send(sender, "s/1", b"22", b'{"data": {"temp": 23}}')
    assert [value for _, _, value in readings(polled(source, 2))] == [22, 23]


def test_own_times_and_tags_are_read_from_the_object(opened, sender):
    source = opened("s/+", time="ts", tag={"room": "room"})
    send(sender, "s/temperature", b'{"ts": 12, "temperature": 1, "room": "a"}', b"7")
    batches = polled(source, 2)
    assert readings(batches) == [("temperature", 12_000_000, 1)]
    assert [dict(tags) for batch in batches for tags in batch.tags] == [{"room": "a"}]
    assert refused(batches) == {'no field "ts": the message has "temperature"': 1}


def test_the_topic_is_what_a_reading_came_on_unless_its_tags_tell_it(opened, sender):
    wild, named = opened("s/+", time="ts"), opened("s/{sensor}", time="ts")
    send(sender, "s/1", b'[{"ts": 12, "temperature": 1, "humidity": 2}]')
    send(sender, "s/2", b'{"ts": 12, "temperature": 1}')
    (batch,) = polled(wild, 2)
    assert batch.places == ["s/1", "s/1", "s/2"]
    assert [one.places for one in polled(named, 2)] == [[]]


@pytest.mark.parametrize("broker", ["mosquitto"], indirect=True)  # the other keeps no session
def test_what_was_not_durable_comes_again_and_what_came_meanwhile_too(opened, sender):
    source = opened("s")
    send(sender, "s", b'{"temperature": 1}', b'{"temperature": 2}')
    polled(source, 2)
    source.acknowledge("1")
    source.acknowledge(None)
    source.close()
    send(sender, "s", b'{"temperature": 3}')
    again = opened("s")
    assert [value for _, _, value in readings(polled(again, 2))] == [2, 3]
    again.acknowledge("2")
    again.close()
    last = opened("s")
    send(sender, "s", b'{"temperature": 4}')
    assert [value for _, _, value in readings(polled(last, 1))] == [4]


def _arrive(source, monkeypatch, *ages_s):
    """Let messages wait at the source that came some seconds ago."""
    payload = b'{"temperature": 1}'
    messages = [
        Message("s", payload, retain=False, qos=0, token=(0, 0), arrived_s=now_s() - age_s)
        for age_s in ages_s
    ]
    polls = iter([messages])
    monkeypatch.setattr(source.link, "poll", lambda _timeout_s: next(polls, []))


def test_after_much_the_source_looks_again_soon_and_else_at_the_next_tick(opened, monkeypatch):
    source = opened("s")
    assert (source.poll(5), source.due_us(5)) == (None, 500_005)
    _arrive(source, monkeypatch, *[0.0] * 8)
    assert (len(source.poll(5)), source.due_us(5)) == (8, 100_005)
    assert (source.poll(5), source.due_us(5)) == (None, 500_005)


def test_messages_that_came_together_are_a_batch_with_their_time(opened, monkeypatch):
    source = opened("s")
    _arrive(source, monkeypatch, 30.40, 30.35, 20.0, 0.0)
    batches = [source.poll(60_000_000) for _ in range(3)]
    assert [len(batch) for batch in batches] == [2, 1, 1]
    ages_us = [60_000_000 - batch.arrived_us for batch in batches]
    assert ages_us == pytest.approx([30_350_000, 20_000_000, 0], abs=5_000_000)
    assert source.poll(60_000_000) is None


def test_what_the_broker_retained_is_no_reading_at_any_start(opened, sender, broker):
    send(sender, "home/temperature", b"21.5", retain=True)
    for _ in range(2):
        source = opened("home/#")
        batches = polled(source, 1)
        assert readings(batches) == []
        times = {1} if broker.kind == "mosquitto" else {1, 2}  # amqtt gives it twice, later
        (total,) = refused(batches).values()
        assert total in times
        assert list(refused(batches)) == ["retained by the broker (--retained takes it once)"]
        source.acknowledge(batches[-1].cursor)
        source.close()
    source = opened("home/#")
    polled(source, 1)
    send(sender, "home/temperature", b"22", retain=True)  # now it is news
    values = []
    while not values:  # who had to connect again was given the retained one again
        values = [value for _, _, value in readings(polled(source, 1))]
    assert values == [22]


@pytest.mark.parametrize("broker", ["mosquitto"], indirect=True)  # the other keeps no session
def test_what_the_broker_retained_counts_once_by_its_content_where_it_is_asked_for(opened, sender):
    send(sender, "home/temperature", b"21.5", retain=True)
    first = opened("home/#", retained=True)
    batches = polled(first, 1)
    first.acknowledge(batches[-1].cursor)
    first.close()
    again = opened("home/#", retained=True, cursor=batches[-1].cursor)
    batches += polled(again, 1)  # the same once more
    again.acknowledge(batches[-1].cursor)
    again.close()
    send(sender, "home/temperature", b"22", retain=True)
    last = opened("home/#", retained=True, cursor=batches[-1].cursor)
    batches += polled(last, 2)  # kept for the session, and retained for all
    assert [value for _, _, value in readings(batches)] == [21.5, 22]


class Tunnel:
    """A way to the broker that is cut without a word to either side."""

    def __init__(self, port):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"mqtt://127.0.0.1:{self._listener.getsockname()[1]}"
        self._port, self._ends = port, []
        self.answers = True
        Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._port))
                self._ends += [near, far]
                self.answers = True
                Thread(target=self._pump, args=(far, near, True), daemon=True).start()
                Thread(target=self._pump, args=(near, far, False), daemon=True).start()

    def _pump(self, source, target, is_down):
        with suppress(OSError):
            while data := source.recv(65_536):
                if is_down or self.answers:  # else what the agent says is lost on the way
                    target.sendall(data)

    def cut(self):
        ends, self._ends = self._ends, []
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.cut()
        self._listener.close()


@pytest.mark.parametrize("broker", ["mosquitto"], indirect=True)  # the other keeps no session
def test_what_is_sent_again_for_a_lost_acknowledgement_counts_once(opened, sender, broker):
    tunnel = Tunnel(broker.port)
    source = opened("s", url=tunnel.url)
    send(sender, "s", b'{"temperature": 1}', b'{"temperature": 1}')
    batches = polled(source, 2)
    tunnel.answers = False
    source.acknowledge(batches[-1].cursor)
    send(sender, "s", b'{"temperature": 1}')
    batches += polled(source, 3)
    tunnel.cut()
    until_true(lambda: not source.link.connected)
    send(sender, "s", b'{"temperature": 1}', b'{"temperature": 2}')  # while nobody listens
    batches += polled(source, 8)
    assert [value for _, _, value in readings(batches)] == [1, 1, 1, 1, 2]
    assert refused(batches) == {SENT_AGAIN: 3}
    source.acknowledge(batches[-1].cursor)
    send(sender, "s", b'{"temperature": 3}')
    batches += polled(source, 9)
    assert readings(batches)[-1][2] == 3
    source.close()
    tunnel.close()


def test_a_packet_that_is_numbered_as_one_before_and_holds_something_else_is_a_reading(
    monkeypatch,
):
    """The broker has lost its session, counts from 1 again, and repeats what it then sent."""
    context = SourceContext(
        ["temperature"], "d", random.Random(1), BrokerUrl.parse("mqtt://localhost:1")
    )
    source = source_from_spec("mqtt:home/temperature", context)

    def taken(payload, connection, *, again):
        message = Message(
            "home/temperature", payload, retain=False, qos=1, token=(connection, 1), again=again
        )
        monkeypatch.setattr(source.link, "poll", lambda _wait_s: [message])
        batch = source.poll(0)
        return list(batch.values), dict(batch.refused)

    assert taken(b"20", 1, again=False) == ([20], {})
    assert taken(b"21", 2, again=True) == ([21], {})
    assert taken(b"21", 3, again=True) == ([], {SENT_AGAIN: 1})
