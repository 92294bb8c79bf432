"""The pending batch: what accepted readings bring, until it is joined once a commit.

A reading is looked up, counted and put in its place when it comes. Its samples are lifted into
panes and joined into variables together, when they are to be committed: readings that come one at
a time then cost little more than those that come in columns.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from device_agent.agent.changes import ReadingRow
from device_agent.agent.intake.progress import NO_TIME
from device_agent.agent.variables.variables import PendingUpdates
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.fold import Fold
from lasp_edge.language.declarations import Window

BATCH_READINGS = 2**20
"""A batch brings fewer readings than this; the largest of our sources brings 2,000."""


@lru_cache(maxsize=256)
def has_room(fold: Fold) -> Callable[[Partial], bool]:
    """Return a test of a built-in fold's partial: whether any batch surely keeps it in range."""
    return fold.room_for(BATCH_READINGS)


class PaneBuilder:
    """The samples of one pane entry that are not joined yet.

    A built-in fold cannot fail, and lifts all samples together at the end. A fold of the user's own
    may fail or leave its columns' range, as any fold may in an entry that is half full: then each
    sample is lifted when it comes, so that it can be refused.

    Args:
        window: the entry's window.
        held: what the entry holds; None if it is not begun.
        infallible: the window's fold is built in.

    Attributes:
        prechecked: no sample can be refused.
        joined: unless prechecked, what the entry will hold; made before anything is changed, so
            that no function of the user's runs when the batch is joined.
    """

    __slots__ = (
        "_held",
        "_next",
        "_partial",
        "joined",
        "prechecked",
        "times_us",
        "values",
        "window",
    )

    def __init__(self, window: Window, held: Partial | None, *, infallible: bool) -> None:
        zero = window.fold.zero
        self.window = window
        self.prechecked = infallible and has_room(window.fold)(zero if held is None else held)
        self.values: list[int] = []
        self.times_us: list[int] = []
        if not self.prechecked:
            self._partial = zero
            self._held = zero if held is None else held
            self._next = (zero, self._held)
            self.joined = self._held

    def try_sample(self, quantised: int, time_us: int) -> None:
        """Make the partial of all samples and one more; nothing is changed by it.

        Raises:
            ValueError: the entry would leave the range of its columns.
        """
        fold = self.window.fold
        lifted = fold.lift(quantised, time_us)
        if fold.within_limits(lifted):
            partial = fold.combine(self._partial, lifted)
            joined = fold.combine(self._held, partial)
            if fold.within_limits(joined):
                self._next = (partial, joined)
                return
        raise ValueError(f"window {self.window.name!r}: the partial is out of range")

    def add(self, quantised: int, time_us: int) -> None:
        """Add the sample; unless prechecked, it is the one that was tried last."""
        self.values.append(quantised)
        self.times_us.append(time_us)
        if not self.prechecked:
            self._partial, self.joined = self._next

    def partial(self) -> Partial:
        """Return the partial of all samples, of a prechecked entry."""
        return self.window.fold.lift_column(self.values, self.times_us)


class StreamItem(NamedTuple):
    """A reading that streams are made from, or one that is taken back.

    Attributes:
        value: quantised, or a text.
        tags: as canonical text.
    """

    event: str
    time_us: int
    value: int | str
    tags: str
    retracted: bool = False


class ControlledReading(NamedTuple):
    """A reading of an event whose windows have parameters.

    Attributes:
        tags: as canonical text.
        stamped: it got its time on arrival.
    """

    event: str
    time_us: int
    quantised: int
    tags: str
    stamped: bool


@dataclass(slots=True)
class PendingBatch:
    """What batches have brought since the last join.

    Attributes:
        accepted: how many readings.
        since_us: when the first batch came that is not joined yet, by the driver's clock; timers
            go by it.
        clock_us: what time it was when the last batch came: readings go by it.
        counted: how many readings had each other outcome.
        readings: the accepted readings, where they are kept.
        items: readings that streams are made from.
        controlled: readings that windows with parameters are made from.
        builders: (stream, key, pane start) -> samples of that pane entry.
        updates: samples and deltas of variables.
    """

    accepted: int = 0
    since_us: int = NO_TIME
    doubt_us: int | None = None
    clock_us: int = NO_TIME
    counted: Counter[str] = field(default_factory=Counter)
    readings: list[ReadingRow] = field(default_factory=list)
    items: list[StreamItem] = field(default_factory=list)
    controlled: list[ControlledReading] = field(default_factory=list)
    builders: dict[tuple[int, str, int], PaneBuilder] = field(default_factory=dict)
    updates: PendingUpdates = field(default_factory=PendingUpdates)

    def __bool__(self) -> bool:
        return bool(self.accepted or self.counted)

    def refuse(self, reason: str, by: int = 1) -> None:
        """Count refused readings."""
        self.counted["refused"] += by
        self.counted[f"refused: {reason}"] += by
