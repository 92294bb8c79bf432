"""Conditions on a value: above or below a level, with a level at which they are armed again.

A value that swings around a bound would fire again and again. So what has fired is armed again only
when the value has come back to a second level (hysteresis); and a condition may have to hold for
some time before it fires.

    >>> warm = Trigger.of("alert 'too warm'", above=28, below=27)
    >>> [warm.holds(Fraction(28), fired=False), warm.holds(Fraction("28.01"), fired=False)]
    [False, True]
    >>> [warm.holds(Fraction("27.5"), fired=True), warm.holds(Fraction(27), fired=True)]
    [True, False]
    >>> Trigger.of("alert 'frost'", below=5, hysteresis="0.5").holds(Fraction("5.4"), fired=True)
    True
"""

from fractions import Fraction
from typing import Any, NamedTuple, Self

from lasp_edge.folds.decimals import exact
from lasp_edge.protocol.limits import NEVER, NEVER_US

LONGEST_S = 10 * 365 * 86_400
"""Seconds that a condition may have to hold, and between two calls, at most: ten years."""


LEAST_STALE_US = 60_000_000
"""Microseconds of silence after which a device may be left out, at least."""


class Trigger(NamedTuple):
    """What a value has to do for something to happen.

    Attributes:
        rises: it fires above `level`; else below it.
        level: where it fires: beyond it, not at it.
        rearm: where it is armed again: at it, or beyond it the other way.
        for_us: it fires once it has held for this long, microseconds.
    """

    rises: bool
    level: Fraction
    rearm: Fraction
    for_us: int = 0

    @classmethod
    def of(
        cls,
        what: str,
        *,
        above: Any = None,
        below: Any = None,
        hysteresis: Any = 0,
        for_s: Any = 0,
    ) -> Self:
        """Return the condition that a user has written; `what` says whose it is, for errors.

        Raises:
            ValueError: the levels do not fit each other, or are no numbers.
        """
        for_us = microseconds(for_s, f"{what}: for_s")
        gap = exact(hysteresis, f"{what}: hysteresis")
        if gap < 0 or (gap and above is not None and below is not None):
            raise ValueError(
                f"{what}: hysteresis is a number from 0, beside above= or below= alone; "
                "above= and below= together say both levels themselves"
            )
        if above is not None:
            level = exact(above, f"{what}: above")
            rearm = level - gap if below is None else exact(below, f"{what}: below")
            if rearm > level:
                raise ValueError(
                    f"{what}: it fires above {above} and is armed again at or below {below}, "
                    "which must not be the greater one"
                )
            return cls(True, level, rearm, for_us)  # noqa: FBT003 - it rises
        if below is None:
            raise ValueError(f"{what}: write above= or below=, such as above=28, below=27")
        level = exact(below, f"{what}: below")
        return cls(False, level, level + gap, for_us)  # noqa: FBT003

    def holds(self, number: Fraction | None, *, fired: bool) -> bool:
        """Return whether a value is where this fires or, once it has fired, not armed again.

        Without a value nothing holds.
        """
        if number is None:
            return False
        bound = self.rearm if fired else self.level
        return number > bound if self.rises else number < bound

    @property
    def levels(self) -> dict[str, float]:
        """The levels as a user would write them, for people."""
        first, second = ("above", "below") if self.rises else ("below", "above")
        found = {first: float(self.level)}
        return found if self.level == self.rearm else found | {second: float(self.rearm)}

    def __str__(self) -> str:
        words = " ".join(f"{name} {number:g}" for name, number in self.levels.items())
        return f"{words} for {self.for_us / 1_000_000:g} s" if self.for_us else words


def microseconds(seconds: Any, what: str) -> int:
    """Return seconds from 0 in microseconds.

    Raises:
        ValueError: they are no such number; `what` says what they are.
    """
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not 0 <= seconds <= LONGEST_S:
        raise ValueError(f"{what}: seconds from 0 are needed, not {seconds!r}")
    span_us: int = round(seconds * 1_000_000)
    return span_us


def wait_time(seconds: Any, what: str) -> int:
    """Return a `tentative_after_s=` in microseconds.

    Raises:
        ValueError: it is neither seconds from 0 nor "never"; `what` says whose it is.
    """
    if seconds == NEVER:
        return NEVER_US
    try:
        return microseconds(seconds, what)
    except ValueError:
        raise ValueError(
            f'{what}: tentative_after_s is seconds from 0, or "never", not {seconds!r}'
        ) from None


def stale_time(seconds: Any, fold: str) -> int:
    """Return a `stale_after_s=` in microseconds.

    Raises:
        ValueError: it is too short: devices at rest send little.
    """
    span_us = microseconds(seconds, f"fold_dynamic {fold!r}: stale_after_s")
    if span_us < LEAST_STALE_US:
        raise ValueError(
            f"fold_dynamic {fold!r}: stale_after_s must be {LEAST_STALE_US / 1_000_000:g} or more, "
            f"not {seconds!r}: a device at rest speaks once in a while only"
        )
    return span_us
