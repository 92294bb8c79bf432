"""Keys that differ from reading to reading: each would have rows, and a state, of its own.

>>> from lasp_edge import Program, folds
>>> program = Program("house")
>>> warm = program.event("warm", resolution="0.1")
>>> by = lambda event: f"{event.device} {event.time_us}"
>>> by_time = program.window("by_time", source=warm, fold=folds.mean(), size_s=60, key=by)
>>> print(restless(program.plan())[0].partition(":")[0])
key of window by_time gives each second a key of its own
"""

import io
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from typing import Any

from lasp_edge.checking.readings import FIRST_US, AnyTags, texts_of, values_of
from lasp_edge.event import Event
from lasp_edge.language.plan import Plan
from lasp_edge.units import SECOND_US

SECONDS = 5
"""Readings of a second each that are alike in all else."""


def restless(plan: Plan) -> list[str]:
    """Return a line for each key function that gives another key for each time."""
    with redirect_stdout(io.StringIO()):
        return [
            f"{what} gives each second a key of its own: its rows, and what devices and lakes keep "
            "for each key, grow with every reading; leave the time out of it, as windows are of "
            "time already"
            for what, name, event in _keyed(plan)
            if _is_restless(plan, name, event)
        ]


def _keyed(plan: Plan) -> Iterator[tuple[str, str, str]]:
    """Yield what has a key, its name, and an event whose readings the key is given."""
    for name in plan.functions.keys:
        if name in plan.windows:
            yield f"key of window {name}", name, plan.windows[name].source.name
        elif name in plan.streams:
            yield f"key of scan {name}", name, plan.streams[name].sources[0]
        else:
            for event, several in plan.collections.items():
                if any(each.name == name for each in several):
                    yield f"key of variable {name}", name, event


def _is_restless(plan: Plan, name: str, event: str) -> bool:
    known = plan.events.get(event)
    if known is None:  # of a stream: what it gives is not known here
        return False
    value: Any = texts_of(known)[0] if known.text else values_of(known, (), ())[0]
    found = set()
    for second in range(SECONDS):
        made = Event(event, value, FIRST_US + second * SECOND_US, "made-up", AnyTags())
        with suppress(Exception):  # what it raises is found where it is tried
            found.add(plan.functions.key(name, made))
    return len(found) == SECONDS
