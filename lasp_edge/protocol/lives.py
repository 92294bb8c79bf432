"""Lives: which lives of a device may still deliver what they sent.

Problem: a device starts on a lost or older store, asks what has landed of it, and reads the rest
again. A frame of its life before, which a slow network brings only now, holds readings of that
rest: they would count twice. Sketch: each life has a greater incarnation than those before it. Once
a lander has heard a later one, it takes no panes of an earlier one any more, whenever they were
sent (the incarnation is a fencing token). Nothing is lost by that: a life sends itself all that its
store holds of the lives before it.

Two copies of a device may be alive at the same time. The one that is not heard any more is told to
ask, learns of the other, and takes a later incarnation: then both are heard.

    >>> lives, old, new = Lives(), Replica(5, 9, "attic"), Replica(6, 7, "attic")
    >>> lives.delivers(old), lives.delivers(new), lives.delivers(old)
    (True, True, False)
    >>> lives.delivers(Replica(7, 9, "attic")), lives.delivers(new)  # a copy: both are alive
    (True, True)

Source: Gray and Cheriton, "Leases", SOSP 1989; Kleppmann, "Designing Data-Intensive Applications",
2017, chapter 8 (fencing tokens).
"""

from typing import Final, NamedTuple, Protocol

from crdts import Replica

KEPT_LIVES: Final = 8
"""Lives of a device that are told apart, the last ones: some copies, and what is on its way."""
_HEARD: Final = -1


class HasReplica(Protocol):
    """What was heard of a device before."""

    @property
    def replica(self) -> Replica:
        """The newest replica of it."""


class KnownLives(NamedTuple):
    """The lives of one device.

    Attributes:
        newest: the greatest incarnation of all.
        bars: (nonce, incarnation that a replica with it must exceed to be heard), the oldest first.
    """

    newest: int
    bars: tuple[tuple[int, int], ...]


class Lives:
    """Device -> its lives, and which of them are heard."""

    def __init__(self) -> None:
        self._known: dict[str, KnownLives] = {}

    def delivers(self, replica: Replica, before: HasReplica | None = None) -> bool:
        """Note that a life speaks; return whether what it sent is to be taken.

        Args:
            replica: the life.
            before: what was heard of its device, should this be its first life that speaks here.
        """
        incarnation, nonce, device = replica
        known = self._known.get(device)
        if known is None:
            known = _first(before)
        elif (nonce, _HEARD) in known.bars and incarnation <= known.newest:
            return True  # nearly always
        bars = dict(known.bars)
        if incarnation <= bars.get(nonce, known.newest):
            self._known[device] = known
            return False
        if nonce not in bars:
            bars = {each: max(bar, known.newest) for each, bar in bars.items()}
        bars[nonce] = _HEARD
        last = tuple(bars.items())[-KEPT_LIVES:]
        self._known[device] = KnownLives(max(known.newest, incarnation), last)
        return True


def _first(before: HasReplica | None) -> KnownLives:
    if before is None:
        return KnownLives(0, ())
    incarnation, nonce, _ = before.replica
    if not nonce:  # of a life in the lake only the incarnation is known: it may be this one
        return KnownLives(incarnation - 1, ())
    return KnownLives(incarnation, ((nonce, _HEARD),))
