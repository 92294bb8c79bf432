"""What a declared bottom offers: which mutators a handler may call, which columns it can stand for.

>>> from crdts import GCounter, Pair
>>> [op.value for op in shape(Pair(GCounter(), GCounter()))]
['sum', 'sum']
"""

from inspect import Signature, isfunction, signature

from crdts import GCounter, Lattice, PNCounter, Product
from lasp_edge.folds.fold import Op

_NOT_FOR_HANDLERS = frozenset({"adopt", "add_many"})


def shape(bottom: Lattice) -> list[Op] | None:
    """Return the columns that a declared state can stand for, None where it can for none."""
    if isinstance(bottom, GCounter | PNCounter):
        return [Op.SUM]
    if not isinstance(bottom, Product):
        return None
    shapes = [shape(part) for part in bottom.parts]
    return None if None in shapes else [op for ops in shapes for op in ops or ()]


def check_mutator(name: str, kind: type[Lattice], mutator: str, count: int) -> None:
    """Check that a variable's type has a mutator for handlers that takes so many arguments.

    Raises:
        ValueError: it has none.
    """
    method = getattr(kind, mutator, None)
    takes = signature(method) if isfunction(method) else Signature()
    internal = mutator.startswith("_") or mutator in _NOT_FOR_HANDLERS
    # A mutator that has no use for the writer, such as `ORSet.remove`, still takes one.
    writer = list(takes.parameters)[1:2]
    if internal or writer not in (["replica"], ["_replica"]):
        raise ValueError(f"update: {name!r} ({kind.__name__}) has no mutator {mutator!r}")
    try:
        takes.bind(*[None] * (2 + count))
    except TypeError as error:
        raise ValueError(f"update: {kind.__name__}.{mutator} of {name!r}: {error}") from None
