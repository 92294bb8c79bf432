"""Unreported lines: those that count twice, and of which nobody can know.

A life reads again what a lost one had read where no lander reported that: peers know less, and a
lander may be away, or hold another store. It can report that once it learns of the other one, and
so can each life after it on the same store. Where that store is lost, too, before any of them
learnt it, no store is left that holds one of both readings: docs/limits.md names it. Only such
lines are forgiven, each as often as that happened.

    >>> unreported = UnreportedLines()
    >>> unreported.take(0, 3)
    >>> unreported.begin(1)  # on an older image, and alone
    >>> unreported.take(1, 4)
    >>> unreported.begin(2)  # on one that holds line 1, the second time
    >>> sorted(unreported.lost.elements())
    [2]
    >>> unreported.reported()  # who holds line 1 can say it now
    >>> unreported.begin(0)
    >>> sorted(unreported.lost.elements())
    [2]
"""

from collections import Counter


class UnreportedLines:
    """The lines of a recording that a device took in, by number.

    Attributes:
        lost: line -> how often it was taken in again, and lost before a life that held it learnt
            of another one.
        taken: all that some life took in.
    """

    def __init__(self) -> None:
        self.lost: Counter[int] = Counter()
        self.taken: set[int] = set()
        self._held: set[int] = set()

    def take(self, first: int, after: int) -> None:
        """Note that a process has taken in these lines, and that they are durable."""
        lines = set(range(first, after))
        self._held |= lines & self.taken
        self.taken |= lines

    def reported(self) -> None:
        """Note that the process learnt from each lander which lives its device had before."""
        self._held.clear()

    def begin(self, position: int) -> None:
        """Note that a process starts, on a store that holds the lines before this one."""
        gone = {line for line in self._held if line >= position}
        self.lost.update(gone)
        self._held -= gone
