"""Lives: which lives of a device may still deliver what they sent.

Problem: a device starts on a lost or older store, asks what has landed of it, and reads the rest
again. A frame of its life before, which a slow network brings only now, holds readings of that
rest: they would count twice. Sketch: each life has a greater incarnation than those before it. Once
a lander has heard a later one, it takes no panes of an earlier one any more, whenever they were
sent (the incarnation is a fencing token). Nothing is lost by that: a life sends itself all that its
store holds of the lives before it.

A hello alone proves little: a stranger may forge it, and a device may end before it says anything
else. So a life that goes on to say nothing puts an end to earlier ones for `SILENT_US` only.

A network may bring a frame of the life before between two hellos of a new one, which has become
later meanwhile. It has not spoken yet, so it is no copy: it puts an end to that life, too.

Two copies of a device may be alive at the same time. The one that is not heard any more is
asked to say hello, learns of the other, and takes a later incarnation: then both are heard.

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

SILENT_US: Final = 120_000_000
"""Microseconds within which a life that sent a hello has sent more: it decides within seconds, and
then beats."""
KEPT_LIVES: Final = 8
"""Lives of a device that are distinguished, the last ones: some copies, and what is on its way."""
_HEARD: Final = -1


class HasReplica(Protocol):
    """The former messages of a device, in short."""

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


class _Announced(NamedTuple):
    """Lives that sent a hello, and nothing else yet.

    Attributes:
        nonces: of them.
        before: who was heard before the first of them.
        since_us: when that one sent its hello.
    """

    nonces: frozenset[int]
    before: KnownLives
    since_us: int

    def is_over(self, now_us: int) -> bool:
        """Return whether they would have spoken by now; a clock that was set back tells nothing."""
        return not self.since_us <= now_us < self.since_us + SILENT_US


class Lives:
    """Device -> its lives, and which of them are heard."""

    def __init__(self) -> None:
        self._known: dict[str, KnownLives] = {}
        self._announced: dict[str, _Announced] = {}

    def announces(self, replica: Replica, now_us: int, before: HasReplica | None = None) -> bool:
        """Note the hello of a life; return whether its frames are taken now. See `delivers`."""
        _, nonce, device = replica
        self._end_silence(device, now_us)
        was = self._known.get(device) or _first(before)
        announced = self._announced.get(device, _Announced(frozenset(), was, now_us))
        if not self._hears(replica, before, is_first=nonce in announced.nonces):
            return False
        if (nonce, _HEARD) not in was.bars and len(announced.nonces) < KEPT_LIVES:
            nonces = announced.nonces | {nonce}
            self._announced[device] = announced._replace(nonces=nonces)
        return True

    def delivers(self, replica: Replica, now_us: int = 0, before: HasReplica | None = None) -> bool:
        """Note a frame of a life; return whether it is to be taken.

        Args:
            replica: the life.
            now_us: when that came.
            before: what was heard of its device, should this be its first life that speaks here.
        """
        device = replica.device
        announced = self._announced.get(device)
        if announced is not None and replica.nonce in announced.nonces:
            del self._announced[device]
        elif announced is not None:
            self._end_silence(device, now_us)
        return self._hears(replica, before)

    def _end_silence(self, device: str, now_us: int) -> None:
        """Let lives deliver again that did before others sent a hello and nothing else."""
        announced = self._announced.get(device)
        if announced is not None and announced.is_over(now_us):
            self._known[device] = announced.before
            del self._announced[device]

    def _hears(
        self, replica: Replica, before: HasReplica | None, *, is_first: bool = False
    ) -> bool:
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
        if nonce not in bars or is_first:
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
