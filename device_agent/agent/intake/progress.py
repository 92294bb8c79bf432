"""How far the readings have come: those of the device, and those of each of its sources."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from device_agent.agent.changes import Facts
from device_agent.agent.intake.batch import Batch
from device_agent.agent.notices import Notices
from device_agent.agent.stored_rows import SourceRow, source_row
from lasp_edge.timers import has_passed
from lasp_edge.units import SECOND_US

NO_TIME = -(2**62)
"""Before every time."""
SILENT_US = 300_000_000
"""Microseconds for which a source came no further, after which it is named as the one that is
waited for: five minutes, as most sensors measure more often."""
STAMP_AHEAD_US = 1_000_000
"""Microseconds that an acceptance stamp may be ahead of the clock: readings that come at once
differ by microseconds, and a clock that is set back by less changes nothing."""
EMPTY_US = 30_000_000
"""Microseconds after the start of an agent after which a source is named that never gave anything:
a first reading is awaited by whoever has just begun with it."""
BEGINNING_US = 10 * SECOND_US
"""Microseconds for which whoever waits for a device that begins waits for the first reading of its
sources: a file is read some seconds after the first beat, a sensor may be a minute late."""
_UNREAD = SourceRow()
_TRY = "lasp-edge doctor listens to it, and lasp-edge try prints what comes"


class IntakeProgress:
    """Times that rise, and come back only with a clock that was ahead.

    Args:
        retain_us: how much older than the newest reading a reading may be.
        first_us: the floor before the first reading.
        facts: what the store holds of them.

    Attributes:
        stamp_us: when the last reading was accepted; no two readings share one.
        floor_us: readings below it are refused.
        high_us: greatest accepted reading time; None before the first.
        promised_us: the greatest low watermark that was published.
        pruned_us: what lies wholly below it has left the store: the floor never goes below it.
    """

    __slots__ = ("_retain_us", "floor_us", "high_us", "promised_us", "pruned_us", "stamp_us")

    def __init__(self, retain_us: int, first_us: int, facts: Facts) -> None:
        self._retain_us = retain_us
        self.stamp_us = NO_TIME if facts.stamp_us is None else facts.stamp_us
        self.floor_us = first_us if facts.floor_us is None else facts.floor_us
        self.promised_us = NO_TIME if facts.promised_us is None else facts.promised_us
        self.pruned_us = first_us if facts.pruned_us is None else facts.pruned_us
        self.high_us = facts.high_us

    def next_stamp_us(self, now_us: int) -> int:
        """Return when the next reading will have been accepted, by the clock of now."""
        next_us = self.stamp_us + 1
        return next_us if now_us <= next_us <= now_us + STAMP_AHEAD_US else now_us

    def stamps_us(self, clock_us: int, count: int, clocks_us: Iterable[int] = ()) -> Sequence[int]:
        """Return when the next readings will have been accepted.

        Args:
            clock_us: what time it is.
            count: how many readings.
            clocks_us: what time it was at each of them; empty: `clock_us`.
        """
        stamp_us, stamps_us = self.stamp_us, list[int]()
        for now_us in clocks_us:
            next_us = stamp_us + 1
            stamp_us = next_us if now_us <= next_us <= now_us + STAMP_AHEAD_US else now_us
            stamps_us.append(stamp_us)
        first_us = self.next_stamp_us(clock_us)
        return stamps_us or range(first_us, first_us + count)

    def heal(self, now_us: int, max_skew_us: int) -> bool:
        """Come back where a clock that was ahead has gone back; return whether that was so.

        Args:
            now_us: the time, trusted.
            max_skew_us: how far ahead of it a reading may be.
        """
        last_us = now_us + max_skew_us
        floor_us = max(self.pruned_us, last_us - self._retain_us)
        ahead = self.high_us is not None and self.high_us > last_us
        if not ahead and self.floor_us <= floor_us and self.stamp_us <= now_us + STAMP_AHEAD_US:
            return False
        self.stamp_us = min(self.stamp_us, now_us + STAMP_AHEAD_US)
        self.promised_us = min(self.promised_us, last_us)
        if ahead:
            self.high_us = now_us
            self.floor_us = max(self.pruned_us, min(self.floor_us, now_us - self._retain_us))
        self.floor_us = min(self.floor_us, floor_us)
        return True

    def reach(self, time_us: int) -> None:
        """Note the time of an accepted reading."""
        if self.high_us is None or time_us > self.high_us:
            self.high_us = time_us
            self.floor_us = max(self.floor_us, time_us - self._retain_us)

    def facts(self) -> Facts:
        """Return what is stored with every batch; `promised_us` is stored with the notes."""
        return Facts(stamp_us=self.stamp_us, high_us=self.high_us, floor_us=self.floor_us)


class SourceProgress:
    """The sources of this process, and the places up to which earlier ones have read.

    A source promises up to its newest own time. One that is silent would hold the windows of the
    whole fleet for as long, so after a while its promise follows the clock, at the distance that it
    has then. A recording of former years is thus never passed by the present.

    Args:
        rows: what the store holds, by source.
        lateness_us: how much later than the newest reading an older one may come.
        silent_after_us: from when on the promise of a silent source follows the clock; 0: never.

    Attributes:
        stopped: this process will read nothing more.
    """

    def __init__(
        self, rows: Mapping[str, SourceRow], lateness_us: int, silent_after_us: int = 0
    ) -> None:
        self._rows = dict(rows)
        self._lateness_us, self._silent_after_us = lateness_us, silent_after_us
        self._reached: dict[str, tuple[int, int]] = {}  # own time, and since when it is the newest
        self._live: set[str] = set()
        self._empty: set[str] = set()
        self._given: set[str] = set()  # those of whose notice it is known that it has ended
        self._began_us: int | None = None
        self._beat_us: int | None = None  # the first beat without a reading
        self._changed: dict[str, SourceRow] = {}
        self._counted_us: int | None = None  # at the last question
        self.stopped = False

    def cursor(self, source: str) -> str | None:
        """Return where a source resumes, and count it among the sources of this process."""
        self._live.add(source)
        row = self._rows.get(source, _UNREAD)
        if row == _UNREAD:
            self._empty.add(source)
            self._given.discard(source)
        self._rows[source] = row._replace(done=False)  # its file may have grown
        return row.cursor

    def note_empty(self, now_us: int, notices: Notices) -> None:
        """Note the sources that never gave anything, neither to this process nor to one before."""
        if self._began_us is None or now_us < self._began_us:
            self._began_us = now_us
        for source in self._live:
            if source in self._empty and now_us >= self._began_us + EMPTY_US:
                notices.begin(f"source {source}", f"nothing ever came from {source}: {_TRY}")
            elif source not in self._empty and source not in self._given:
                self._given.add(source)
                notices.end(f"source {source}")

    def advance(self, batch: Batch, high_us: int | None, stamped: bool) -> None:  # noqa: FBT001
        """Note that a batch was read.

        Args:
            batch: the batch.
            high_us: the greatest own time among its accepted readings; None if all were stamped.
            stamped: it has accepted readings without a time of their own.
        """
        source = batch.source
        if self._empty:
            self._empty.discard(source)
        before = self._rows.get(source) or _UNREAD
        _, before_us, was_stamped, _ = before
        if high_us is None or (before_us is not None and before_us > high_us):
            high_us = before_us
        stamped = stamped or was_stamped
        cursor = batch.cursor
        if high_us is None and not stamped:
            cursor = batch.cursor_unless_accepted or cursor
        after = source_row((cursor, high_us, stamped, batch.done))
        if after != before:
            self._rows[source] = self._changed[source] = after

    def row(self, source: str) -> SourceRow:
        """Return how far a source was read."""
        return self._rows.get(source, _UNREAD)

    def take_changed(self) -> dict[str, SourceRow]:
        """Return the sources that were read further since the last time."""
        taken, self._changed = self._changed, {}
        return taken

    @property
    def is_alone_with_times(self) -> bool:
        """Whether one source of this process gives readings with times of their own, at most."""
        return sum(self._rows[name].high_us is not None for name in self._live) <= 1

    @property
    def all_done(self) -> bool:
        """Whether every source of this process has come to its end."""
        for name in self._live:  # a loop, for many ask at each tick
            if not self._rows[name].done:
                return False
        return bool(self._live)

    @property
    def finished(self) -> bool:
        """Whether nothing more will be read: every source is finished, or they were stopped."""
        return self.stopped or self.all_done

    def is_beginning(self, now_us: int) -> bool:
        """Return whether a source that never gave anything has only now begun to be read.

        It has, for `BEGINNING_US` from the first question on, by a clock that is never set.
        """
        if self.finished or self._empty.isdisjoint(self._live):
            return False
        if self._beat_us is None:
            self._beat_us = now_us
        return not has_passed(self._beat_us, BEGINNING_US, now_us)

    def low_us(
        self,
        now_us: int,
        end_us: Callable[[], int | None],
        max_skew_us: int = 0,
        counted_us: int | None = None,
    ) -> int | None:
        """Return the time before which no source has more; None while that is unknown.

        Args:
            now_us: the time.
            max_skew_us: a source that has come further ahead of it did so by a wrong clock.
            end_us: returns what a finished source promises; None: nothing, as nothing was ever
                read.
            counted_us: the clock that counts silence, and is never set; `now_us` if None.
        """
        counted_us = self._counted_us = now_us if counted_us is None else counted_us
        terms = now_us, end_us, max_skew_us, counted_us
        lows_us = [self._low_us(name, *terms) for name in self._live]
        known_us = [low_us for low_us in lows_us if low_us is not None]
        return min(known_us) if known_us and len(known_us) == len(lows_us) else None

    def _low_us(
        self,
        source: str,
        now_us: int,
        end_us: Callable[[], int | None],
        max_skew_us: int,
        counted_us: int,
    ) -> int | None:
        row = self._rows[source]
        if row.done or self.stopped:
            return end_us()
        seen = [now_us] if row.stamped else []
        if row.high_us is not None:
            is_ahead = row.high_us > now_us + max_skew_us
            seen.append(now_us if is_ahead else self._followed_us(source, now_us, counted_us))
        return min(seen) - self._lateness_us if seen else None

    def _followed_us(self, source: str, now_us: int, counted_us: int) -> int:
        """Return how far a source has come; a silent one follows the clock."""
        high_us = self._rows[source].high_us or 0
        passed_us = self.silent_us(source, counted_us) - self._silent_after_us
        if not self._silent_after_us or passed_us <= 0:
            return high_us
        return max(high_us, min(high_us + passed_us, now_us))

    def silent_us(self, source: str, counted_us: int) -> int:
        """Return for how long a source has come no further, as far as this process knows."""
        high_us = self._rows[source].high_us or 0
        before_us, since_us = self._reached.get(source, (high_us, counted_us))
        if high_us > before_us or counted_us < since_us:
            since_us = counted_us
        self._reached[source] = high_us, since_us
        return counted_us - since_us

    @property
    def ended(self) -> list[str]:
        """The sources of this process that gave all they have."""
        return sorted(name for name in self._live if self._rows[name].done)

    @property
    def silent_source(self) -> str:
        """The source that is silent, and that held the last promise; "" for none."""
        if self.stopped or self._counted_us is None:
            return ""
        rows = ((self._rows[name], name) for name in self._live)
        known = [(r.high_us, name) for r, name in rows if r.high_us is not None and not r.done]
        name = min(known, default=(0, ""))[1]
        return name if name and self.silent_us(name, self._counted_us) >= SILENT_US else ""
