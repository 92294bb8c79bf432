"""Witnesses: the clocks of other devices and of landers, and the time that most of them agree on.

Each beat and each acknowledgement tells its sender's clock. A message takes some time, so of what a
witness reported within a minute the latest time counts. A device whose own clock is not trusted
reports nothing, so no two devices can confirm each other in an error of a third.

A broker keeps messages for a device that is away, so what comes first may be hours old, and whoever
sent it may be off by then. A message that was under way makes a clock look late, never early. So a
witness that is behind this device counts only once its clock has gone on as this machine's has for
`LIVE_US`; one that is ahead counts at once.

The verdict is the weighted median, if more than half of the weight lies near it: one liar among
three moves nothing. Its weight is that of those who agree with it; the others may bear out the
device's own clock, so they are counted together with that.

    >>> witnesses = Witnesses()
    >>> for name, clock_us in (("a", 1_000_000_000), ("b", 9_000_000_000), ("c", 1_000_000_001)):
    ...     witnesses.hear(name, (1, 1), clock_us, monotonic_us=400)
    >>> witnesses.verdict(monotonic_us=500, near_us=1_000_000)
    Claim(offset_us=999999601, weight=4, against_us=(8999999600,))
"""

from dataclasses import dataclass
from typing import NamedTuple

WITNESS_WEIGHT = 2
"""The weight of another clock, a lander's too; that of a device's own is the same."""
LONE_WEIGHT = 1
"""The weight of a verdict that one clock alone gives: less than that of the own clock."""
WITNESSES = 64
"""Witnesses, at most: their median is not more exact with more of them."""
KEPT_US = 3_600_000_000
"""Microseconds for which a witness counts: in an hour, quartz drifts by less than a second."""
NAMED_US = 300_000_000
"""Microseconds for which people read that a clock is wrong: a device is heard more often, and a
lander that has nothing to acknowledge may be right again by then."""
SLOW_US = 60_000_000
"""Microseconds for which a message may have been under way: of those, the latest time counts."""

LIVE_US = 10_000_000
"""Microseconds for which a clock must have gone on before it counts where it is behind."""
FORMER = 8
"""Processes of a witness whose messages are known to be earlier ones: those before the last."""
STEADY_US = 5_000_000
"""Microseconds by which the offsets of a clock that goes on may differ."""


class Claim(NamedTuple):
    """The time by some clocks.

    Attributes:
        offset_us: the time less the monotonic clock.
        weight: of all that say so.
        against_us: the offsets of other clocks, which do not.
    """

    offset_us: int
    weight: int
    against_us: tuple[int, ...] = ()


@dataclass(slots=True)
class _Witness:
    """One other clock.

    Attributes:
        version: of its last message.
        former: the processes of before, those of the last restarts.
        offset_us: the time that it tells less this machine's monotonic clock.
        heard_us: when that was heard.
        since_us, steady_us: the first and the last message since when it has gone on as this
            machine's clock has.
    """

    version: tuple[int, ...]
    former: tuple[tuple[int, ...], ...]
    offset_us: int
    heard_us: int
    since_us: int
    steady_us: int

    def has_passed(self, version: tuple[int, ...]) -> bool:
        """Return whether a message does not come after the last one.

        Processes of a lander are of one incarnation, and their nonces are drawn: that which was not
        heard before is the later one.
        """
        process, known = version[:2], self.version[:2]
        if process == known:
            return version <= self.version
        return process[:1] < known[:1] or process in self.former

    def former_of(self, version: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Return the processes before that of a message which comes after the last one."""
        known = self.version[:2]
        return self.former if version[:2] == known else (*self.former, known)[-FORMER:]

    @property
    def is_live(self) -> bool:
        """Whether its messages cannot all have waited at a broker."""
        return self.steady_us - self.since_us >= LIVE_US


class _Judged(NamedTuple):
    """A verdict, valid until a witness reports again or is too old to count.

    Attributes:
        claim: the verdict.
        near_us: within what the witnesses had to agree.
        until_us: on the monotonic clock, when the first of them counts no more.
        least_us: the least offset of those whose messages may have waited at a broker; None: all
            of them count, or are live.
    """

    claim: Claim | None
    near_us: int
    until_us: int
    least_us: int | None

    def is_valid(self, near_us: int, monotonic_us: int, least_us: int | None) -> bool:
        """Return whether the verdict would be the same now."""
        is_old = near_us != self.near_us or monotonic_us >= self.until_us
        return not is_old and (self.least_us is None or self.least_us == least_us)


class Witnesses:
    """The clocks of others, as offsets from this machine's monotonic clock."""

    def __init__(self) -> None:
        self._witnesses: dict[str, _Witness] = {}
        self._judged: _Judged | None = None
        self._full_until_us = 0

    def hear(
        self, name: str, version: tuple[int, ...], clock_us: int, *, monotonic_us: int
    ) -> None:
        """Take the reading of a clock.

        Args:
            name: whose clock.
            version: incarnation, nonce, number and time of the message, which rise with each one of
                a process, if only by the time, as a lander's do; an earlier one changes nothing.
            clock_us: the time it tells.
            monotonic_us: when that was heard.
        """
        offset_us = clock_us - monotonic_us
        known = self._witnesses.get(name)
        if known is None:
            if len(self._witnesses) >= WITNESSES and not self._forget(monotonic_us):
                return
        elif known.has_passed(version):
            return
        elif monotonic_us < known.heard_us + SLOW_US and offset_us < known.offset_us:
            # It was longer under way than the one before it.
            known.former, known.version = known.former_of(version), version
            if offset_us >= known.offset_us - STEADY_US:
                known.steady_us, self._judged = monotonic_us, None  # it may be live now
            return
        is_steady = known is not None and abs(offset_us - known.offset_us) <= STEADY_US
        since_us = known.since_us if known is not None and is_steady else monotonic_us
        former = () if known is None else known.former_of(version)
        times_us = (offset_us, monotonic_us, since_us, monotonic_us)
        self._witnesses[name] = _Witness(version, former, *times_us)
        self._judged = None

    def _forget(self, monotonic_us: int) -> bool:
        """Forget witnesses that count no more; return whether there were any."""
        if monotonic_us < self._full_until_us:
            return False  # each of very many that come finds the same
        kept = {name: w for name, w in self._witnesses.items() if _counts(w, monotonic_us)}
        found = len(kept) < len(self._witnesses)
        self._witnesses = kept
        self._full_until_us = min([each.heard_us for each in kept.values()], default=0) + KEPT_US
        return found

    def verdict(self, monotonic_us: int, near_us: int, own_us: int | None = None) -> Claim | None:
        """Return what most witnesses agree on; None where they do not.

        Args:
            monotonic_us: this machine's monotonic clock.
            near_us: clocks that differ by no more than this agree.
            own_us: the offset of this machine's wall clock, or of the time that is kept without it,
                whichever is earlier; None: all witnesses count.
        """
        judged, least_us = self._judged, None if own_us is None else own_us - near_us
        if judged is None or not judged.is_valid(near_us, monotonic_us, least_us):
            counted = [w for w in self._witnesses.values() if _counts(w, monotonic_us)]
            known = [w for w in counted if w.is_live or least_us is None or w.offset_us >= least_us]
            until_us = min([each.heard_us for each in known], default=monotonic_us) + KEPT_US
            if all(each.is_live for each in counted):
                least_us = None  # who counts is not up to this device's own clock
            judged = self._judged = _Judged(_verdict(known, near_us), near_us, until_us, least_us)
        return judged.claim

    def apart(self, offset_us: int, monotonic_us: int, near_us: int) -> dict[str, int]:
        """Return whose clocks do not agree with a clock, and by how far they are ahead of it.

        Of those that were heard lately.
        """
        return {
            name: witness.offset_us - offset_us
            for name, witness in self._witnesses.items()
            if abs(witness.offset_us - offset_us) > near_us
            and monotonic_us < witness.heard_us + NAMED_US
        }


def _verdict(known: list[_Witness], near_us: int) -> Claim | None:
    if not known:
        return None
    ordered = sorted(witness.offset_us for witness in known)
    median_us = ordered[(len(ordered) - 1) // 2]
    against_us = tuple(each for each in ordered if abs(each - median_us) > near_us)
    agreeing = len(ordered) - len(against_us)
    if agreeing <= len(against_us):
        return None
    weight = LONE_WEIGHT if agreeing == 1 else WITNESS_WEIGHT * agreeing
    return Claim(median_us, weight, against_us)


def _counts(witness: _Witness, monotonic_us: int) -> bool:
    return monotonic_us < witness.heard_us + KEPT_US
