"""The messages that came to a sink, by what they state of their devices."""

from collections import defaultdict, deque

from crdts import Version
from lasp_edge.protocol.accepted import Begun
from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.frames import BeatFrame, PaneFrame
from lasp_edge.protocol.limits import LATEST_PANE_US
from simulations.world.decoding import decoded

_KEPT = 8
"""Beats of a device that are kept."""


class Stated:
    """What came to one sink.

    Attributes:
        beats: device -> its last beats, and in which second each came.
    """

    def __init__(self) -> None:
        self.beats: dict[str, deque[tuple[int, BeatFrame]]] = defaultdict(
            lambda: deque(maxlen=_KEPT)
        )
        self._begun: dict[tuple[str, Version], set[Begun]] = defaultdict(set)
        self._begun_before: dict[str, list[tuple[int, Begun]]] = defaultdict(list)

    def hear(self, payload: bytes, second: int) -> None:
        """Note a beat or a frame of panes that came in a second."""
        try:
            frame = decoded(payload)
        except FrameError:
            return
        if isinstance(frame, BeatFrame):
            self.beats[frame.about].append((second, frame))
            at = frame.about, Version.of(frame.sender, frame.number)  # two cards may share it
            self._begun[at].add(sent_at_all(frame.begun))
        elif isinstance(frame, PaneFrame) and frame.begun:
            self._begun_before[frame.about].append((second, sent_at_all(frame.begun)))

    def held_by(self, device: str, second: int) -> set[str]:
        """Return who held a device by its last beat before a second, and since; "" for nobody."""
        beats = self.beats[device]
        before = [beat for at, beat in beats if at < second]
        return {beat.held_by for beat in [*before[-1:], *(b for at, b in beats if at >= second)]}

    def begun(self, device: str, version: Version, second: int) -> set[Begun]:
        """Return what a sink may take for the windows that lack readings of a device.

        Args:
            device: the device.
            version: of the beat by which it goes.
            second: in which that came first: a frame of panes that came later counts.
        """
        later = {begun for at, begun in self._begun_before[device] if at >= second}
        return (self._begun.get((device, version)) or {()}) | later


def sent_at_all(begun: Begun) -> Begun:
    """Return the windows that lack readings of a device, but for those to which it sends none."""
    return tuple(sorted(each for each in begun if each[1] != LATEST_PANE_US))
