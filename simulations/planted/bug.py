"""A planted bug: a change of the code under which a history goes wrong, and the table of all."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
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


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Let an attribute of a class or module be another one for a while."""
    known = vars(owner)[name]  # of the class itself, so that it can be put back as it was
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, known)
