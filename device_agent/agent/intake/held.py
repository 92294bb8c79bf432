"""Batches of readings that wait for a commit, in memory."""

from collections.abc import Callable
from typing import NamedTuple

from device_agent.agent.allowance import Allowance
from device_agent.agent.intake.batch import Batch
from lasp_edge.timers import is_time
from lasp_edge.units import SECOND_US

MOST_READINGS = 500
"""Held readings from which on they are due: a commit then costs little beside them, and memory
holds some 0.3 MB of them."""
BURST, RESERVE = 8, 3
"""Commits that may follow each other: some 100 kB. Three of them are for the readings before a
pause."""
LEAST_US = SECOND_US
"""Microseconds between two commits of readings, at least, where they are held at all."""
REST_US = 5 * SECOND_US
"""Microseconds without a reading after which the last one counts as the last for a while."""


class HeldBatch(NamedTuple):
    """A batch that waits.

    Attributes:
        at_us: when it was read.
        acknowledge: acknowledges the batch to its source once it is durable; None: to nobody.
    """

    batch: Batch
    at_us: int
    acknowledge: Callable[[], None] | None = None


class HeldBatches:
    """The batches that wait for a commit, in the order in which they were read.

    Each commit writes some pages of the store, however little changed, and flash wears by pages. So
    readings that come one at a time are held, and taken in together. Nothing of them leaves the
    device, and no source takes them for durable, before they are: a crash loses what was held,
    which a source that can be read again gives again.

    The first readings after a pause are due at once, and so are the last ones before it; see
    `device_agent.agent.allowance`.

        >>> held = HeldBatches(every_us=60 * SECOND_US)
        >>> one = HeldBatch(Batch("door", ["open"], [None], [1], [{}]), 100)
        >>> held.add(one), held.is_due(100), held.take(100) == [one], held.is_due(100)
        (False, True, True, False)

    Args:
        every_us: time in which there is one commit of readings, in the long run; 0: every batch is
            due at once.
    """

    def __init__(self, every_us: int) -> None:
        self._always = not every_us
        self._allowance = Allowance(max(1, every_us), LEAST_US, burst=BURST, reserve=RESERVE)
        self._batches: list[HeldBatch] = []
        self._readings = 0
        self._source_waits = self._always

    def __bool__(self) -> bool:
        return bool(self._batches)

    @property
    def since_us(self) -> int | None:
        """When the first of them was read; None where nothing is held."""
        return self._batches[0].at_us if self._batches else None

    def add(self, held: HeldBatch, *, is_pressing: bool = False) -> bool:
        """Hold a batch; return whether what is held must not wait for the next tick.

        It must not where one `is_pressing`: its source waits for its acknowledgement.
        """
        self._batches.append(held)
        self._readings += len(held.batch.names)
        self._source_waits |= is_pressing or held.batch.done
        return self._source_waits or self._readings >= MOST_READINGS

    def is_due(self, now_us: int) -> bool:
        """Return whether something is held that the next tick is to commit."""
        if not self._batches:
            return False
        if self._source_waits or self._readings >= MOST_READINGS:
            return True
        return self._allowance.is_due(now_us, at_rest=self._is_at_rest(now_us))

    def take(self, now_us: int) -> list[HeldBatch]:
        """Return all of them; they are committed now."""
        if self._batches and not self._always:
            self._allowance.spend(now_us, at_rest=self._is_at_rest(now_us))
        taken, self._batches = self._batches, []
        self._readings, self._source_waits = 0, self._always
        return taken

    def _is_at_rest(self, now_us: int) -> bool:
        batches = self._batches
        return bool(batches) and is_time(now_us, batches[-1].at_us + REST_US, REST_US)
