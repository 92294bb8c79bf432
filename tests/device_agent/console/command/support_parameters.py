"""A fleet of real cores on virtual time, and commands that speak with it without a broker."""

import argparse
from contextlib import contextmanager

from device_agent.agent.settings import Settings
from lasp_edge.protocol.frames import AskFrame
from lasp_edge.protocol.publication import Publication
from tests.device_agent.support_site import Site
from tests.lasp_edge.language.support_controlled import greenhouse

program = greenhouse()
PROGRAM = "tests.device_agent.console.command.support_parameters:program"
SETTINGS = Settings(fence_wait_us=0)


class Fleet(Site):
    """A site to which commands publish."""

    def __init__(self, directory, *names):
        super().__init__(directory, program.plan(), *names, settings=SETTINGS)
        self.run(3)

    def publish(self, frame):
        self.pass_on(Publication.of(frame, self.devices["attic"].core.agent.topics))


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
            for each in self._fleet.run():
                self._view.take(each.topic, each.payload, 0)
            if not more():
                return

    def publish(self, command):
        frame = None
        while frame is None or not self._view.commands.is_newest(frame):
            sent = frame = command()
            self._fleet.publish(sent)
            self.listen(lambda sent=sent: self._view.commands.is_newest(sent))
        return frame


def ran(monkeypatch, fleet, command, *words, ahead_us=0):
    """Run a command on a fleet, from a machine whose clock is that far ahead."""

    @contextmanager
    def session(_arguments, view, _filters):
        yield Session(fleet, view)

    monkeypatch.setattr(f"{command.__name__}.FleetSession", session)
    if hasattr(command, "now_us"):
        monkeypatch.setattr(f"{command.__name__}.now_us", lambda: fleet.now_us + ahead_us)
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.run(parser.parse_args([PROGRAM, *words, "--broker", "mqtt://there"]))
