"""What a declared bottom offers: which mutators a handler may call, which columns it can stand for.

>>> from crdts import GCounter, Pair
>>> [op.value for op in shape(Pair(GCounter(), GCounter()))]
['sum', 'sum']
"""

from inspect import signature

from crdts import GCounter, Lattice, PNCounter, Product
from crdts.mutator import is_mutator
from lasp_edge.folds.columns import Op


def shape(bottom: Lattice) -> list[Op] | None:
    """Return the columns that a declared state can stand for, None where it can for none."""
    if isinstance(bottom, GCounter | PNCounter):
        return [Op.SUM]
    if not isinstance(bottom, Product):
        return None
    shapes = [shape(part) for part in bottom.parts]
    return None if None in shapes else [op for ops in shapes for op in ops or ()]


def check_mutator(name: str, kind: type[Lattice], mutator: str, count: int) -> None:
    """Check that a variable's type has a mutator that takes `count` arguments.

    Raises:
        ValueError: it has no such mutator.
    """
    method = getattr(kind, mutator, None)
    if method is None or not is_mutator(method):
        raise ValueError(f"update: {name!r} ({kind.__name__}) has no mutator {mutator!r}")
    try:
        signature(method).bind(*[None] * (2 + count))  # the state, the writer, the arguments
    except TypeError as error:
        raise ValueError(f"update: {kind.__name__}.{mutator} of {name!r}: {error}") from None
