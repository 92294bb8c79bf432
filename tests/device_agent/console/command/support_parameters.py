"""A fleet of real cores on virtual time, and commands that speak with it without a broker."""

import argparse
from contextlib import contextmanager

from device_agent.agent.settings import Settings
from lasp_edge.protocol.frames import AskFrame, PresenceFrame
from lasp_edge.protocol.kinds import decode
from lasp_edge.protocol.topics import topic_of
from lasp_edge.units import SECOND_US as S
from tests.device_agent.agents import NOW_US, Device, is_of_frames
from tests.lasp_edge.language.support_controlled import greenhouse

program = greenhouse()
PROGRAM = "tests.device_agent.console.command.support_parameters:program"
SETTINGS = Settings(fence_wait_us=0)


class Fleet:
    """Devices, and what the broker retains.

    Attributes:
        away: the devices that are not connected.
        forgets: the broker has lost what it retained of parameters.
    """

    def __init__(self, directory, *names):
        plan = program.plan()
        self.devices = {
            name: Device(directory / name, plan, settings=SETTINGS, name=name) for name in names
        }
        self.retained, self.away = {}, set()
        self.now_us = NOW_US
        self.wait(3)

    def leave(self, name):
        """Let a device lose its connection: the broker tells its last will."""
        device = self.devices[name]
        self.away.add(name)
        device.core.handle_disconnected()
        will = PresenceFrame(device.core.replica, 1, online=False)
        self.retained[device.topic_of(will)] = will.encode()

    def come_back(self, name):
        self.away.remove(name)
        device = self.devices[name]
        device.core.handle_connected(device.now_us)
        for topic, payload in self.retained.items():
            self._bring(device, topic, payload)

    def wait(self, seconds):
        """Let time pass; yield all that is published."""
        self.now_us += seconds * S
        heard = []
        for name, device in self.devices.items():
            for topic, payload, retain, *_ in device.tick((self.now_us - device.now_us) / S):
                if retain:
                    self.retained[topic] = payload
                if name not in self.away:
                    heard.append((topic, payload))
        for topic, payload in heard:
            for name in self.devices.keys() - self.away:
                self._bring(self.devices[name], topic, payload)
        return heard

    def publish(self, frame):
        topic = topic_of(frame, self.devices["attic"].core.agent.topics)
        if not isinstance(frame, AskFrame):
            self.retained[topic] = frame.encode()
        for name in sorted(self.devices.keys() - self.away):
            self._bring(self.devices[name], topic, frame.encode())

    def _bring(self, device, topic, payload):
        if is_of_frames(topic):
            frame = decode(payload)
            if not isinstance(frame, AskFrame) or frame.about == device.name:
                device.durable.hear(topic, payload, device.now_us)


class Session:
    """In place of a session at a broker."""

    def __init__(self, fleet, view):
        self._fleet, self._view = fleet, view
        self._asked = 0
        for topic, payload in fleet.retained.items():
            view.take(topic, payload, 0)

    def ask(self, device):
        self._asked += 1
        sender = self._view.commands.sender
        self._fleet.publish(AskFrame(sender, self._asked, device, ""))

    def listen(self, more):
        for _ in range(12):
            for topic, payload in self._fleet.wait(1):
                self._view.take(topic, payload, 0)
            if not more():
                return

    def publish(self, command):
        frame = None
        while frame is None or not self._view.commands.is_newest(frame):
            sent = frame = command()
            self._fleet.publish(sent)
            self.listen(lambda sent=sent: self._view.commands.is_newest(sent))
        return frame


def ran(monkeypatch, fleet, command, *words):
    """Run a command on a fleet."""

    @contextmanager
    def session(_arguments, view, _filters):
        yield Session(fleet, view)

    monkeypatch.setattr(f"{command.__name__}.FleetSession", session)
    if hasattr(command, "now_us"):
        monkeypatch.setattr(f"{command.__name__}.now_us", lambda: fleet.now_us)
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.run(parser.parse_args([PROGRAM, *words, "--broker", "mqtt://there"]))
