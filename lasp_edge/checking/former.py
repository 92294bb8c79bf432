"""The program that ran before: of a file, or as an agent, a gateway or a lake notes it.

Each tier reads its own, by the entry points `lasp_edge.ran`: who has no lake need not have Arrow.
"""

from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

from lasp_edge.errors import NotFound, UsageError
from lasp_edge.language.summary import RanProgram

GROUP: Final = "lasp_edge.ran"
"""The entry points of the readers, each named by the kind of its place."""
LAKE: Final = "lake"
_MARKS: Final = {"agent": "agent.sqlite", "gateway": "gateway.sqlite", LAKE: "programs/_delta_log"}
"""By the kind of a place what is in its directory."""


def is_place(text: str) -> bool:
    """Return whether a text names a directory, and not a program.

    Raises:
        NotFound: it could only name a directory, and no such directory exists.
    """
    path = Path(text)
    if path.is_dir():
        return True
    if "/" in text and ".py" not in text:
        raise NotFound(f"--against {text}: there is no such directory")
    return False


def program_in(directory: str) -> RanProgram:
    """Return the program that a directory's data are of.

    Raises:
        NotFound: the directory holds no such data, or they cannot be read.
        UsageError: the directory holds data of several kinds.
    """
    kinds = [kind for kind, mark in _MARKS.items() if (Path(directory) / mark).exists()]
    if not kinds:
        needed = ", ".join(f"{mark} of {kind}" for kind, mark in _MARKS.items())
        raise NotFound(
            f"--against {directory}: it holds no data of an agent, a gateway or a lake ({needed}: "
            "none is there)"
        )
    if len(kinds) > 1:
        raise UsageError(
            f"--against {directory}: it holds data of {' and '.join(kinds)}; give each a directory "
            "of its own"
        )
    return _reader(kinds[0])(directory)


def program_in_lake(root: str) -> RanProgram:
    """Return the program that a lake's data are of; it may be in an object store.

    Raises:
        NotFound: there is no such lake, or it cannot be read.
    """
    return _reader(LAKE)(root)


def _reader(kind: str) -> Callable[[str], RanProgram]:
    for point in entry_points(group=GROUP, name=kind):
        try:
            found: Callable[[str], RanProgram] = point.load()
        except ModuleNotFoundError as error:
            extra = f" Install lasp-edge[{kind}]." if kind == LAKE else ""
            raise UsageError(f"--against: a {kind} needs {error.name!r}.{extra}") from None
        return found
    raise UsageError(f"--against: this installation reads no {kind}; install lasp-edge again")
