"""A device and some landers, whose answers take as long as one says."""

from lasp_edge.protocol.frames import PaneFrame
from lasp_edge.units import SECOND_US
from tests.device_agent.agents import NOW_US, PANE_US


def sink(device, name="lake"):
    return device.core.report()["sinks"][name]


def full(device, panes=30):
    device.read([20.0] * panes, [NOW_US + pane * PANE_US for pane in range(panes)])
    device.core.handle_end()
    return panes


def starts(frames):
    """Return the starts of all panes in frames."""
    return sorted(
        pane_us for frame in frames for block in frame.blocks for pane_us in block.panes_us
    )


class Fleetlet:
    """A device and some landers; every answer arrives after some seconds."""

    def __init__(self, device, *landers, latency_s=0):
        self.device, self.landers, self.latency_s = device, landers, latency_s
        self.flying = []
        self.sent_entries = 0

    def run(self, seconds, step_s=1.0, up=lambda second: True):
        """Let time pass; the connection is up in the seconds for which `up` holds."""
        device, was_up = self.device, True
        for second in range(int(seconds / step_s)):
            is_up = up(second)
            if is_up and not was_up:
                device.core.handle_connected(device.now_us)
            if was_up and not is_up:
                device.core.handle_disconnected()
            was_up = is_up
            for publication in device.tick(step_s):
                if "/pane/" in publication.topic or "/beat/" in publication.topic:
                    (frame,) = device.frames(object, [publication])
                    self._lands(frame)
            device.sent.clear()
            if is_up:
                self._arrive()

    def _lands(self, frame):
        device = self.device
        if isinstance(frame, PaneFrame):
            self.sent_entries += len(starts([frame]))
        for lander in self.landers:
            answer = lander.hear(device.topic_of(frame), frame.encode(), device.now_us)
            if answer is not None:
                self.flying.append((device.now_us + self.latency_s * SECOND_US, answer))

    def _arrive(self):
        now_us = self.device.now_us
        arrived = [answer for at_us, answer in self.flying if at_us <= now_us]
        self.flying = [each for each in self.flying if each[0] > now_us]
        for answer in arrived:
            self.device.hear(answer)
