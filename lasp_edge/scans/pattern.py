"""`pattern(..)`: events that meet predicates one after the other, or then nothing for a while.

    >>> from lasp_edge import scans
    >>> from lasp_edge.testing import scan_outputs
    >>> def opened(event): return event.value == 1
    >>> def closed(event): return event.value == 0
    >>> scan_outputs(scans.pattern(opened, closed, within_s=60), [1, 0, 1], times_s=[10, 30, 40])
    [(10000000, 30000000)]
    >>> scan_outputs(scans.pattern(opened, absent_s=600), [1, 0, 1], times_s=[10, 30, 40])
    [(40000000,)]

The second one is "opened, and nothing came for ten minutes", which time alone brings.

Each event may begin a match, and continues every match that waits for it; between two events of a
match others may come. With `absent_s`, any event after the last one of a match ends it.

Law: the events of a match meet the predicates in their order, and the last one comes at most
`within_s` after the first. Cost: a late event revises the matches that it is part of or ends.
"""

from collections.abc import Callable
from typing import Any

from lasp_edge.event import Event
from lasp_edge.ordered.scan import TIME, Scan, Stepped
from lasp_edge.scans.arguments import function, microseconds


class Pattern(Scan[tuple[int, ...]]):
    """A match: the times of its events in microseconds, as a tuple.

    >>> from lasp_edge import scans
    >>> from lasp_edge.testing import scan_outputs
    >>> scan_outputs(scans.pattern(lambda event: event.value == 1, absent_s=60), [0, 1])
    [(1000000,)]

    Two that begin a match before the next one comes have a match each, which that one ends:

    >>> one, two = (lambda event: event.value == 1), (lambda event: event.value == 2)
    >>> scan_outputs(scans.pattern(one, two, within_s=60), [1, 1, 2, 2])
    [(0, 2000000), (1000000, 2000000)]

    Args:
        *predicates: what each event of a match has to meet, given the event.
        within_s: seconds from its first to its last event, at most; needed with two and more.
        absent_s: after the last event of a match, nothing may come for this time, in seconds; it is
            an output when that is over. None: it is one with its last event.
    """

    name, local = "pattern", True

    def __init__(
        self,
        *predicates: Callable[[Event[Any]], Any],
        within_s: float | None = None,
        absent_s: float | None = None,
    ) -> None:
        if not predicates:
            raise ValueError("pattern: at least one predicate is needed")
        self._predicates = [function(each, "pattern: a predicate") for each in predicates]
        if len(predicates) > 1 and within_s is None:
            raise ValueError(
                "pattern: within_s is needed, for a match that begins must not wait for ever"
            )
        self._within_us = 0 if within_s is None else microseconds(within_s, "pattern: within_s")
        self._absent_us = None if absent_s is None else microseconds(absent_s, "pattern: absent_s")
        self.parts = {self._part(n): TIME for n in range(len(predicates))}

    def _part(self, n: int) -> str:
        return "at_us" if len(self._predicates) == 1 else f"at_{n + 1}_us"

    def step(self, state: Any, event: Event[Any]) -> Stepped:
        whole, time_us, outputs, waiting = len(self._predicates), event.time_us, [], []
        met: list[Any] = [None] * whole  # each predicate is called once, if at all
        since_us = time_us - self._within_us
        for begun in (*state, ()):
            passed = len(begun)
            if passed == whole:
                continue  # it waited for nothing to come, and this has come
            if begun and begun[0] < since_us:
                continue
            if met[passed] is None:
                met[passed] = bool(self._predicates[passed](event))
            if met[passed]:
                begun = (*begun, time_us)  # noqa: PLW2901 - it has gone on
                if passed + 1 == whole and self._absent_us is None:
                    outputs.append(begun)
                    continue
            if begun:
                waiting.append(begun)
        return tuple(waiting), outputs

    def due(self, state: Any) -> int | None:
        if self._absent_us is None:
            return None
        ends_us = [begun[-1] for begun in state if len(begun) == len(self._predicates)]
        return min(ends_us) + self._absent_us if ends_us else None

    def ring(self, state: Any, at_us: int) -> Stepped:  # noqa: ARG002 - the contract
        whole = len(self._predicates)
        waiting = tuple(begun for begun in state if len(begun) < whole)
        return waiting, [begun for begun in state if len(begun) == whole]

    @property
    def timed(self) -> bool:
        return self._absent_us is not None

    @property
    def fingerprint(self) -> str:
        shape = (len(self._predicates), self._within_us, self._absent_us)
        return f"{super().fingerprint} {shape}"
