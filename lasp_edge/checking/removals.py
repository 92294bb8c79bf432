"""Sets of which nothing is ever taken out: what handlers remove was never added.

>>> from crdts import ORSet
>>> from lasp_edge import Program
>>> from lasp_edge.checking.trial import tried
>>> program = Program("doors")
>>> door = program.event("door", resolution="1", least=0, most=1)
>>> open_now = program.declare(ORSet(), "open_now")
>>> @program.on_event(door)
... def turned(event, update):
...     if event.value:
...         update(open_now, ORSet.add, event.tags["room"])
...     else:
...         update(open_now, ORSet.remove, event.device)
>>> print(tried(program.plan()).doubts[0].partition(", ")[0])
variable open_now: nothing that is removed was ever added
"""

from collections.abc import Iterable
from typing import Any

from lasp_edge.checking.readings import devices_of
from lasp_edge.language.plan import Plan
from lasp_edge.language.updates import Mutation
from lasp_edge.language.writes import variables_named

_CHANGES = ("add", "remove")


class SetChanges:
    """The elements that handlers add to sets, and those that they remove, as far as all are texts.

    One with a number in it may be that of another reading, which was not made up; so may be one of
    a reading that is a text.
    """

    def __init__(self, plan: Plan) -> None:
        self._devices = devices_of(plan)
        self._apart = {
            variable.name
            for event, handlers in plan.functions.handlers.items()
            if plan.events[event].text
            for handler in handlers
            for variable in variables_named(handler)
        }
        self._elements: dict[str, dict[str, dict[Any, None]]] = {}

    def note(self, change: Mutation) -> None:
        """Note a change of a variable."""
        if change.mutator not in _CHANGES or len(change.arguments) != 1:
            return
        (element,) = change.arguments
        if not _is_of_texts(element):
            self._apart.add(change.variable)
            return
        several = self._elements.setdefault(change.variable, {each: {} for each in _CHANGES})
        several[change.mutator][element] = None

    def lines(self) -> list[str]:
        """Return a line for each set from which nothing was removed that was added."""
        return [
            f"variable {name}: nothing that is removed was ever added, for made-up readings: "
            f"{self._shown(added)} is added, and {self._shown(removed)} removed; remove what was "
            "added"
            for name, (added, removed) in [(n, e.values()) for n, e in self._elements.items()]
            if name not in self._apart
            if added and removed and not added.keys() & removed.keys()
        ]

    def _shown(self, elements: Iterable[Any]) -> str:
        first = next(iter(elements))
        return "the name of a device" if first in self._devices else repr(first)


def _is_of_texts(element: Any) -> bool:
    if isinstance(element, tuple):
        return all(map(_is_of_texts, element))
    return isinstance(element, str)
