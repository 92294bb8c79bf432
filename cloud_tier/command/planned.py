"""The action of `lasp-edge lake` on a new version of a program: what it changes in the lake.

Windows of one stream are made from the panes that are there, whatever their size and slide. A
changed fold, event, name or pane is another stream: devices make panes of it of the readings that
they keep, and of later ones.
"""

import argparse
import json
from collections.abc import Iterator
from typing import Final

from cloud_tier.lake.definitions import newest_definitions
from cloud_tier.lake.tables import LakeTables
from lasp_edge.errors import UsageError
from lasp_edge.language.declarations import Window
from lasp_edge.language.described import WINDOW
from lasp_edge.language.plan import Plan
from lasp_edge.tool.loading import load_plan
from lasp_edge.tool.screen import aligned


def add_plan_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what `plan` takes."""
    group = parser.add_argument_group("plan")
    group.add_argument("--program", metavar="MODULE:PROGRAM", help="its new version")


def show_plan(arguments: argparse.Namespace) -> str:
    """Return what a program changes in a lake, a line for each window."""
    plan, tables = _given(arguments)
    return "\n".join(aligned(list(window_changes(plan, tables)), left=(0, 1)))


def _given(arguments: argparse.Namespace) -> tuple[Plan, LakeTables]:
    if arguments.program is None:
        raise UsageError("lake plan: --program MODULE:PROGRAM is needed")
    tables = LakeTables(arguments.lake)
    tables.table(tables.landing)
    return load_plan(arguments.program), tables


_PART: Final = (
    "each device makes its panes of the readings with own times that it still keeps, and of later "
    "ones; rows of windows that begin before the lake has the definition may lack older readings, "
    "also where they are final: their column `covered` is false"
)


def window_changes(plan: Plan, tables: LakeTables) -> Iterator[tuple[str, str]]:
    """Yield each window, of a program or of the lake alone, and what becomes of it."""
    known = newest_definitions(tables)
    before = {name: json.loads(text) for (kind, name), (_, text) in known.items() if kind == WINDOW}
    for name, window in plan.windows.items():
        former = before.get(name)
        if not before:
            yield name, "the first one: it has all that devices deliver"
        elif former is not None and former["stream"] == window.stream:
            yield name, _shape(window, former["size_us"], former["slide_us"])
        else:
            what = "new" if former is None else "defined otherwise than before"
            yield name, f"{what}: {_PART}"
    for name in sorted(before.keys() - plan.windows.keys()):
        yield name, "not in the program any more: its rows stay, and no new ones come"


def _shape(window: Window, size_us: int, slide_us: int) -> str:
    if (size_us, slide_us) == (window.size_us, window.slide_us):
        return "as before"
    return (
        "of another size or slide over the same panes: the job's next start makes its windows "
        "again from all panes that are there"
    )
