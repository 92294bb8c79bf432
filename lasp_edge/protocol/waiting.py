"""Tentative within X: since when a window waits, and from when on its row is written all the same.

A window *waits* since the first promise came that passes its end: from then on somebody is done
with it, and others are not. When it has waited for X (`--tentative-after`) it is due, and gets a
row that is tentative. If the frontier passes its end before, it never has such a row.

    since of a window   least `received_us` of the promises with min(low_us, received_us) >= its end
    due                 the tick's clock is at least X further

The clock is that of ticks, and since is a promise's, not the window's end: so a recording that is
replayed at full speed gives the rows that the day gave. A promise counts for no more than the time
at which it came, or one clock that is two hours fast would make everything due at once.

What has to be known of the promises is a stair: its steps rise in both coordinates, and the join of
two stairs is the greatest of both at every time. So it does not matter in which order promises
come, or how often. Of the steps that come within a small part of X the highest is kept, so their
number is bounded; those that are older than X are one.

    >>> waiting = WindowWaiting.of([15 * SECOND_US])
    >>> first = Step(received_us=101 * SECOND_US, lead_us=100 * SECOND_US)
    >>> waiting = waiting.joined([first], now_us=115 * SECOND_US)
    >>> waiting.due_us(15 * SECOND_US)
    >>> waiting.joined([], now_us=116 * SECOND_US).due_us(15 * SECOND_US)
    100000000

Source: Balazinska, Balakrishnan, Madden and Stonebraker, "Fault-Tolerance in the Borealis
Distributed Stream Processing System", SIGMOD 2005 (delay, process, and correct), where X is the
time for which an input is held back in the hope that it becomes whole.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, Self

from crdts.frontier import BOTTOM_US, Promise
from lasp_edge.protocol.limits import NEVER_US
from lasp_edge.units import SECOND_US

ALWAYS_US: Final = 1 << 62
"""The end up to which windows are due where X is 0: all of them, also before anybody promised."""
DEAD_AFTER_US: Final = 600 * SECOND_US
"""Microseconds for which a silent device is waited for, unless one says otherwise: ten minutes
cover a restart of its machine or of its network."""
DEAD_AFTER_WITH_X_US: Final = 86_400 * SECOND_US
"""The same where X is given: then X says when people see something, and a device that is left out
costs revisions of what was final."""
LISTEN_US: Final = 60 * SECOND_US
"""Microseconds for which a sink without a roster listens who is there, at its first start, where X
is given. Devices that hear of a new sink speak to it at once."""
_STEPS: Final = 4_096
"""Steps of a stair that are younger than X, at most: X is counted to a 4,096th."""


class WaitingWindow(Protocol):
    """The attributes of a window from which its X follows."""

    @property
    def name(self) -> str:
        """The window's."""

    @property
    def tentative_after_us(self) -> int | None:
        """Its own X; None for that of the whole sink."""


def waits_of(windows: Iterable[WaitingWindow], all_us: int) -> dict[str, int]:
    """Return the X of each window by name: its own, or else that of all."""
    return {
        window.name: all_us if window.tentative_after_us is None else window.tentative_after_us
        for window in windows
    }


def listen_us(waits: Mapping[str, int], dead_after_us: int) -> int:
    """Return for how long a sink without a roster listens before anything is final."""
    return min(dead_after_us, LISTEN_US) if any(waits.values()) else dead_after_us


class Step(NamedTuple):
    """From a time on, a device has promised up to a time, which is not after it."""

    received_us: int
    lead_us: int

    @classmethod
    def of(cls, promise: Promise) -> Self | None:
        """Return what a promise brings; None where it promises nothing, or is void."""
        if promise.low_us is None or promise.low_us == BOTTOM_US:
            return None
        return cls(promise.heard_us, min(promise.low_us, promise.heard_us))


def grid_us(wait_us: int) -> int:
    """Return within how many microseconds the highest step counts for the others, for an X."""
    return max(1, wait_us // _STEPS)


Stair = tuple[Step, ...]
"""Steps that rise in both coordinates."""


def steps_of(promises: Iterable[Promise]) -> list[Step]:
    """Return the steps that promises bring, each of which was its device's newest when it came.

    One that comes again later brings nothing: of a clock that is fast it would, with each repeat.
    """
    return [step for step in map(Step.of, promises) if step is not None]


def stair(steps: Iterable[Step], wait_us: int, now_us: int | None) -> Stair:
    """Return the steps that matter for windows that wait for `wait_us`.

    Args:
        steps: in any order; they may repeat.
        wait_us: X.
        now_us: the clock; None where it is not known, and then no step is too old.
    """
    length_us = grid_us(wait_us)
    oldest = None if now_us is None else (now_us - wait_us) // length_us
    highest: dict[int, Step] = {}
    for step in steps:
        place = step.received_us // length_us
        if oldest is not None and place < oldest:
            place = oldest - 1
        known = highest.get(place)
        if known is None or (known.lead_us, -known.received_us) < (
            step.lead_us,
            -step.received_us,
        ):
            highest[place] = step
    rising: list[Step] = []
    for step in sorted(highest.values()):
        if not rising or step.lead_us > rising[-1].lead_us:
            rising.append(step)
    return tuple(rising)


class WindowWaiting(NamedTuple):
    """Since when windows wait, for each X, and which are due.

    Attributes:
        stairs: X -> its stair, for each X that is neither 0 nor never.
        ends_us: X -> windows that end then or earlier are due; missing where none is.
    """

    stairs: Mapping[int, Stair]
    ends_us: Mapping[int, int] = MappingProxyType({})

    @classmethod
    def of(cls, waits_us: Iterable[int]) -> Self:
        """Return what is known before anybody has promised anything."""
        return cls({wait_us: () for wait_us in sorted(set(waits_us)) if 0 < wait_us < NEVER_US})

    def joined(self, steps: Iterable[Step], now_us: int | None) -> "WindowWaiting":
        """Return what is known after further promises, at a later time.

        Args:
            steps: what promises brought.
            now_us: the tick's clock; None: nothing becomes due.
        """
        if not self.stairs:
            return self
        more, ends_us = list(steps), dict(self.ends_us)
        stairs = {
            wait_us: stair([*known, *more], wait_us, now_us)
            for wait_us, known in self.stairs.items()
        }
        for wait_us, known in stairs.items() if now_us is not None else ():
            assert now_us is not None
            passed = [step.lead_us for step in known if step.received_us + wait_us <= now_us]
            if passed:
                ends_us[wait_us] = max(passed[-1], ends_us.get(wait_us, passed[-1]))
        return WindowWaiting(stairs, ends_us)

    def due_us(self, wait_us: int) -> int | None:
        """Return the end up to which windows of this X are due; None if no window is."""
        return self.ends_us.get(wait_us) if wait_us else ALWAYS_US

    def is_due(self, wait_us: int, end_us: int) -> bool:
        """Return whether a window of this X that ends then is due."""
        due_us = self.due_us(wait_us)
        return due_us is not None and end_us <= due_us

    def due_at_us(self, wait_us: int, end_us: int) -> int | None:
        """Return when a window will be due; None as long as nobody has promised past its end."""
        since = (s.received_us for s in self.stairs.get(wait_us, ()) if s.lead_us >= end_us)
        return next((since_us + wait_us for since_us in since), None)

    @property
    def steps(self) -> frozenset[Step]:
        """All steps: joined again, they give the same stairs."""
        return frozenset(step for known in self.stairs.values() for step in known)
