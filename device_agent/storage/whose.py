"""Whose data a directory holds: an agent's or a gateway's, and which command reads it."""

from pathlib import Path
from typing import Final

from lasp_edge.errors import NotFound

_WHOSE: Final = {"agent.sqlite": "agent", "gateway.sqlite": "gateway"}
_TYPED: Final = {
    "agent.sqlite": "--data-dir {0} --program MODULE:PROGRAM in place of --gateway",
    "gateway.sqlite": "lasp-edge windows, or lasp-edge results, with NAME --gateway {0}",
}
"""File -> what to type for what is in it."""


def need_data(directory: Path, file: str) -> None:
    """Check that a directory has a file of an agent, or of a gateway.

    Raises:
        NotFound: it has none; where it has the other's, that is named with what to type.
    """
    if (directory / file).is_file():
        return
    for other, whose in _WHOSE.items():
        if (directory / other).is_file():
            raise NotFound(
                f"{directory} is the directory of a{'n' * (whose == 'agent')} {whose}, and no "
                f"{_WHOSE[file]}'s; type {_TYPED[other].format(directory)}"
            )
    raise NotFound(f"{directory} holds no {_WHOSE[file]}'s data ({file} is not there)")
