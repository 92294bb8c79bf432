"""How a condition stands for one key of what is watched: on a device, or at a gateway.

>>> warm, minute = Trigger.of("", above=28, below=27, for_s=60), 60_000_000
>>> state = TriggerState()
>>> [state.step(warm, Fraction(29), at_us) for at_us in (0, minute - 1, minute)]
[False, False, True]
>>> (state.fired, state.step(warm, Fraction(27), minute + 1), state.fired)
(True, True, False)
"""

from fractions import Fraction

from lasp_edge.language.triggers import Trigger


class TriggerState:
    """How a condition stands for one key.

    Attributes:
        fired: it holds, and has held for long enough; until it is armed again.
        since_us: from when on it holds without a break, by a clock that is trusted; None: it does
            not hold, or the time is not known.
    """

    __slots__ = ("fired", "since_us")

    def __init__(self, *, fired: bool = False, since_us: int | None = None) -> None:
        self.fired = fired
        self.since_us = since_us

    def step(self, trigger: Trigger, number: Fraction | None, time_us: int | None) -> bool:
        """Take the value as it is now; return whether `fired` is another one.

        Args:
            trigger: the condition that is looked at.
            number: the value; None where no sample is.
            time_us: what time it is; None while no clock is trusted, and then nothing is known to
                have held for some time.
        """
        if not trigger.holds(number, fired=self.fired):
            turned, self.fired, self.since_us = self.fired, False, None
            return turned
        if self.fired:
            return False
        if time_us is None:
            self.fired = trigger.for_us == 0
            return self.fired
        if self.since_us is None or self.since_us > time_us:  # the clock was set back
            self.since_us = time_us
        self.fired = time_us - self.since_us >= trigger.for_us
        return self.fired

    @property
    def is_pending(self) -> bool:
        """Whether time alone may let it fire."""
        return not self.fired and self.since_us is not None
