"""Repeating: how an operator's commands are kept alive by all who know them.

An operator retires or admits a device with one command and is gone; brokers lose retained messages,
and devices their stores. So everybody who keeps commands repeats one that was not heard for some
time: devices, and landers, whose lakes hold them for ever, where the broker lets them. Each waits a
random time, so that of many about one repeats it and the others hear it.

    >>> repeating = Repeating(Random(7))
    >>> repeating.begin([("attic",)], now_us=0)
    >>> repeating.due(now_us=0), repeating.due(now_us=2 * CORRECT_US)
    ([], [('attic',)])
    >>> repeating.hear(("attic",), 2 * CORRECT_US, is_newest=True)
    >>> repeating.due(now_us=2 * CORRECT_US + REPEAT_US - 1)
    []

Source: Levis, Patel, Culler and Shenker, "Trickle: A Self-Regulating Algorithm for Code Propagation
and Maintenance in Wireless Sensor Networks", NSDI 2004 (polite gossip).
"""

from collections.abc import Iterable
from random import Random
from typing import Final

from lasp_edge.protocol.commands import Subject
from lasp_edge.timers import NEVER_US

REPEAT_US: Final = 60_000_000
"""Least microseconds in which a command was not heard before it is repeated; at most twice that."""
CORRECT_US: Final = 2_000_000
"""The same where an older command was heard, or nothing yet on a new connection: somebody may not
know it."""


class Repeating:
    """When each command is to be repeated.

    Args:
        jitter: how long is waited is drawn from it.
    """

    def __init__(self, jitter: Random) -> None:
        self._jitter = jitter
        self._due_us: dict[Subject, int] = {}

    def begin(self, subjects: Iterable[Subject], now_us: int) -> None:
        """Start waiting on a new connection: the broker may have lost the commands about these."""
        for subject in sorted(subjects):
            self._wait(subject, now_us, CORRECT_US)

    def hear(self, subject: Subject, now_us: int, *, is_newest: bool) -> None:
        """Put off repeating a command that was received: long if it is the newest one."""
        self._wait(subject, now_us, REPEAT_US if is_newest else CORRECT_US)

    @property
    def next_us(self) -> int:
        """When the next command is to be repeated."""
        return min(self._due_us.values(), default=NEVER_US)

    def due(self, now_us: int) -> list[Subject]:
        """Return the subjects whose command is to be repeated now, and wait for the next time.

        A clock that was set back lets nothing wait for the old time.
        """
        waiting = self._due_us.items()
        due = [subject for subject, at in waiting if not now_us < at <= now_us + 2 * REPEAT_US]
        for subject in sorted(due):
            self._wait(subject, now_us, REPEAT_US)
        return sorted(due)

    def _wait(self, subject: Subject, now_us: int, least_us: int) -> None:
        self._due_us[subject] = now_us + round(least_us * self._jitter.uniform(1, 2))
