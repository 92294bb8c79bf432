"""The law of what a broker sends again, over drawn histories: each reading counts, and once.

A broker sends again what was not acknowledged over a connection that broke. One that restarts has
kept its messages and numbers their packets anew: nobody can tell then whether a reading comes for
the first time, so it may count twice, and is never lost.
"""

import random
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from device_agent.agent.sources.choice import source_from_spec
from device_agent.agent.sources.source import SourceContext
from lasp_edge.link import BrokerUrl, Message

ACTIONS = ("publish", "poll", "acknowledge", "lose what is acknowledged", "cut", "restart")


class Broker:
    """A broker with one session, in place of the link to it."""

    def __init__(self):
        self.unconfirmed, self.flying, self.restarts = {}, [], 0
        self._packets, self._connection, self._hears = count(1), 1, True

    def publish(self, value):
        packet = next(self._packets)
        self.unconfirmed[packet] = value
        self._send(packet, again=False)

    def _send(self, packet, *, again):
        payload, token = str(self.unconfirmed[packet]).encode(), (self._connection, packet)
        message = Message("t", payload, retain=False, qos=1, token=token, again=again)
        self.flying.append(message)

    def poll(self, _wait_s):
        arrived, self.flying = self.flying, []
        return arrived

    def acknowledge(self, message):
        connection, packet = message.token
        if connection == self._connection and self._hears:
            self.unconfirmed.pop(packet, None)

    def cut(self):
        self._connection, self._hears, self.flying = self._connection + 1, True, []
        for packet in self.unconfirmed:
            self._send(packet, again=True)

    def restart(self):
        kept, self._packets = self.unconfirmed.values(), count(1)
        self.unconfirmed = {next(self._packets): value for value in kept}
        self.restarts += 1
        self.cut()

    def lose_acknowledgements(self):
        """Hear nothing more over this connection."""
        self._hears = False


class Reader:
    """A process that reads the topic, and what it has taken."""

    def __init__(self, broker):
        context = SourceContext(["t"], "d", random.Random(1), BrokerUrl.parse("mqtt://localhost:1"))
        self.source = source_from_spec("mqtt:t", context)
        self.source.link = broker
        self.taken, self._cursor = [], None

    def poll(self):
        while (batch := self.source.poll(0)) is not None:
            self.taken += batch.values
            self._cursor = batch.cursor

    def acknowledge(self):
        self.source.acknowledge(self._cursor)


@given(st.lists(st.sampled_from(ACTIONS), min_size=25, max_size=40))
def test_what_is_sent_again_counts_once_and_nothing_is_lost(actions):
    broker, values = Broker(), count(1)
    reader = Reader(broker)
    does = {
        "publish": lambda: broker.publish(next(values)),
        "poll": reader.poll,
        "acknowledge": reader.acknowledge,
        "lose what is acknowledged": broker.lose_acknowledgements,
        "cut": broker.cut,
        "restart": broker.restart,
    }
    for action in (*actions, "cut", "poll"):
        does[action]()
    assert set(reader.taken) == set(range(1, next(values)))
    if not broker.restarts:
        assert len(reader.taken) == len(set(reader.taken))
