"""Shared variables as a lander knows them: it joins the frames of devices, and never writes.

What devices leave at the broker joins to the fleet's state (`device_agent.agent.variables.states`),
so a lander that subscribes is given all of it, whenever it comes. It holds the join, to tell what
is news, and gives on nothing else. Should a message be lost on the way to it alone, a digest in
some beat differs, and it asks that device for what it lacks, as devices ask each other.

    >>> from crdts import GSet
    >>> from crdts.wire import encode
    >>> heard = Overheard({"doors": (5, GSet())})
    >>> frame = SharedFrame(Replica(1, 7, "pi-1"), 1, "doors", 5, 0, encode(GSet({"front"})))
    >>> heard.take(frame), heard.take(frame)
    (GSet(elements={'front'}), None)
"""

from collections.abc import Iterator, Mapping
from typing import Final

from crdts import Lattice, Replica, decode
from crdts.tally import Tally
from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.differences import Differences
from lasp_edge.protocol.frames import BeatFrame
from lasp_edge.protocol.sharing import RepairFrame, SharedFrame, SummaryFrame, packed_digest
from lasp_edge.units import SECOND_US

ANOTHER_DEFINITION: Final = "variable: another definition"
_SETTLED_US: Final = 120 * SECOND_US
"""Two beats of a device that saves energy."""


class _Held:
    """A variable's state, and its digest as devices report it."""

    def __init__(self, stream: int, bottom: Lattice, state: Lattice | None) -> None:
        self.stream, self.bottom = stream, bottom
        self._tally = Tally(bottom.copy() if state is None else state)

    @property
    def state(self) -> Lattice:
        """The join of all that was heard."""
        return self._tally.state

    @property
    def digest(self) -> int:
        """What a device that holds the same reports."""
        return self._tally.total

    def hear(self, part: Lattice) -> Lattice | None:
        """Join a part of the state; return what is news in it, None if nothing is."""
        news = part - self.state
        if news <= self.state:
            return None
        self._tally.join(news)
        return news


class Overheard:
    """The shared variables of a program, joined from the frames of a fleet's devices.

    Args:
        variables: name -> the id of its meaning, and the state that it starts with.
        states: what was heard before, by name.
    """

    def __init__(
        self,
        variables: Mapping[str, tuple[int, Lattice]],
        states: Mapping[str, Lattice] | None = None,
    ) -> None:
        known = {} if states is None else states
        self._held = {
            name: _Held(stream, bottom, known.get(name))
            for name, (stream, bottom) in variables.items()
        }
        self._differences = Differences("", self._held, _SETTLED_US)
        self._asked = 0

    @property
    def states(self) -> dict[str, Lattice]:
        """The state of each variable."""
        return {name: held.state for name, held in self._held.items()}

    def take(self, frame: SharedFrame | RepairFrame) -> Lattice | None:
        """Join the part of a state that a frame holds, and return what is news; None if nothing is.

        Raises:
            FrameError: it is of another variable, or of no variable at all.
        """
        held = self._held.get(frame.variable)
        if held is None or held.stream != frame.stream:
            raise FrameError(ANOTHER_DEFINITION)
        try:
            part = decode(frame.state)
        except ValueError:
            raise FrameError(ANOTHER_DEFINITION) from None
        if not held.bottom.is_like(part):
            raise FrameError(ANOTHER_DEFINITION)
        news = held.hear(part)
        if news is not None and isinstance(frame, RepairFrame):
            self._differences.take_repair(frame.variable)
        return news

    def connected(self) -> None:
        """Note a new connection."""
        self._differences.restart()

    def compare(self, beat: BeatFrame, now_us: int) -> None:
        """Note the digests in a device's beat."""
        self._differences.take_reports(beat, now_us)

    def asks(self, sender: Replica, now_us: int) -> Iterator[SummaryFrame]:
        """Yield the questions that are due: a device answers with the missing parts."""
        for device, name in self._differences.due(now_us):
            held = self._held[name]
            self._asked += 1
            yield SummaryFrame(
                sender, self._asked, device, name, held.stream, packed_digest(held.state)
            )
