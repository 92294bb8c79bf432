"""Windows that are not final yet: those whose row is tentative, and those without a row."""

from collections.abc import Iterator, Mapping

from device_agent.gateway.kept import FleetRow, WindowStart
from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.protocol.waiting import WindowWaiting


class UnfinishedWindows:
    """Windows of a gateway that are not final, in memory.

    Args:
        waits: window -> X, for how long it waits for devices before it has a row.

    Attributes:
        rows: those that are tentative, and current.
        without_row: windows that have panes and wait for devices, with their ends.
    """

    def __init__(self, waits: Mapping[str, int]) -> None:
        self._waits = waits
        self.rows: dict[WindowStart, FleetRow] = {}
        self.without_row: dict[WindowStart, int] = {}

    def note(self, row: FleetRow) -> None:
        """Take a row for the current one of its window."""
        self.without_row.pop(row.at, None)
        if row.status == TENTATIVE:
            self.rows[row.at] = row
        else:
            self.rows.pop(row.at, None)

    def passed(self, frontier_us: int | None) -> Iterator[WindowStart]:
        """Yield the windows whose end the frontier has passed; none of them waits any more."""
        if frontier_us is None:
            return
        yield from [at for at, row in self.rows.items() if row.end_us <= frontier_us]
        for at in [at for at, end_us in self.without_row.items() if end_us <= frontier_us]:
            del self.without_row[at]
            yield at

    def due(self, waiting: WindowWaiting) -> Iterator[WindowStart]:
        """Yield the windows without a row that have waited for as long as they may."""
        for at, end_us in self.without_row.items():
            if waiting.is_due(self._waits[at.window], end_us):
                yield at

    def due_at_us(self, waiting: WindowWaiting) -> int | None:
        """Return when the next window without a row will be due; None where that is not known."""
        times_us = (
            waiting.due_at_us(self._waits[at.window], end_us)
            for at, end_us in self.without_row.items()
        )
        return min((each for each in times_us if each is not None), default=None)
