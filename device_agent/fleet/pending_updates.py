"""What a program's handlers and collections ask for, until its batch is joined."""

from collections.abc import Sequence

from crdts import Lattice


class PendingUpdates:
    """The checked updates of one batch: samples by column, and joined deltas.

    Attributes:
        samples: (variable, key) -> quantised values and their times.
        deltas: variable -> delta; handlers already see it, the store does not have it yet.
    """

    __slots__ = ("deltas", "samples")

    def __init__(self) -> None:
        self.samples: dict[tuple[str, str], tuple[list[int], list[int]]] = {}
        self.deltas: dict[str, Lattice] = {}

    def extend(self, name: str, key: str, values: Sequence[int], times_us: Sequence[int]) -> None:
        """Add quantised samples in the order of their acceptance, each one checked before."""
        known = self.samples.get((name, key))
        if known is None:
            known = self.samples[name, key] = ([], [])
        known[0].extend(values)
        known[1].extend(times_us)

    def add(self, name: str, delta: Lattice) -> None:
        """Add a delta of a variable."""
        if name in self.deltas:
            self.deltas[name] |= delta
        else:
            self.deltas[name] = delta
