"""A replay: the rows that a scan over the fleet gives of stored items, from nothing.

    >>> from lasp_edge import Program, scans
    >>> from lasp_edge.ordered.cells import PRESENT, Item
    >>> program = Program("house")
    >>> door = program.event("door", resolution="1")
    >>> _ = program.result(program.scan("used", source=door, scan=scans.differences()))
    >>> cell = {Item(1, 4, ""): PRESENT, Item(3, 9, ""): PRESENT}
    >>> rows = replayed(program.plan(), "used", {CellId("door", "pi-1", 0): cell}, until_us=10)
    >>> [(place[0], event.value) for place, event in rows.items()]
    [(3, 5.0)]

Law: the rows do not depend on the order of the cells, nor on how their items came.
"""

from collections.abc import Mapping

from lasp_edge.language.plan import Plan
from lasp_edge.language.streaming import FLEET, graph_of, stream_plan
from lasp_edge.ordered.cells import CellId
from lasp_edge.ordered.deltas import Content, Delta
from lasp_edge.ordered.inputs import InputCell, inserted_cells


def replayed(plan: Plan, name: str, cells: Mapping[CellId, InputCell], until_us: int) -> Content:
    """Return what a stream over the fleet gives before a time, by place.

    Args:
        plan: the program.
        name: the stream's.
        cells: what all devices have sent.
        until_us: items from then on are left out, and no timer rings then.
    """
    inserted = inserted_cells(stream_plan(plan, FLEET).events, cells)
    changes: dict[str, Delta] = {
        event: {place: change for place, change in delta.items() if place[0] < until_us}
        for event, delta in inserted.items()
    }
    found = graph_of(plan, FLEET).update(changes, until_us).get(name, {})
    return {
        place: new
        for place, (_, new) in sorted(found.items())
        if new is not None and place[0] < until_us
    }
