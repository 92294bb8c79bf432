"""How far each source is, and the low watermark: the time before which nothing more will come.

A source that is read promises its newest reading's time less the allowed lateness; a finished one
promises the end of the last window. A device promises the least of its sources, and at most the
start of the oldest pane that has not landed.
"""

from collections.abc import Callable, Iterable, Mapping

from device_agent.intake.progress import IntakeProgress
from device_agent.parts import Part
from device_agent.settings import Settings
from device_agent.state.changes import Changes, SourceRow
from device_agent.state.panes import NEVER_US
from lasp_edge.language.declarations import Window


class Watermark(Part):
    """The sources of one device, and what it may promise of them.

    Args:
        sources: their rows in the store.
        windows: the program's windows.
        settings: the allowed lateness.
        progress: how far the readings have come.
        oldest_dirty_us: gives a time before which no pane starts that has not landed, `NEVER_US`
            where that is unknown, None where all have landed.
    """

    name = "sources"

    def __init__(
        self,
        sources: Mapping[str, SourceRow],
        windows: Iterable[Window],
        settings: Settings,
        progress: IntakeProgress,
        oldest_dirty_us: Callable[[], int | None],
    ) -> None:
        self._rows = dict(sources)
        self._windows = list(windows)
        self._lateness_us = settings.lateness_us
        self._progress = progress
        self._oldest_dirty_us = oldest_dirty_us
        self._live: set[str] = set()
        self._stopped = False
        self._changed: dict[str, SourceRow] = {}
        self._noted_us = progress.promised_us

    def open(self, source: str) -> str | None:
        """Return where a source resumes, and count it among those of this process."""
        self._live.add(source)
        row = self.row(source)
        self._rows[source] = row._replace(done=False)  # its file may have grown
        return row.cursor

    def row(self, source: str) -> SourceRow:
        """Return how far a source is."""
        return self._rows.get(source) or SourceRow()

    def advance(self, source: str, row: SourceRow) -> None:
        """Note how far a source is."""
        if row != self.row(source):
            self._changed[source] = row
        self._rows[source] = row

    def stop(self) -> None:
        """Note that nothing more will be read by this process."""
        self._stopped = True

    @property
    def finished(self) -> bool:
        """Whether nothing more will be read: every source is finished, or they were stopped."""
        rows = [self._rows[name] for name in self._live]
        return self._stopped or (bool(rows) and all(row.done for row in rows))

    def low_us(self, now_us: int) -> int | None:
        """Return the time before which nothing more will come, None while that is unknown.

        It goes back where a late reading came, or where another lake must be filled.
        """
        lows = [self._source_low_us(self._rows[name], now_us) for name in self._live]
        known_us = [low_us for low_us in lows if low_us is not None]
        if not known_us or len(known_us) < len(lows):
            return None
        oldest_us = self._oldest_dirty_us()
        if oldest_us == NEVER_US:
            return None
        return min(known_us) if oldest_us is None else min(*known_us, oldest_us)

    def _source_low_us(self, row: SourceRow, now_us: int) -> int | None:
        if row.done or self._stopped:
            return self._end_us()
        newest = [] if row.high_us is None else [row.high_us]
        newest += [now_us] if row.stamped else []
        return min(newest) - self._lateness_us if newest else None

    def _end_us(self) -> int | None:
        """Return what a finished source promises: the end of the last window.

        Without any reading it promises nothing: an empty recording says nothing of the present.
        """
        high_us = self._progress.high_us
        if high_us is None:
            return None
        return max((window.end_of_last(high_us) for window in self._windows), default=high_us)

    def promise_us(self, now_us: int) -> int | None:
        """Return the low watermark to be published; readings behind it are late from now on."""
        low_us = self.low_us(now_us)
        if low_us is not None:
            self._progress.promised_us = max(self._progress.promised_us, low_us)
        return low_us

    def take_changes(self) -> Changes | None:
        if not self._changed:
            return None
        changes = Changes()
        changes.sources, self._changed = self._changed, {}
        return changes

    def take_notes(self) -> Changes | None:
        promised_us = self._progress.promised_us
        if promised_us == self._noted_us:
            return None
        changes = Changes()
        self._noted_us = changes.facts.promised_us = promised_us
        return changes
