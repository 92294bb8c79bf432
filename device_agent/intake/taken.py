"""What readings have brought and is not joined yet: it is joined together, once a commit.

A reading is looked up, counted and put in its place when it comes. That a pane's partial, a
variable's state and a block of identities are made from what came is put off until they are
written, so that readings that come one at a time cost little more than those in a column.
"""

from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from device_agent.fleet.asked import Asked
from lasp_edge.folds import fold_of
from lasp_edge.folds.fold import Fold, Partial
from lasp_edge.language.declarations import EventType, Window
from lasp_edge.language.plan import Plan

NO_TIME = -(2**62)
MOST_READINGS = 2**20
"""A batch brings fewer readings than this."""


class Marks:
    """How far the readings have come; each of these only rises.

    Attributes:
        stamp_us: when the last reading was accepted: no two at one instant.
        floor_us: readings below it are refused.
        high_us: greatest accepted reading time; None before the first.
        promised_us: the greatest low watermark that was given out.
    """

    __slots__ = ("floor_us", "high_us", "promised_us", "retain_us", "stamp_us")

    def __init__(self, retain_us: int, floor_us: int) -> None:
        self.retain_us = retain_us
        self.stamp_us = self.promised_us = NO_TIME
        self.floor_us = floor_us
        self.high_us: int | None = None

    def next_stamp_us(self, now_us: int) -> int:
        """Return when the next reading will have been accepted."""
        return max(now_us, self.stamp_us + 1)

    def reach(self, time_us: int) -> None:
        """Note the time of an accepted reading."""
        if self.high_us is None or time_us > self.high_us:
            self.high_us = time_us
            self.floor_us = max(self.floor_us, time_us - self.retain_us)


class Into(NamedTuple):
    """A window that readings go into."""

    window: Window
    span_us: int
    stream: int


class Way:
    """What the readings of one event go through.

    Attributes:
        event: the event.
        into: the windows, by stream.
        collecting: the variables that collect it.
        seen: a handler or a key of the user's wants an Event.
        careful: the variables that collect it are folded by a fold of the user's, which may fail.
        trusted: streams of the windows whose folds are built in and cannot fail.
        columnar: no function of the user's sees its readings one by one.
    """

    __slots__ = (
        "careful",
        "collecting",
        "columnar",
        "event",
        "into",
        "quantise",
        "seen",
        "trusted",
    )

    def __init__(self, program: Plan, event: EventType) -> None:
        windows = [w for w in program.windows.values() if w.source.name == event.name]
        self.event = event
        self.quantise = event.resolution.quantise
        self.into = tuple(
            Into(w, w.span_us, w.stream) for w in sorted(windows, key=lambda w: w.stream)
        )
        self.trusted = frozenset(w.stream for w in windows if is_built_in(w.fold))
        self.collecting = program.collections.get(event.name, ())
        keyed = any(w.keyed for w in windows) or any(v.keyed for v in self.collecting)
        self.seen = keyed or event.name in program.functions.handlers
        own = {f.source.name for f in program.local_folds.values() if not is_built_in(f.fold)}
        self.careful = any(variable.name in own for variable in self.collecting)
        self.columnar = not self.seen and not self.careful and len(self.trusted) == len(windows)


def is_built_in(fold: Fold) -> bool:
    """Return whether a fold is one of ours, which cannot fail."""
    return fold_of(fold.description()) is not None


@lru_cache(maxsize=256)
def room_in(fold: Fold) -> Callable[[Partial], bool]:
    """Return what tells of a built-in fold's partial whether any batch surely keeps its range."""
    return fold.room_for(MOST_READINGS)


class Filling:
    """What readings bring to one pane entry, of which `held` is there; None if it is not begun.

    A built-in fold cannot fail, and lifts all samples together at the end. A fold of the user's own
    may fail or leave its columns' range, as any fold may in an entry that is half full: then each
    sample is lifted when it comes, so that it can be refused.
    """

    __slots__ = ("_held", "_partial", "sure", "times_us", "values", "window")

    def __init__(self, window: Window, held: Partial | None, *, trusted: bool) -> None:
        self.window = window
        self.sure = trusted and room_in(window.fold)(window.fold.zero if held is None else held)
        self.values: list[int] = []
        self.times_us: list[int] = []
        if not self.sure:
            self._partial = window.fold.zero
            self._held = self._partial if held is None else held

    def with_sample(self, quantised: int, time_us: int) -> Partial:
        """Return what they bring with one more sample.

        Raises:
            ValueError: the entry would leave the range of its columns.
        """
        fold = self.window.fold
        lifted = fold.lift(quantised, time_us)
        if fold.within_limits(lifted):
            partial = fold.combine(self._partial, lifted)
            if fold.within_limits(fold.combine(self._held, partial)):
                return partial
        raise ValueError(f"window {self.window.name!r}: the partial is out of range")

    def add(self, quantised: int, time_us: int) -> None:
        """Add a sample that was found fit."""
        self.values.append(quantised)
        self.times_us.append(time_us)
        if not self.sure:
            self._partial = self.with_sample(quantised, time_us)

    def partial(self) -> Partial:
        """Return what they bring."""
        if self.sure:
            return self.window.fold.lift_column(self.values, self.times_us)
        return self._partial


class Taken:
    """What is to be joined."""

    __slots__ = ("accepted", "asked", "counted", "fillings", "now_us")

    def __init__(self) -> None:
        self.accepted = 0
        self.now_us = NO_TIME
        self.asked = Asked()
        self.counted: Counter[str] = Counter()
        self.fillings: dict[tuple[int, str, int], Filling] = {}  # by stream, key, pane start

    def refuse(self, reason: str, by: int = 1) -> None:
        """Count refused readings."""
        self.counted["refused"] += by
        self.counted[f"refused: {reason}"] += by
