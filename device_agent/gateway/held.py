"""Starts of windows whose rows wait until all devices have promised under a new log."""

from collections.abc import Callable, Iterable

from lasp_edge.language.fleet_regimes import StartSpan


class HeldStarts:
    """The starts that wait.

    Args:
        spans: those that waited already.

    Attributes:
        spans: the starts, as they are kept over a restart.
    """

    def __init__(self, spans: Iterable[StartSpan]) -> None:
        self.spans = tuple(spans)

    def hold(self, touched: StartSpan, first_us: int, last_us: int) -> None:
        """Hold what was touched, of the starts from one to another."""
        first_us, last_us = max(touched.first_us, first_us), min(touched.last_us, last_us)
        span = touched._replace(first_us=first_us, last_us=last_us)
        if first_us <= last_us and span not in self.spans:
            self.spans += (span,)

    def __contains__(self, at: tuple[str, int]) -> bool:
        """Return whether a window, by name and start, waits."""
        name, start_us = at
        return any(
            span.window == name and span.first_us <= start_us <= span.last_us for span in self.spans
        )

    def let_go(self, promised_us: int, longest_us: Callable[[str], int]) -> None:
        """Hold no longer what all have promised past.

        Args:
            promised_us: how far.
            longest_us: gives how long windows of a name are, at most.
        """
        kept = []
        for span in self.spans:
            first_us = max(span.first_us, promised_us - longest_us(span.window))
            if first_us <= span.last_us and promised_us - longest_us(span.window) < span.last_us:
                kept.append(span._replace(first_us=first_us))
        self.spans = tuple(kept)

    def least_us(self, time_us: int) -> int:
        """Return the first start that waits, or a time if that is less."""
        return min([time_us, *(span.first_us for span in self.spans)])
