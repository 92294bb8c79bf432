"""A planted bug: a change of the code under which a history goes wrong, and the table of all.

Code changes, and what a bug replaces may no longer be on any path: then it changes nothing, and a
simulator that does not find it is not to blame. So it is counted how often what is replaced is
used; a constant must be read by a function, for what was read at the import is not replaced.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from inspect import isfunction, signature
from types import CodeType, ModuleType
from typing import Any, NamedTuple


class PlantedBug(NamedTuple):
    """A mistake that somebody could make.

    Attributes:
        name: of the function that plants it.
        history: what goes wrong in the world.
        plant: makes the mistake while its context lasts.
        needs: what a scenario must have for it to matter, by the name of the field; "": nothing.
    """

    name: str
    history: str
    plant: Callable[[], AbstractContextManager[None]]
    needs: str = ""


BUGS: dict[str, PlantedBug] = {}
"""All planted bugs by name, in the order of their definition."""

Planting = Callable[[], Iterator[None]]


def planted(plant: Planting, needs: str = "") -> Planting:
    """Put a bug into the table; the function's text is the history that it stands for."""
    history = " ".join((plant.__doc__ or "").split())
    assert history, "a planted bug says which history it stands for"
    BUGS[plant.__name__] = PlantedBug(plant.__name__, history, contextmanager(plant), needs)
    return plant


def omitted(name: str, history: str, owner: type, method: str, says: Any, needs: str = "") -> None:
    """Put a bug into the table under which a method does nothing but say the same."""

    def silent(*_arguments: Any, **_named: Any) -> Any:
        return says

    value = property(silent) if isinstance(vars(owner)[method], property) else silent
    BUGS[name] = PlantedBug(name, history, lambda: replaced(owner, method, value), needs)


USES: Counter[str] = Counter()
"""What was replaced -> how often the replacement was used, since `USES.clear()`."""


def unused() -> list[str]:
    """Return what was replaced, and never used meanwhile."""
    return sorted(name for name, times in USES.items() if not times)


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Let an attribute of a class or module be another one for a while, and count its uses.

    Raises:
        KeyError: the owner itself has no such attribute.
        ValueError: it is a constant, and no function of its module reads it.
        TypeError: it is a function, and the other one does not take the same arguments.
    """
    known = vars(owner)[name]  # of the class itself, so that it can be put back as it was
    if not callable(known) and not isinstance(known, property) and not _is_read(owner, name):
        raise ValueError(f"no function of {owner.__name__} reads {name}")
    if isfunction(known):
        _take_the_same(known, value)
    within = "" if isinstance(owner, ModuleType) else f"{owner.__module__}."
    setattr(owner, name, _counted(f"{within}{owner.__name__}.{name}", value))
    try:
        yield
    finally:
        setattr(owner, name, known)


def _take_the_same(known: Any, value: Any) -> None:
    parameters = signature(known).parameters.values()
    by_name = {each.name: None for each in parameters if each.kind is each.KEYWORD_ONLY}
    count = sum(each.kind is each.POSITIONAL_OR_KEYWORD for each in parameters)
    signature(value).bind(*[None] * count, **by_name)


def _counted(where: str, value: Any) -> Any:
    """Return the same value, of which it is counted how often it is called."""
    if isinstance(value, property):
        return property(_counted(where, value.fget))
    if not callable(value):
        USES[where] += 1
        return value
    USES[where] += 0

    @wraps(value)
    def counted(*arguments: Any, **named: Any) -> Any:
        USES[where] += 1
        return value(*arguments, **named)

    return counted


def _is_read(module: ModuleType, name: str) -> bool:
    """Return whether a function of a module reads a name of it each time that it runs."""
    codes = [compile(inspect.getsource(module), module.__name__, "exec")]
    for code in codes:
        codes += [each for each in code.co_consts if isinstance(each, CodeType)]
    return any(code.co_flags & inspect.CO_OPTIMIZED and name in code.co_names for code in codes)
