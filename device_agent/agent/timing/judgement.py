"""Which clock is trusted: the wall clock, the time that went on since it was, or the fleet's.

Problem: a wall clock may start in 1970, jump by days, or be two hours ahead, and the kernel seldom
knows: `adjtimex` says "unsynchronised" on many machines whose clock is right. A reading that is
placed by a wrong clock lies in a wrong pane for ever.

Sketch: everything that tells the time is a claim with a weight, as an offset from the monotonic
clock, which never jumps:

    the wall clock      6 where the kernel says that it is synchronised, else 2; else nothing before
                        this release was made, or while it stands where the fleet refuted it
    the time before     2: the last trusted time and what has passed since, in the same boot
    an earlier boot     2, against a time that is before the last one that was trusted
    the fleet           2 for each device and lander that agree, 1 for one alone; see `witnesses`.
                        Those that agree with the wall clock instead are counted with that

The claim that has more than half of the weight, with all that lie near it, is trusted. So a device
alone trusts a plausible wall clock at once, and a jump of it only when that has lasted for
`wait_us`, or the kernel or the fleet says so. One other clock never corrects a wall clock that is
plausible and has not jumped, for either may be the wrong one; nor do as many as agree with it.
One other clock that is the only claim counts after `ALONE_US`. While no claim has more, the device
waits. Where the wall clock is not the one that is trusted, it is `ahead` or `behind`, and time is
kept without it.

    >>> judgement = Judgement(near_us=300, wait_us=900)
    >>> right_us = RELEASED_US + 5_000
    >>> judgement.judge(ClockReading(right_us, 100, "b"), None)
    'trusted'
    >>> judgement.judge(ClockReading(right_us + 7_200, 200, "b"), None)  # alone: which one is it?
    'waiting'
    >>> judgement.judge(ClockReading(right_us + 7_300, 300, "b"), Claim(right_us - 100, 1))
    'ahead'
    >>> judgement.offset_us == right_us - 100
    True
"""

from collections.abc import Mapping
from typing import Literal

from device_agent.agent.clock import ClockReading
from device_agent.agent.timing.witnesses import LONE_WEIGHT, WITNESS_WEIGHT, Claim

State = Literal["trusted", "waiting", "ahead", "behind"]

RELEASED_US = 1_735_689_600_000_000
"""The beginning of the year 2025: no clock that is right is before it, for this was not written."""
OWN_WEIGHT = 2
SYNCHRONISED_WEIGHT = 6
"""The weight of a wall clock that the kernel says is synchronised: three others that agree do not
outweigh it, four do."""
ANCHOR_US = 86_400_000_000
"""Microseconds for which a jump is measured from the same time before: a clock that stands still,
or runs more than 0.3 % too fast, jumps in small steps."""
ALONE_US = 10_000_000
"""Microseconds for which one other clock must be all that there is before it is trusted: in that
time the devices that are there speak."""
LEAST_NEAR_US = 5_000_000
"""Microseconds within which two clocks agree, at least: clocks are reported in whole seconds, and a
message may be under way for some."""


class Judgement:
    """Keeps the trusted time of one machine, over jumps of its wall clock.

    Args:
        near_us: clocks that differ by no more than this agree.
        wait_us: how long a wall clock that is contradicted must stay as it is before it is trusted.
        past_us: the last time that was trusted; None for a new store.
        boots: offset of the trusted time from the monotonic clock, by boot.
        released_us: no clock is right before it.

    Attributes:
        offset_us: the trusted time less the monotonic clock; None before there is one.
        off_us: how far the wall clock was ahead of that, last; 0 while it is the trusted one.
    """

    def __init__(
        self,
        *,
        near_us: int,
        wait_us: int,
        past_us: int | None = None,
        boots: Mapping[str, int] | None = None,
        released_us: int = RELEASED_US,
    ) -> None:
        self._near_us, self._wait_us, self._released_us = near_us, wait_us, released_us
        self._past_us = past_us
        self._boots = dict(boots or {})
        self._boot: str | None = None
        self._anchor: tuple[int, int] | None = None
        self._contradicted: Claim | None = None
        self._since_us = 0
        self._alone_us: int | None = None
        self._refuted_us: int | None = None
        self.offset_us: int | None = None
        self.off_us = 0

    def judge(self, reading: ClockReading, fleet: Claim | None, *, trust: bool = False) -> State:
        """Return how the clock stands, and keep the trusted time in `offset_us`.

        Args:
            reading: what the machine's clocks say.
            fleet: what most others agree on.
            trust: the wall clock is right, whatever speaks against it.
        """
        if reading.boot != self._boot:
            self._begin(reading)
        wall_us = reading.wall_us - reading.monotonic_us
        if trust:
            return self._trust(wall_us, reading.monotonic_us, afresh=True)
        self._refuted_us = self._still_refuted_us(wall_us, fleet)
        wall = self._wall(reading, wall_us, fleet)
        before = None if self._anchor is None else Claim(self._anchor[0], OWN_WEIGHT)
        jumped = before is not None and not self._agree(wall_us, before.offset_us)
        if wall and not jumped:
            before = None  # it is the wall clock's own word
        unmoved = None if jumped or self._anchor is None else wall
        if unmoved is not None and (fleet is None or fleet.weight <= unmoved.weight):
            return self._trust(wall_us, reading.monotonic_us, afresh=False)
        claims = [claim for claim in (wall, before, fleet) if claim is not None]
        claims = self._heeded(claims, reading.monotonic_us)
        total = sum(claim.weight for claim in claims)
        for claim in claims:
            support = self._support(claim.offset_us, claims)
            if 2 * support > total + self._against(claim.offset_us + reading.monotonic_us):
                if claim is wall:
                    return self._trust(wall_us, reading.monotonic_us, afresh=jumped)
                return self._mistrust(claim, wall_us, reading.monotonic_us, fleet)
        return self._wait(reading, wall)

    def _begin(self, reading: ClockReading) -> None:
        """Begin with what the store knows of this boot of the machine."""
        self._boot = reading.boot
        self.offset_us = self._boots.get(reading.boot) if reading.boot else None
        self._anchor = self._alone_us = None
        if self.offset_us is not None:
            self._anchor = self.offset_us, reading.monotonic_us

    def _still_refuted_us(self, wall_us: int, fleet: Claim | None) -> int | None:
        """Return where the fleet refuted the wall clock, if that still holds."""
        if self._refuted_us is None or not self._agree(wall_us, self._refuted_us):
            return None
        is_near = fleet is not None and self._agree(wall_us, fleet.offset_us)
        return None if is_near else self._refuted_us

    def _wall(self, reading: ClockReading, wall_us: int, fleet: Claim | None) -> Claim | None:
        """Return what the wall clock claims; None while it is not worth anything."""
        others_us = () if fleet is None else fleet.against_us
        borne_out = WITNESS_WEIGHT * sum([self._agree(wall_us, each_us) for each_us in others_us])
        if reading.synchronised:
            return Claim(wall_us, SYNCHRONISED_WEIGHT + borne_out)
        if reading.wall_us < self._released_us or self._refuted_us is not None:
            return None
        return Claim(wall_us, OWN_WEIGHT + borne_out)

    def _against(self, time_us: int) -> int:
        """Return what weighs against this time: it is before the last one that was trusted."""
        if self._anchor is not None or self._past_us is None:
            return 0
        return OWN_WEIGHT if time_us < self._past_us - self._near_us else 0

    def _heeded(self, claims: list[Claim], monotonic_us: int) -> list[Claim]:
        """Return the claims; none while one other clock is all, and has not been for `ALONE_US`."""
        if len(claims) != 1 or claims[0].weight != LONE_WEIGHT:
            self._alone_us = None
            return claims
        if self._alone_us is None:
            self._alone_us = monotonic_us
        return claims if monotonic_us >= self._alone_us + ALONE_US else []

    def _support(self, offset_us: int, claims: list[Claim]) -> int:
        """Return the weight of all claims that agree with an offset."""
        return sum(each.weight for each in claims if self._agree(each.offset_us, offset_us))

    def _agree(self, one_us: int, other_us: int) -> bool:
        return abs(one_us - other_us) <= self._near_us

    def _mistrust(
        self, claim: Claim, wall_us: int, monotonic_us: int, fleet: Claim | None
    ) -> State:
        self._contradicted = None
        self._anchor = claim.offset_us, monotonic_us
        self.offset_us, self.off_us = claim.offset_us, wall_us - claim.offset_us
        strong = fleet is not None and fleet.weight > WITNESS_WEIGHT
        if strong and fleet is not None and self._agree(claim.offset_us, fleet.offset_us):
            self._refuted_us = wall_us
        return "ahead" if self.off_us > 0 else "behind"

    def _trust(self, wall_us: int, monotonic_us: int, *, afresh: bool) -> State:
        anchor = self._anchor
        if afresh or anchor is None or monotonic_us - anchor[1] >= ANCHOR_US:
            self._anchor = wall_us, monotonic_us
        self._contradicted = self._refuted_us = self._past_us = None
        self.offset_us, self.off_us = wall_us, 0
        return "trusted"

    def _wait(self, reading: ClockReading, wall: Claim | None) -> State:
        """Trust a wall clock that is contradicted once it has stayed as it is for long enough."""
        if self._anchor is not None:
            self.offset_us = self._anchor[0]
        if wall is None:
            self._contradicted = None
            return "waiting"
        known = self._contradicted
        if known is None or not self._agree(known.offset_us, wall.offset_us):
            self._contradicted, self._since_us = wall, reading.monotonic_us
        elif reading.monotonic_us - self._since_us >= self._wait_us:
            return self._trust(wall.offset_us, reading.monotonic_us, afresh=True)
        return "waiting"
