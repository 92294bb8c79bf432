"""`loop(scan, body)`: a cycle within a key. What comes of a value goes round before the next event.

FlameStream counts words like this: of the last two, (result, word) makes the next result.

    >>> from lasp_edge import scans
    >>> from lasp_edge.scans.last import LastValues
    >>> from lasp_edge.testing import scan_outputs
    >>> def count(seen):
    ...     if len(seen) == 1 and seen[0][0] == "word":
    ...         return [("result", 1)]
    ...     if [kind for kind, _ in seen] == ["result", "word"]:
    ...         return [("result", seen[0][1] + 1)]
    ...     return []  # (word, result) is counted already
    >>> scan_outputs(scans.loop(LastValues(2), count), [("word", 1)] * 3)
    [('result', 1), ('result', 2), ('result', 3)]

Law: it is the scan whose step goes round until nothing comes back. Cost: that of the inner scan,
and what its results bring behind them.

A cycle that leaves its key would need to find out when it has ended, over all devices; there is no
such scan.

Source: cycles and the word count after FlameStream (`lasp_edge.ordered.places`).
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from lasp_edge.event import Event
from lasp_edge.folds.numbers import Resolution
from lasp_edge.ordered.scan import Scan, Stepped
from lasp_edge.scans.arguments import function

MOST_ROUNDS = 1_000
"""Events that one event brings into a cycle, at most; one that brings more has no output."""


class Loop(Scan):
    """The results of a function of a scan's values are outputs, stepped before the next event.

    >>> from lasp_edge import scans
    >>> from lasp_edge.testing import scan_outputs
    >>> def halves(value):
    ...     return [value // 2] if value > 1 else []
    >>> scan_outputs(scans.loop(scans.changes(), halves), [5, 8])  # what the body gives
    [2, 1, 4, 2, 1]

    Args:
        scan: the scan in the cycle; one without timers.
        body: gives the values that come of a value of the scan.

    Raises:
        ValueError: one of them cannot be used.
    """

    name = "loop"

    def __init__(self, scan: Any, body: Callable[[Any], Iterable[Any]]) -> None:
        if not isinstance(scan, Scan) or scan.timed:
            raise ValueError(f"loop: a scan without timers is needed, not {scan!r}")
        self._scan, self._body = scan, function(body, "loop: body")
        self.zero = scan.zero

    def at(self, resolution: Resolution | None) -> Scan:  # noqa: ARG002 - what comes back is of no step
        return self

    def step(self, state: Any, event: Event[Any]) -> Stepped:
        outputs: list[Any] = []
        inside, rounds = deque([event]), 0
        while inside:
            rounds += 1
            if rounds > MOST_ROUNDS:
                raise ValueError(f"loop: one event brings more than {MOST_ROUNDS} rounds")
            state, values = self._scan.step(state, inside.popleft())
            for value in values:
                for made in self._body(value):
                    outputs.append(made)
                    inside.append(event._replace(value=made))
        return state, outputs

    @property
    def fingerprint(self) -> str:
        return f"{super().fingerprint} of {self._scan.fingerprint}"
