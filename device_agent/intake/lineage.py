"""Lineage: which readings another life of this device may have accepted, too.

Problem: a store is lost, and so are the lake and what the peers knew. The device reads its sources
again, and the new lake takes that. Then the old card is put back: it holds readings that nobody
could tell the other life of, so they count twice. No answer can prevent that, but both lives can be
told apart afterwards. Sketch: the processes that ran on one store are a line, and two stores that
were one share the beginning of it. A process says in its hello which processes it follows, and how
many readings each held at its end. Who is told of a life that its store does not know looks for the
last process that both follow: what both had accepted there is the same readings, and of what came
later as many may count twice as the smaller of both numbers. If no such process is known, all may.

    >>> ours = Lineage({}, [], 7)
    >>> ours.advance(1, 10, 500)
    >>> after = Lineage({1: StoredLine(*ours.now(1), *ours.past(1))}, [7], 8)
    >>> after.advance(1, 5, 600)
    >>> after.line()
    (7, 10)
    >>> after.new_twice(1, OtherLife(9, (7, 10)), 12, 900)
    2
    >>> after.new_twice(1, OtherLife(9, (7, 10)), 12, 900)
    0

Source: Parker et al., "Detection of Mutual Inconsistency in Distributed Systems", IEEE TSE 1983.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Final, NamedTuple

from lasp_edge.protocol.fencing import MOST_ANCESTORS, Line
from lasp_edge.protocol.limits import TIME_LIMIT_US

_MOST_OTHERS: Final = 16
"""Other lives of which it is remembered how many readings were said to count twice."""
_ALL: Final = 1 << 62


class OtherLife(NamedTuple):
    """A process of this device that others told of.

    Attributes:
        nonce: of the process.
        line: the processes that it follows, as it told them; see `HelloFrame`.
    """

    nonce: int
    line: Line = ()

    @property
    def processes(self) -> Iterator[tuple[int, int]]:
        """Yield (nonce, readings that it held there) of it and those that it follows."""
        yield self.nonce, _ALL
        yield from zip(self.line[::2], self.line[1::2], strict=True)


class _End(NamedTuple):
    """Where a process had come with a source.

    Attributes:
        held: how many readings it had accepted, with those of the processes before it.
        least_us: the least own time of those that it accepted itself.
    """

    held: int
    least_us: int


class StoredLine(NamedTuple):
    """What a store holds of the lineage of a source.

    Attributes:
        held, least_us: of the process that wrote it.
        ends: nonce, number and least own time of each process before that one, flat.
        said: nonce and number of readings that may count twice of each other life, flat.
    """

    held: int
    least_us: int
    ends: list[int]
    said: list[int]


class Lineage:
    """The processes of one store, and the readings that each held of each source.

    Args:
        stored: source -> what the store holds of it.
        lives: the nonces of the processes of this store, in order, this one apart.
        me: the nonce of this process.
    """

    __slots__ = ("_held", "_least_us", "_lives", "_me", "_past", "_said")

    def __init__(self, stored: Mapping[int, StoredLine], lives: Iterable[int], me: int) -> None:
        self._me = me
        self._lives = [nonce for nonce in dict.fromkeys(lives) if nonce != me]
        self._held: dict[int, int] = {}
        self._least_us: dict[int, int] = {}
        self._past: dict[int, dict[int, _End]] = {}
        self._said: dict[int, dict[int, int]] = {}
        for at, (held, least_us, ends, said) in stored.items():
            self._restore(at, _End(held, least_us), ends)
            self._said[at] = dict(zip(said[::2], said[1::2], strict=True))

    def _restore(self, at: int, last: _End, ends: list[int]) -> None:
        """Take what the process knew that wrote this, which is the first one without an end."""
        past = {nonce: _End(held, at_us) for nonce, held, at_us in _triples(ends)}
        newest = next((n for n in reversed(self._lives) if n in past), None)
        first = self._lives.index(newest) + 1 if newest is not None else 0
        for nonce in self._lives[first:]:
            past[nonce] = last
            last = _End(last.held, TIME_LIMIT_US)  # those after it accepted nothing
        self._held[at], self._past[at] = last.held, _thinned(past)

    def _begin(self, at: int) -> None:
        """Note that no process before this one has accepted a reading of a source."""
        self._held[at] = 0
        none = _End(0, TIME_LIMIT_US)
        self._past[at] = _thinned(dict.fromkeys(self._lives, none))

    def advance(self, source: int, accepted: int, least_us: int) -> None:
        """Note that readings of a source were accepted, and the least of their own times."""
        if source not in self._held:
            self._begin(source)
        self._held[source] += accepted
        known_us = self._least_us.get(source, least_us)
        self._least_us[source] = min(known_us, least_us)

    def line(self) -> Line:
        """Return the processes that this one follows and the readings that each held, flat."""
        held: dict[int, int] = {}
        for past in self._past.values():
            for nonce, end in past.items():
                held[nonce] = held.get(nonce, 0) + end.held
        last = [(nonce, held[nonce]) for nonce in reversed(self._lives) if nonce in held]
        return tuple(chain(*last[:MOST_ANCESTORS]))

    def new_twice(self, source: int, other: OtherLife, accepted: int, high_us: int) -> int:
        """Return how many readings of a source may count twice of which that was not said yet.

        Args:
            source: its id.
            other: another life.
            accepted: how many readings it had accepted.
            high_us: up to which own time.
        """
        held = self._held.get(source, 0)
        common, least_us = self._common(source, other)
        if least_us > high_us:
            return 0
        found = min(held, accepted) - common
        said = self._said.setdefault(source, {})
        before = max(said.get(nonce, 0) for nonce, _ in other.processes)
        if found <= before:
            return 0
        said[other.nonce] = found
        while len(said) > _MOST_OTHERS:
            del said[next(iter(said))]
        return found - before

    def _common(self, source: int, other: OtherLife) -> tuple[int, int]:
        """Return how many own readings another life has from the same store, at least.

        And the least own time of the others.
        """
        past = self._past.get(source, {})
        later_us = self._least_us.get(source, TIME_LIMIT_US)
        ends = {**past, self._me: _End(self._held.get(source, 0), later_us)}
        shared = next(((n, total) for n, total in other.processes if n in ends), None)
        if shared is None:
            return 0, min(end.least_us for end in ends.values())
        nonce, total = shared
        # Of its readings it is only known how many they were of all sources.
        lacks = max(0, self._total(nonce) - total)
        order = list(ends)
        after = order[order.index(nonce) + (lacks == 0) :]
        common = max(0, ends[nonce].held - lacks)
        return common, min([ends[n].least_us for n in after], default=TIME_LIMIT_US)

    def _total(self, nonce: int) -> int:
        """Return how many readings a process of this store held of all sources."""
        if nonce == self._me:
            return sum(self._held.values())
        return sum(past[nonce].held for past in self._past.values() if nonce in past)

    def now(self, source: int) -> tuple[int, int]:
        """Return how many readings of a source are held, and the least time of this process's."""
        return self._held.get(source, 0), self._least_us.get(source, TIME_LIMIT_US)

    def past(self, source: int) -> tuple[list[int], list[int]]:
        """Return what is stored of the processes before this one, and of what was said."""
        ends = [n for nonce, end in self._past.get(source, {}).items() for n in (nonce, *end)]
        return ends, list(chain(*self._said.get(source, {}).items()))


def _thinned(past: dict[int, _End]) -> dict[int, _End]:
    """Return the last processes; the first of them stands for those before it, too."""
    nonces = list(past)[-MOST_ANCESTORS:]
    kept = {nonce: past[nonce] for nonce in nonces}
    if len(kept) < len(past):
        first = nonces[0]
        least_us = min(end.least_us for nonce, end in past.items() if nonce not in kept)
        kept[first] = _End(past[first].held, min(least_us, past[first].least_us))
    return kept


def _triples(flat: list[int]) -> Iterator[tuple[int, int, int]]:
    return zip(flat[::3], flat[1::3], flat[2::3], strict=True)
