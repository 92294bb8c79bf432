"""What must hold of what gateways show people: what is retained is what stands.

- the topic of a window and key shows the newest row that is final, and in it the newest later one
  that is not; it is empty where no row is left
- the gateway's own topic shows how far windows are final
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.protocol.window_rows import FleetRow
from lasp_edge.tool.times import shown_time
from simulations.world.gateway import VirtualGateway
from simulations.world.world import World


def wrong_results(world: World, gateway: VirtualGateway) -> Iterator[str]:
    """Yield what a gateway at rest shows, and does not have."""
    if not gateway.shows_results or world.seen["twin"]:
        return
    shown = world.broker.retained
    own = json.loads(shown.get(world.topics.gateway(gateway.sink), b"{}"))
    frontier_us = gateway.lander.coverage.frontier
    final_up_to = None if frontier_us is None else _moment(frontier_us)
    if own.get("final_up_to", "nothing") != final_up_to:
        yield f"{gateway.name} shows {own}, and is final up to {final_up_to}"
    rows = defaultdict[tuple[str, str], list[FleetRow]](list)
    for at, revisions in gateway.lander.revisions.items():
        if at.window in gateway.running.windows:
            rows[at.window, at.key].append(revisions[-1])
    for (name, key), current in rows.items():
        window = gateway.running.windows[name]
        topic = world.topics.result(name, gateway.sink, key if window.keyed else None)
        expected = _expected(current)
        found = _found(json.loads(shown.get(topic) or b"{}"))
        if found != expected:
            yield f"{gateway.name} shows {found} of {name} {key!r}, and has {expected}"


def _expected(rows: Sequence[FleetRow]) -> tuple[Any, ...]:
    """Return start and revision of what is shown of a key's current rows; () for nothing."""
    left = [row for row in rows if row.devices_in]
    final = [row for row in left if row.status != TENTATIVE]
    newest = max(final or left, key=_start_of, default=None)
    if newest is None:
        return ()
    later = [row for row in left if row.status == TENTATIVE and _start_of(row) > _start_of(newest)]
    tentative = max(later, key=_start_of) if final and later else None
    return (_mark(newest), None if tentative is None else _mark(tentative))


def _start_of(row: FleetRow) -> int:
    return row.at.start_us


def _mark(row: FleetRow) -> tuple[str, str, int]:
    return _moment(row.at.start_us), row.status, row.revision


def _found(shown: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the same of what a topic shows."""
    if not shown:
        return ()
    tentative = shown.get("tentative")
    return _shown_mark(shown), None if tentative is None else _shown_mark(tentative)


def _shown_mark(shown: Mapping[str, Any]) -> tuple[str, str, int]:
    return shown["start"], shown["status"], shown["revision"]


def _moment(time_us: int) -> str:
    return shown_time(time_us).replace(" ", "T") + "Z"
