"""What a program changes in a lake, before it is started on it.

Windows of one stream are made from the panes that are there, whatever their size and slide. A
changed fold, event, name or pane is another stream: devices have panes of it from their next start
on, so the first rows hold a part of their readings, also where they are final. Their column
`covered` is false: they begin before the lake had the definition.
"""

import json
from collections.abc import Iterator
from typing import NamedTuple

from cloud_tier.lake.backfill import backfills, candidates
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
        is_part: whether its first rows hold a part of their readings.
    """

    window: str
    text: str
    is_part: bool = False


def window_changes(plan: Plan, tables: LakeTables) -> Iterator[WindowChange]:
    """Yield what becomes of each window of a program, and of each that it has no more."""
    known = newest_definitions(tables)
    before = {name: json.loads(text) for (kind, name), (_, text) in known.items() if kind == WINDOW}
    filled = {(each.window, each.stream): each.former for each in backfills(plan, tables)}
    for name, window in plan.windows.items():
        former = before.get(name)
        if not before:
            yield WindowChange(name, "the first one: it has all that devices deliver")
        elif former is not None and former["stream"] == window.stream:
            yield WindowChange(name, _shape(window, former["size_us"], former["slide_us"]))
        elif (name, window.stream) in filled:
            text = f"new, and panes of {filled[name, window.stream]!r} count for it"
            yield WindowChange(name, text)
        else:
            what = "new" if former is None else "defined otherwise than before"
            others = list(candidates(plan, window, known))
            yield WindowChange(name, f"{what}: {_part(name, others)}", is_part=True)
    for name in sorted(before.keys() - plan.windows.keys()):
        yield WindowChange(name, "not in the program any more: its rows stay, and no new ones come")


def _shape(window: Window, size_us: int, slide_us: int) -> str:
    if (size_us, slide_us) == (window.size_us, window.slide_us):
        return "as before"
    return (
        "of another size or slide over the same panes: the job makes its windows again for the "
        "last --retain-days"
    )


def _part(name: str, others: list[str]) -> str:
    text = (
        "it has readings from the time at which each device starts with this program, and rows of "
        "windows that begin before that hold a part of them, also where they are final (`covered` "
        "is false)"
    )
    if not others:
        return f"{text}; no window of the lake has panes that could count for it"
    return (
        f"{text}; if {' or '.join(map(repr, others))} has the same event, key and functions, "
        f"`lasp-edge lake backfill {name} --from {others[0]}` lets its panes count for it"
    )
