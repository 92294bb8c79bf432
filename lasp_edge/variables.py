"""Variables: named states, as programs and dataflows declare them, and the mutators they take."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any, Generic

from crdts import Lattice
from crdts.derived_set import NAME_BYTES
from crdts.mutator import is_mutator
from lasp_edge.generics import Value_co


@dataclass(frozen=True, slots=True, eq=False)
class Variable(Generic[Value_co]):
    """A named state: `Variable[GSet]` is a shared set, `Variable[FoldValue]` the target of a fold.

    `Program.declare` and its sisters make it.

    >>> from crdts import GSet
    >>> from lasp_edge import Program
    >>> opened: Variable[GSet] = Program("doors").declare(GSet(), "opened")
    >>> opened.name, opened.dynamic
    ('opened', False)

    Attributes:
        name: unique in its program or dataflow.
        bottom: the state it starts with; None where only a fold or an operator makes it.
        dynamic: each device keeps its own value; the fleet sees them side by side.
        measures: the name of the event whose resolution its values have, where it is given.
        keyed: each key has a state of its own; else the only key is "".
        version: of the meaning of its key function.
        bound: the name of the parameter that gives how many samples it keeps, if one does.
    """

    name: str
    bottom: Lattice | None
    dynamic: bool
    measures: str | None = None
    keyed: bool = False
    version: int = 1
    bound: str | None = None

    def __repr__(self) -> str:
        return f"the variable {self.name!r}"

    if not TYPE_CHECKING:

        def __getattr__(self, asked: str) -> Any:
            """Raise an error that says how a variable is changed; it has no mutators itself."""
            kind = type(self.bottom)
            if is_mutator(getattr(kind, asked, None)):
                raise AttributeError(
                    f"{self.name} changes by update alone: write update({self.name}, "
                    f"{kind.__name__}.{asked}, ..)"
                )
            raise AttributeError(f"'Variable' object has no attribute {asked!r}")


def named(name: Any, what: str) -> str:
    """Return a name if it is valid; `what` is the named thing, for the text of an error.

    Raises:
        ValueError: it cannot.
    """
    if (
        not isinstance(name, str)
        or not name.isprintable()
        or not 0 < len(name.encode()) <= NAME_BYTES
    ):
        raise ValueError(
            f"{what}: a printable name of 1 to {NAME_BYTES} bytes is needed, not {name!r}"
        )
    return name


def check_mutator(name: str, kind: type[Lattice], mutator: str, count: int) -> None:
    """Check that a variable's type has a mutator that takes `count` arguments.

    Raises:
        ValueError: it has no such mutator.
    """
    method = getattr(kind, mutator, None)
    if method is None or not is_mutator(method):
        raise ValueError(f"update: {name!r} ({kind.__name__}) has no mutator {mutator!r}")
    takes = 2 + count  # the state, the writer, the arguments
    if isinstance(method, FunctionType) and _takes(method, takes):
        return
    try:
        inspect.signature(method).bind(*[None] * takes)
    except TypeError as error:
        raise ValueError(f"update: {kind.__name__}.{mutator} of {name!r}: {error}") from None


def in_order(
    variable: Any, mutator: str, arguments: tuple[Any, ...], by_name: Mapping[str, Any]
) -> tuple[Any, ...]:
    """Return the arguments of a mutator after the replica, where some were given by name.

    Raises:
        ValueError: it does not take them.
    """
    kind = type(getattr(variable, "bottom", None))
    method = getattr(kind, mutator, None)
    if method is None or not is_mutator(method):
        return arguments  # `check_mutator` says so
    try:
        bound = inspect.signature(method).bind(None, None, *arguments, **by_name)
    except TypeError as error:
        raise ValueError(f"update: {kind.__name__}.{mutator}: {error}") from None
    return bound.args[2:]


def _takes(function: FunctionType, count: int) -> bool:
    """Return whether a function surely takes `count` positional arguments."""
    code, optional = function.__code__, len(function.__defaults__ or ())
    few_or_many = code.co_argcount - optional <= count <= code.co_argcount
    return few_or_many and not code.co_kwonlyargcount
