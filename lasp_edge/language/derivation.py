"""How a program states which sets follow from which, and what its handlers wait for."""

from typing import Any, NamedTuple


class Derivation(NamedTuple):
    """How a derived set is made.

    Attributes:
        operator: "map", "filter", "union", "intersection", "product" or "bind_to".
        sources: the names of what it is made from.
        version: of the meaning of its function.
    """

    operator: str
    sources: tuple[str, ...]
    version: int = 1

    def __str__(self) -> str:
        return f"{self.operator} of {' and '.join(map(repr, self.sources))}"


class Awaited(NamedTuple):
    """What a handler waits for: a variable, and the threshold that it has to reach."""

    variable: str
    threshold: Any
