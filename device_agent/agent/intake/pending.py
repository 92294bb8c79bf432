"""The pending batch: what accepted readings bring, until it is joined once a commit.

A reading is looked up, counted and put in its place when it is taken in. Its samples are lifted
into panes and joined into variables together, when they are to be committed: readings that come one
at a time then cost little more than those that come in columns. A fold of the user's own may fail,
and any fold may leave the range of its columns in an entry that is half full: then each sample is
added to its entry at once, so that it can be refused.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from device_agent.agent.intake.progress import NO_TIME
from device_agent.agent.stored_rows import PaneId, ReadingRow
from device_agent.agent.variables.variables import PendingUpdates
from lasp_edge.event import StreamColumn, StreamItem
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.fold import Fold

BATCH_READINGS = 2**20
"""A batch brings fewer readings than this; the largest of our sources brings 2,000."""


@lru_cache(maxsize=256)
def has_room(fold: Fold) -> Callable[[Partial], bool]:
    """Return a test of a built-in fold's partial: whether any batch surely keeps it in range."""
    return fold.room_for(BATCH_READINGS)


StreamOf = tuple[str, str, str, bool]
"""What a `StreamColumn` is of: its first four fields."""
PaneSamples = tuple[list[int], list[int]]
"""Quantised values, and their times."""


@dataclass(slots=True)
class PendingBatch:
    """What batches have brought since the last join.

    Attributes:
        accepted: how many readings.
        since_us: when the first batch came that is not joined yet, by the driver's clock; timers
            go by it.
        clock_us: what time it was when the last batch came: readings go by it.
        place: what the reading that is being accepted came on; see `Batch.places`.
        has_come_twice: of the last batch a reading has come before, to this process.
        counted: how many readings had each other outcome.
        readings: the accepted readings, where they are kept.
        columns: readings that streams, and windows that are not plain, are made from, and those
            that are taken back; by what a column is of.
        corrected: readings that such windows had, and that were taken back.
        samples: pane entry -> its new samples, none of which can be refused.
        updates: samples and deltas of variables.
    """

    accepted: int = 0
    since_us: int = NO_TIME
    doubt_us: int | None = None
    clock_us: int = NO_TIME
    place: str = ""
    has_come_twice: bool = False
    counted: Counter[str] = field(default_factory=Counter)
    readings: list[ReadingRow] = field(default_factory=list)
    columns: dict[StreamOf, StreamColumn] = field(default_factory=dict)
    corrected: list[StreamItem] = field(default_factory=list)
    samples: dict[PaneId, PaneSamples] = field(default_factory=dict)
    updates: PendingUpdates = field(default_factory=PendingUpdates)

    def column(self, of: StreamOf) -> StreamColumn:
        """Return the column that takes readings of an event, device and tags."""
        found = self.columns.get(of)
        if found is None:
            found = self.columns[of] = StreamColumn(*of, [], [])
        return found

    def refuse(self, reason: str, by: int = 1) -> None:
        """Count refused readings."""
        self.counted["refused"] += by
        self.counted[f"refused: {reason}"] += by
