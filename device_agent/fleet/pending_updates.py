"""What a program's handlers and collections add to variables, until it is joined."""

from collections.abc import Sequence

from crdts import Lattice


class PendingUpdates:
    """Samples of dynamic variables, by column, and deltas of the other variables; all are valid.

    Attributes:
        samples: (variable, key) -> quantised values and their times.
        deltas: variable -> delta that is joined already.
    """

    __slots__ = ("deltas", "samples")

    def __init__(self) -> None:
        self.samples: dict[tuple[str, str], tuple[list[int], list[int]]] = {}
        self.deltas: dict[str, Lattice] = {}

    def extend(self, name: str, key: str, values: Sequence[int], times_us: Sequence[int]) -> None:
        """Add whole columns of quantised samples, in the order of their acceptance.

        Where `Variables.is_careful(name)`, `Variables.check` did not refuse any of them.
        """
        known = self.samples.get((name, key))
        if known is None:
            known = self.samples[name, key] = ([], [])
        known[0].extend(values)
        known[1].extend(times_us)
