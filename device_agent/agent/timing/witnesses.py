"""Witnesses: what the clocks of other devices and of landers say, and what most of them agree on.

Each beat and each acknowledgement tells its sender's clock. A message takes some time, so of what a
witness reported within a minute the latest time counts. A device whose own clock is not trusted
reports nothing, so no two devices can confirm each other in an error of a third.

The verdict is the weighted median, if more than half of the weight lies near it: one liar among
three moves nothing. Its weight is that of those who agree with it.

    >>> witnesses = Witnesses()
    >>> for name, clock_us in (("a", 1_000_000_000), ("b", 9_000_000_000), ("c", 1_000_000_001)):
    ...     witnesses.hear(name, (1, 1), clock_us, monotonic_us=400, weight=PEER_WEIGHT)
    >>> witnesses.verdict(monotonic_us=500, near_us=1_000_000)
    Claim(offset_us=999999601, weight=4)
"""

from dataclasses import dataclass
from typing import NamedTuple

PEER_WEIGHT = 2
"""The weight of another device's clock; that of a device's own is the same."""
LANDER_WEIGHT = 4
"""The weight of a lander's clock: it runs on a server, where time servers are heard, and a lander
refuses what lies far ahead of its clock in any case."""
LONE_PEER_WEIGHT = 1
"""The weight of a verdict that one device alone gives: less than that of the own clock."""
WITNESSES = 64
"""Witnesses, at most: their median is not more exact with more of them."""
KEPT_US = 3_600_000_000
"""Microseconds for which a witness counts: in an hour, quartz drifts by less than a second."""
SLOW_US = 60_000_000
"""Microseconds for which a message may have been under way: of those, the latest time counts."""


class Claim(NamedTuple):
    """What time it is, as some clocks say.

    Attributes:
        offset_us: the time less the monotonic clock.
        weight: of all that say so.
    """

    offset_us: int
    weight: int


@dataclass(slots=True)
class _Witness:
    """One other clock."""

    version: tuple[int, ...]
    offset_us: int
    heard_us: int
    weight: int


class _Judged(NamedTuple):
    """A verdict, valid until a witness reports again or is too old to count.

    Attributes:
        claim: the verdict.
        near_us: within what the witnesses had to agree.
        until_us: on the monotonic clock, when the first of them counts no more.
    """

    claim: Claim | None
    near_us: int
    until_us: int


class Witnesses:
    """The clocks of others, as offsets from this machine's monotonic clock."""

    def __init__(self) -> None:
        self._witnesses: dict[str, _Witness] = {}
        self._judged: _Judged | None = None
        self._full_until_us = 0

    def hear(
        self, name: str, version: tuple[int, ...], clock_us: int, *, monotonic_us: int, weight: int
    ) -> None:
        """Take what a clock says.

        Args:
            name: whose clock.
            version: rises with each message of it; an earlier one changes nothing.
            clock_us: the time it tells.
            monotonic_us: when that was heard.
            weight: what its word weighs.
        """
        offset_us = clock_us - monotonic_us
        known = self._witnesses.get(name)
        if known is None:
            if len(self._witnesses) >= WITNESSES and not self._forget(monotonic_us):
                return
        elif version <= known.version:
            return
        elif monotonic_us < known.heard_us + SLOW_US and offset_us < known.offset_us:
            known.version = version  # it was longer under way than the one before it
            return
        self._witnesses[name] = _Witness(version, offset_us, monotonic_us, weight)
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

    def verdict(self, monotonic_us: int, near_us: int) -> Claim | None:
        """Return what most witnesses agree on, within `near_us`; None where they do not."""
        judged = self._judged
        if judged is None or judged.near_us != near_us or monotonic_us >= judged.until_us:
            known = [w for w in self._witnesses.values() if _counts(w, monotonic_us)]
            until_us = min([each.heard_us for each in known], default=monotonic_us) + KEPT_US
            judged = self._judged = _Judged(_verdict(known, near_us), near_us, until_us)
        return judged.claim


def _verdict(known: list[_Witness], near_us: int) -> Claim | None:
    if not known:
        return None
    ordered = sorted(known, key=lambda witness: witness.offset_us)
    total, sum_ = sum(witness.weight for witness in known), 0
    median_us = 0
    for witness in ordered:
        sum_ += witness.weight
        if 2 * sum_ >= total:
            median_us = witness.offset_us
            break
    agreeing = [w for w in known if abs(w.offset_us - median_us) <= near_us]
    weight = sum(witness.weight for witness in agreeing)
    if 2 * weight <= total:
        return None
    alone = len(agreeing) == 1 and weight == PEER_WEIGHT
    return Claim(median_us, LONE_PEER_WEIGHT if alone else weight)


def _counts(witness: _Witness, monotonic_us: int) -> bool:
    return monotonic_us < witness.heard_us + KEPT_US
