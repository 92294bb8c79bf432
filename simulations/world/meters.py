"""Meters: a recording beside the first one, whose lines come late, twice, and are taken back.

Its readings are what the streams of a program are made from, where it has any (`streamed`).
"""

from collections import defaultdict
from functools import cache
from math import inf
from random import Random
from typing import NamedTuple

from device_agent.agent.intake.batch import Batch
from device_agent.agent.stored_rows import Retraction
from lasp_edge.event import tags_text, text_of_stream
from lasp_edge.ordered.cells import PRESENT, RETRACTED, Cell, Item, cell_of
from simulations.world.streamed import METERED, METERS

BURSTS = (0, 0, 1, 1, 2, 3)
"""From which the number of a step's lines is drawn."""
SELDOM = (0, 0, 0, 0, 1, 2)
"""The same where readings are punctual: others wait for each of them."""
REPEATED, TAKEN_BACK, TAKEN_BACK_BEFORE = 0.1, 0.15, 0.03
"""Lines that stand once more, take an earlier one back, or one that comes after them."""
AT_ONCE = 0.3
"""How many of them take back the line right before them: both are read for one commit."""
OVERTAKEN_COMES = 0.3
"""How probable it is in a step that such a one comes: what takes it back may be durable by then."""
SETTLED_US = 2_000_000
"""How old a line of the cell that grows is before it is taken back: it may be promised by then."""
SAME_TIME = 0.2
"""Lines of the time of the line before: only what they say tells them apart."""
LINES = 8
"""Lines that are given at once, at most."""
VALUES = 9
TOPICS, APART = 2, 16
"""Topics on which lines come; of each this many lines every other stretch comes on none, as those
of a file."""


class MeterLine(NamedTuple):
    """A line of a meter's recording.

    Attributes:
        time_us: its own time.
        value: a small whole number.
        tap: its tag.
        topic: what it came on; "" for none. Two sensors may agree, and are two.
        retracted: it takes an equal line back.
    """

    time_us: int
    value: int
    tap: str
    topic: str
    retracted: bool = False

    @property
    def item(self) -> Item:
        """What streams are made from."""
        return Item(self.time_us, self.value, _stream(self.topic, self.tap))


@cache
def _stream(topic: str, tap: str) -> str:
    return text_of_stream(topic, tags_text({"tap": tap}))


class Arrivals:
    """The times of what a device reads, from when it is given until somebody has looked.

    What is given may be durable although nobody knows.
    """

    def __init__(self) -> None:
        self._coming_us: list[int] = []
        self._arrived_us: list[int] = []

    def coming(self, times_us: list[int]) -> list[int]:
        """Note what is given."""
        self._coming_us += times_us
        return times_us

    def add(self, times_us: list[int]) -> None:
        """Note that it is durable."""
        for time_us in times_us:
            if time_us in self._coming_us:
                self._coming_us.remove(time_us)
        self._arrived_us += times_us

    def restart(self) -> None:
        """Note that its process begins again."""
        self._arrived_us += self._coming_us
        self._coming_us.clear()

    def take_oldest_us(self) -> float:
        """Return the oldest time of what came since the last question, or may have come."""
        oldest_us = min(self._arrived_us + self._coming_us, default=inf)
        self._arrived_us.clear()
        return oldest_us


class MeterFile:
    """The lines of one device's meter; they outlive everything.

    Attributes:
        lines: in the order in which they are read.
        position: the next line; set back to the durable cursor at each start.
        acknowledged: the first line that is not known to be durable.
        sure_from: the first line that was never lost with a store.
        taken: line -> the streams of items under which it was taken in for good, by their ids.
    """

    def __init__(self) -> None:
        self.lines: list[MeterLine] = []
        self.position = self.acknowledged = self.sure_from = 0
        self._overtaken: list[MeterLine] = []
        self.taken: dict[int, set[int]] = defaultdict(set)

    def grow(
        self,
        now_us: int,
        random: Random,
        *,
        punctual: bool = False,
        soon: bool = False,
        overtakes: bool = False,
    ) -> None:
        """Write what came in a step.

        Args:
            now_us: the true time.
            random: draws the lines.
            punctual: nothing is late.
            overtakes: what takes a line back may come long before it, and more often right behind.
            soon: what is taken back is of the cell that grows, where it has something.
        """
        if punctual:
            self.lines += [self._at(now_us, random) for _ in range(random.choice(SELDOM))]
            return
        if self._overtaken and random.random() < OVERTAKEN_COMES:
            self.lines.append(self._overtaken.pop(0))
        for _ in range(random.choice(BURSTS)):
            drawn = random.random()
            if self.lines and drawn < REPEATED:
                self.lines.append(random.choice(self.lines))
            elif self.lines and drawn < REPEATED + TAKEN_BACK:
                growing = self._in_growing_cell(now_us) if soon else None
                last = self.lines[-1] if overtakes and random.random() < AT_ONCE else None
                line = growing or last or random.choice(self.lines)
                self.lines.append(line._replace(retracted=True))
            else:
                line = self._new(now_us, random)
                if random.random() < TAKEN_BACK_BEFORE:
                    self.lines.append(line._replace(retracted=True))
                    if overtakes:
                        self._overtaken.append(line)
                        continue
                self.lines.append(line)

    def _in_growing_cell(self, now_us: int) -> MeterLine | None:
        """Return the oldest line of the cell that still grows, once nothing so old is to come."""
        cell_us, settled_us = cell_of(now_us), now_us - SETTLED_US
        near = [line for line in self.lines if cell_us <= line.time_us < settled_us]
        gone = {line.item for line in near if line.retracted}
        return next((line for line in near if line.item not in gone), None)

    def _new(self, now_us: int, random: Random) -> MeterLine:
        late_us = random.choice((0, 0, 0, 1, 30)) * random.randint(0, 1_000_000)
        time_us = now_us - late_us
        if self.lines and random.random() < SAME_TIME:
            time_us = self.lines[-1].time_us
        return self._at(time_us, random)

    def _at(self, time_us: int, random: Random) -> MeterLine:
        count = len(self.lines)
        topic = f"meters/{count % TOPICS}" if count // APART % 2 else ""
        return MeterLine(time_us, random.randrange(VALUES), random.choice("ab"), topic)

    def batch(self) -> tuple[list[MeterLine], Batch] | None:
        """Return the next lines, and as a source gives them; None at the end of the file."""
        lines = self.lines[self.position : self.position + LINES]
        if not lines:
            return None
        self.position += len(lines)
        return lines, Batch(
            METERS,
            [METERED] * len(lines),
            [line.time_us for line in lines],
            [Retraction(line.value) if line.retracted else line.value for line in lines],
            [{"tap": line.tap} for line in lines],
            cursor=str(self.position),
            places=[line.topic for line in lines] if any(line.topic for line in lines) else [],
        )

    def items(self, first: int = 0, until: int | None = None) -> Cell:
        """Return what the lines from one on to another come to: taken back is for good."""
        found: Cell = {}
        for line in self.lines[first:until]:
            state = RETRACTED if line.retracted else PRESENT
            found[line.item] = max(state, found.get(line.item, PRESENT))
        return found
