"""Cores of agents on a virtual clock, each behind a real link to a real broker."""

import itertools
from random import Random

from lasp_edge.link import BrokerUrl, Connected, Link, Will
from tests.brokers import until_connected, until_true
from tests.device_agent.agents import Device

_NUMBERS = itertools.count()


class LinkedAgents:
    """Cores of agents behind real links, on a virtual clock."""

    def __init__(self, url, tmp_path, plan, names, settings):
        self.devices = [
            Device(tmp_path / f"{number}", plan, name=name, settings=settings)
            for number, name in enumerate(names)
        ]
        self.links = {}
        for device in self.devices:
            will = device.core.beats.presence(online=False)
            self.links[device.name] = Link(
                BrokerUrl.parse(url),
                client_id=f"agent-{next(_NUMBERS)}",
                subscriptions=device.core.subscriptions(),
                last_will=Will(will.topic, will.payload),
                jitter=Random(1),
            )

    def start(self):
        for link in self.links.values():
            link.start()
            until_connected(link)

    def play(self, enough=lambda: False, rounds=12):
        """Let virtual time pass, and real messages travel, until it is enough."""
        for _ in range(rounds):
            for device in self.devices:
                link = self.links[device.name]
                for topic, payload, retain, _, qos in device.tick(5):
                    assert link.publish(topic, payload, qos=qos, retain=retain)
            until_true(lambda: all(link.in_flight == 0 for link in self.links.values()))
            for device in self.devices:
                for event in self.links[device.name].poll(0.02):
                    if not isinstance(event, Connected) and hasattr(event, "topic"):
                        device.durable.hear(event.topic, event.payload, device.now_us)
            if enough():
                return

    def stop(self):
        for device in self.devices:
            self.links[device.name].stop(0)
            device.kill()
