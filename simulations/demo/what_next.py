"""What a newcomer types next: commands that work as they stand, in the folder where they are."""

import shlex
from pathlib import Path

from lasp_edge.tool.typed import typed_in

EXAMPLE = "lasp_edge.examples.greenhouse:program"


def next_lines(window: str, lake: Path | None, *, is_spark: bool = True) -> list[str]:
    """Return what to type next.

    Args:
        window: a window of the program; empty where it has none.
        lake: where the tables stay; None where they go with the demo.
        is_spark: they are a lake; else a gateway's.
    """
    typed = typed_in(Path())
    lines = [f"  {typed} new {_free('house')}", f"  {typed} simulate {EXAMPLE}"]
    if lake is None:
        option = "" if is_spark else "--no-cloud "
        lines.append(f"  {typed} demo {option}--lake {_free('tables')}")
    elif window:
        where = "--lake" if is_spark else "--gateway"
        lines.append(f"  {typed} windows {window} {where} {shlex.quote(str(lake))}")
    return ["What to type next, in this folder (README.md goes on from there):", *lines]


def _free(name: str) -> str:
    """Return a folder's name that is not taken here."""
    names = [name, *(f"{name}-{number}" for number in range(2, 100))]
    return next((each for each in names if not Path(each).exists()), name)
