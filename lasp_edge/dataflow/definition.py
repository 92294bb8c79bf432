"""Definitions: how each variable of a dataflow is derived."""

from typing import Any, NamedTuple

from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import Resolution


class Definition(NamedTuple):
    """How a variable is derived.

    >>> print(Definition("union", ("opened", "in_service")))
    union of 'opened' and 'in_service'

    Attributes:
        operator: "map", "filter", "union", "intersection", "product", "bind_to", "fold" or
            "fold_dynamic".
        sources: the names of what it is made from.
        function: the user's function; that which gives samples, for a fold.
        fold: the fold, for a fold.
    """

    operator: str
    sources: tuple[str, ...]
    function: Any = None
    fold: Fold | None = None

    def means(self, other: "Definition") -> bool:
        """Return whether the two derive the same; functions are the same only if they are one."""
        return self[:3] == other[:3] and _fingerprint(self.fold) == _fingerprint(other.fold)

    def __str__(self) -> str:
        return f"{self.operator} of {' and '.join(map(repr, self.sources))}"


def _fingerprint(fold: Fold | None) -> str:
    return "" if fold is None else fold.fingerprint(Resolution("1"))
