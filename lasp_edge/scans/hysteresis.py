"""`hysteresis(above, below)`: 1 once a value is above a level, 0 once it is below another one.

    >>> from lasp_edge import scans
    >>> from lasp_edge.testing import scan_outputs
    >>> scan_outputs(scans.hysteresis(above=25, below=23), [20, 26, 24, 25.5, 22, 24])
    [0, 1, 0]
    >>> scan_outputs(scans.hysteresis(above="0.3", below="0.1"), [0.2, 0.3, 0.31])
    [1]

Laws: outputs are 0 and 1 in turn; a value between the levels changes nothing. Cost: a late event
revises the results up to the next one beyond a level.
"""

from fractions import Fraction
from typing import Any

from lasp_edge.event import Event
from lasp_edge.folds.decimals import exact
from lasp_edge.folds.numbers import Resolution
from lasp_edge.ordered.scan import Scan, Stepped


class TwoLevels(Scan[float]):
    """1 when the value has become greater than one level, 0 when less than the other.

    Levels are compared exactly, as decimals: 0.1 is one tenth.

    >>> from lasp_edge import scans
    >>> from lasp_edge.testing import scan_outputs
    >>> scan_outputs(scans.hysteresis(above=28, below=26), [27, 29, 27, 25])
    [1, 0]

    Args:
        above: 1 is an output when the value is greater than this, a number or decimal text.
        below: 0 is one when the value is less than this.
    """

    name, zero, local = "hysteresis", None, True
    of_numbers = True
    resolution = Resolution("1")
    parts = {"value": "1"}  # noqa: RUF012 - the contract

    def __init__(self, above: Any, below: Any) -> None:
        self._above = exact(above, "hysteresis: above")
        self._below = exact(below, "hysteresis: below")
        if self._below > self._above:
            raise ValueError(
                f"hysteresis: below={below} must not be greater than above={above}: between both "
                "nothing changes"
            )

    @property
    def levels(self) -> tuple[Fraction, Fraction]:
        """The level above which it gives 1, and that below which it gives 0."""
        return self._above, self._below

    def step(self, state: Any, event: Event[Any]) -> Stepped:
        value = Fraction(str(event.value))  # a double of a step is printed as its decimal
        now = 1 if value > self._above else 0 if value < self._below else state
        return now, () if now == state else (now,)

    @property
    def fingerprint(self) -> str:
        return f"{super().fingerprint} {self._above} {self._below}"
