"""Devices of one program at one broker that keeps what is retained, in this process."""

from lasp_edge.protocol.kinds import FRAME_KINDS, Subscriber
from lasp_edge.protocol.sizes import MAX_FRAME_BYTES
from lasp_edge.units import SECOND_US
from tests.device_agent.agents import NOW_US, Device, is_of_frames

_TO_ONE = {row.topic for row in FRAME_KINDS.values() if not row.subscribers & Subscriber.DEVICES}


class Site:
    """Devices on one clock that hear each other; each can be away.

    Attributes:
        devices: by name.
        retained: what the broker keeps, by topic.
        sent: what has passed the broker, since a test has cleared it.
        away: the devices without a connection.
    """

    def __init__(self, directory, plan, *names, **more):
        self.directory, self.plan, self._more = directory, plan, more
        self.devices, self.retained, self.sent, self.away = {}, {}, [], set()
        self.now_us = NOW_US
        for name in names:
            self.add(name)

    def add(self, name):
        """Put a device there, and return it."""
        place = self.directory / name
        self.devices[name] = Device(
            place, self.plan, name=name, **{"now_us": self.now_us, **self._more}
        )
        self.connect(name)
        return self.devices[name]

    def connect(self, name):
        """Connect a device: it hears all that is retained."""
        device = self.devices[name]
        self.away.discard(name)
        device.core.handle_connected(device.now_us)
        for topic, payload in sorted(self.retained.items()):
            self._bring(name, topic, payload)

    def leave(self, name):
        """Let a device lose its connection: the broker publishes its last will."""
        core = self.devices[name].core
        will = core.beats.presence(online=False)
        self.away.add(name)
        core.handle_disconnected()
        self.pass_on(will)

    def lose(self, name):
        """Let a device lose its store."""
        self.devices[name].kill()
        for path in (self.directory / name).iterdir():
            path.unlink()
        self.away.discard(name)
        self.add(name)

    def run(self, rounds=1, seconds=1):
        """Let time pass; return what has passed the broker."""
        before = len(self.sent)
        for _ in range(rounds):
            self.now_us += round(seconds * SECOND_US)
            for name, device in list(self.devices.items()):
                published = device.tick((self.now_us - device.now_us) / SECOND_US)
                for publication in published if name not in self.away else ():
                    self.pass_on(publication)
        return self.sent[before:]

    def pass_on(self, publication):
        """Let the broker keep a message, where it is to be retained, and all devices hear it."""
        topic, payload = publication.topic, publication.payload
        assert len(payload) <= MAX_FRAME_BYTES
        self.sent.append(publication)
        if publication.retain:
            self.retained[topic] = payload
            if not payload:
                del self.retained[topic]
        for name in self.devices.keys() - self.away:
            self._bring(name, topic, payload)

    def _bring(self, name, topic, payload):
        device = self.devices[name]
        levels = topic.split("/")
        is_heard = topic in device.core.subscriptions()
        if is_of_frames(topic):
            is_heard = levels[4] not in _TO_ONE or levels[5] == name
        if is_heard:
            device.durable.hear(topic, payload, device.now_us)
