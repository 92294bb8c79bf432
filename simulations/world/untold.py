"""Untold lines: those that count twice, and of which nobody can know.

A life reads again what a lost one had read where no lander told it of that: peers know less, and a
lander may be away, or hold another store. It may say so once it is told of the other one, and so
may each life after it on the same store. Where that
store is lost, too, before any of them was told, no store is left that holds one of both readings:
docs/limits.md names it. Only such lines are forgiven, each as often as that happened.

    >>> untold = UntoldLines()
    >>> untold.take(0, 3)
    >>> untold.begin(1)  # on an older image, and alone
    >>> untold.take(1, 4)
    >>> untold.begin(2)  # on one that holds line 1, the second time
    >>> sorted(untold.lost.elements())
    [2]
    >>> untold.told()  # who holds line 1 can say it now
    >>> untold.begin(0)
    >>> sorted(untold.lost.elements())
    [2]
"""

from collections import Counter


class UntoldLines:
    """The lines of a recording that a device took in, by number.

    Attributes:
        lost: line -> how often it was taken in anew, and lost before a life that held it was told
            of another one.
    """

    def __init__(self) -> None:
        self.lost: Counter[int] = Counter()
        self._taken: set[int] = set()
        self._held: set[int] = set()

    def take(self, first: int, after: int) -> None:
        """Note that a process has taken in these lines, and that they are durable."""
        lines = set(range(first, after))
        self._held |= lines & self._taken
        self._taken |= lines

    def told(self) -> None:
        """Note that each lander that knows it told the process who the device was before."""
        self._held.clear()

    def begin(self, position: int) -> None:
        """Note that a process starts, on a store that holds the lines before this one."""
        gone = {line for line in self._held if line >= position}
        self.lost.update(gone)
        self._held -= gone
