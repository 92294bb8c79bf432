"""A device's wall clock: what it tells, and what is wrong with it.

>>> clock = Clock()
>>> clock.jump(-3_600)
>>> clock.read(10_000_000_000) == 10_000_000_000 - 3_600_000_000
True
>>> clock.heal(); clock.read(10_000_000_000)
10000000000
"""

from lasp_edge.units import SECOND_US

DRIFT_PARTS = 10_000
"""A drift is given in ten-thousandths: 500 is 5 %."""


class Clock:
    """A wall clock on virtual time.

    Attributes:
        boots, booted_us: how often its machine was started again, and when it was last.
        wrong: something is wrong with it.
        was_wrong: something was, and was set right.
    """

    def __init__(self) -> None:
        self._offset_us = 0
        self._drift = 0
        self._since_us = self.boots = self.booted_us = 0
        self._frozen_us: int | None = None
        self.wrong = self.was_wrong = False

    def read(self, true_us: int) -> int:
        """Return what the clock says."""
        if self._frozen_us is not None:
            return self._frozen_us
        gained_us = (true_us - self._since_us) * self._drift // DRIFT_PARTS if self._drift else 0
        return true_us + self._offset_us + gained_us

    def reboot(self, true_us: int) -> None:
        """Note that its machine starts again: how much time has passed since is another count."""
        self.boots, self.booted_us = self.boots + 1, true_us

    def jump(self, seconds: int) -> None:
        """Set it wrong by so much more."""
        self._offset_us += seconds * SECOND_US
        self.wrong = True

    def start_in_1970(self, true_us: int) -> None:
        """Let it begin with the epoch: it has no battery."""
        self.heal()
        self._offset_us = -true_us
        self.wrong = True

    def drift(self, parts: int, true_us: int) -> None:
        """Let it run too fast, or too slow, from now on."""
        self._drift, self._since_us = parts, true_us
        self.wrong = True

    def freeze(self, true_us: int) -> None:
        """Let it stand still."""
        self._frozen_us = self.read(true_us)
        self.wrong = True

    def heal(self) -> None:
        """Set it right."""
        self._offset_us = self._drift = 0
        self._frozen_us = None
        self.wrong, self.was_wrong = False, self.was_wrong or self.wrong
