"""The hub: broker, lander and operator, and the network between them and the devices."""

from collections.abc import Iterable
from random import Random

from lasp_edge.protocol.kinds import topic_of
from lasp_edge.protocol.topics import Topics
from simulations.fleet.broker import SimulatedBroker
from simulations.fleet.devices import SimulatedDevice
from simulations.fleet.faults import START_US, Faults
from simulations.fleet.lander import SimulatedLander
from simulations.fleet.network import Parcel, SimulatedNetwork
from simulations.fleet.operator import SimulatedOperator

IN_FLIGHT = 20
"""The most publications that a link takes in a step: mosquitto's receive maximum, unless set."""


class Hub:
    """All of a fleet but its devices.

    Attributes:
        now_us: virtual time.
        published_bytes: of all topics and payloads that agents published.
    """

    def __init__(
        self, topics: Topics, lander: SimulatedLander, random: Random, faults: Faults
    ) -> None:
        self.now_us = START_US
        self.faults = faults
        self.lander = lander
        self.broker = SimulatedBroker(topics)
        self.operator = SimulatedOperator(topics)
        self.published_bytes = 0
        self._topics = topics
        self._random = random
        self._network = SimulatedNetwork(random)

    def connect(self, device: SimulatedDevice) -> None:
        """Tell an agent that it is connected, and send it what the broker retained."""
        device.core.handle_connected(self.now_us)
        for topic, payload in self.broker.retained_for(device.name):
            self._send(Parcel(device.name, topic, payload))

    def collect(self, device: SimulatedDevice) -> None:
        """Let an agent tick, and send what it publishes; results for people go no further."""
        for sent, publication in enumerate(device.tick(self.now_us)):
            if sent == IN_FLIGHT or self._random.random() < self.faults.unsent:
                device.core.handle_unsent(publication)
                break
            topic, payload, retain, *_ = publication
            self.published_bytes += len(topic) + len(payload)
            if not topic.startswith(f"{self._topics.root}/out/"):
                self._send(Parcel("", topic, payload, retain))

    def deliver(self, devices: dict[str, SimulatedDevice]) -> None:
        """Hand over all that has arrived by now; the lander asks for what it lacks."""
        for ask in self.lander.asks(self.now_us):
            self._send(Parcel("", topic_of(ask, self._topics), ask.encode()))
        for message in self._network.arrivals(self.now_us):
            if message.to in devices:
                devices[message.to].hear(message.topic, message.payload, self.now_us)
            elif not message.to:
                self.route(message, devices)

    def route(self, message: Parcel, devices: Iterable[str]) -> None:
        """Let the broker pass on a message that has reached it."""
        topic, payload = message.topic, message.payload
        self.broker.publish(topic, payload, retain=message.retain)
        self.operator.hear(topic, payload)
        if self.broker.lands(topic):
            answer = self.lander.hear(topic, payload, self.now_us)
            if answer is not None and self._random.random() >= self.faults.lander_forgets:
                self._send(Parcel("", topic_of(answer, self._topics), answer.encode()))
        for device in self.broker.receivers(topic, devices):
            self._send(Parcel(device, topic, payload))

    def repeat_commands(self, devices: dict[str, SimulatedDevice]) -> None:
        """Let the operator publish the commands again that are not known everywhere."""
        held = [device.membership() for device in devices.values() if device.durable is not None]
        for message in self.operator.repeated([self.lander.membership], held):
            self.route(message, devices)

    def reset_broker(self) -> None:
        """The broker has lost everything, and so has the network."""
        self.broker.retained.clear()
        self._network.clear()

    def _send(self, message: Parcel) -> None:
        self._network.send(message, self.now_us, self.faults)
