"""What a program changes in a lake, before it is started on it.

Windows of one stream are made from the panes that are there, whatever their size and slide. A
changed fold, event, name or pane is another stream: devices make panes of it of the readings that
they keep, and of later ones.
"""

import json
from collections.abc import Iterator
from typing import Final, NamedTuple

from cloud_tier.lake.definitions import newest_definitions
from cloud_tier.lake.tables import LakeTables
from lasp_edge.language.declarations import Window
from lasp_edge.language.described import WINDOW
from lasp_edge.language.plan import Plan


class WindowChange(NamedTuple):
    """What becomes of one window.

    Attributes:
        window: its name.
        text: a sentence.
    """

    window: str
    text: str


_PART: Final = (
    "each device makes its panes of the readings with own times that it still keeps, and of later "
    "ones; rows of windows that begin before the lake has the definition may lack older readings, "
    "also where they are final: their column `covered` is false"
)


def window_changes(plan: Plan, tables: LakeTables) -> Iterator[WindowChange]:
    """Yield what becomes of each window of a program, and of each that it has no more."""
    known = newest_definitions(tables)
    before = {name: json.loads(text) for (kind, name), (_, text) in known.items() if kind == WINDOW}
    for name, window in plan.windows.items():
        former = before.get(name)
        if not before:
            yield WindowChange(name, "the first one: it has all that devices deliver")
        elif former is not None and former["stream"] == window.stream:
            yield WindowChange(name, _shape(window, former["size_us"], former["slide_us"]))
        else:
            what = "new" if former is None else "defined otherwise than before"
            yield WindowChange(name, f"{what}: {_PART}")
    for name in sorted(before.keys() - plan.windows.keys()):
        yield WindowChange(name, "not in the program any more: its rows stay, and no new ones come")


def _shape(window: Window, size_us: int, slide_us: int) -> str:
    if (size_us, slide_us) == (window.size_us, window.slide_us):
        return "as before"
    return (
        "of another size or slide over the same panes: the job's next start makes its windows "
        "again from all panes that are there"
    )
