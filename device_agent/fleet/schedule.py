"""When a device publishes: its entries once an interval, and before each beat."""

from collections.abc import Iterator

from device_agent.clock import Timer
from device_agent.parts import Part, Publication
from device_agent.settings import Settings


class Schedule(Part):
    """Tells the parts that follow it in the core's list what is due in this round.

    Args:
        settings: the intervals.

    Attributes:
        entries_due: changed entries are to be published.
        beat_due: a beat is to be published.
    """

    name = "schedule"

    def __init__(self, settings: Settings) -> None:
        self._entries = Timer(settings.interval_us)
        self._beats = Timer(settings.beat_us)
        self.entries_due = self.beat_due = False

    def connected(self, _now_us: int) -> None:
        self._entries.restart()
        self._beats.restart()

    def unsent(self, publication: Publication) -> None:
        """What was left over goes out in the next round, and the beat after it."""
        if not publication.pane_frame:
            self._entries.restart()
            self._beats.restart()

    def publications(self, now_us: int) -> Iterator[Publication]:
        self.beat_due = self._beats.is_due(now_us)
        self.entries_due = self._entries.is_due(now_us) or self.beat_due
        return iter(())
