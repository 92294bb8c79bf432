r"""How often a scan over the fleet steps an item whose row is to be there at once.

Devices send what they have read each ten seconds, at times of their own. So an item of one device
comes after later ones of others, and what follows from it is stepped again. The *replay ratio* is
the number of steps for each item of a scan; it is 1 where rows wait for all devices
(`--tentative-after never`).

    >>> from lasp_edge import Event, Program, scans
    >>> from lasp_edge.ordered.places import reading_place
    >>> program = Program("entrance")
    >>> door = program.event("door", resolution="1")
    >>> pairs = program.scan("pairs", source=door, scan=scans.last(2))
    >>> total = scans.running(lambda state, event: state + event.value)
    >>> total = program.scan("total", source=door, scan=total)
    >>> readings = {}
    >>> for n in range(1_000):
    ...     device, time_us = f"d{n % 20}", n * 50_000
    ...     event = Event("door", n, time_us, device, {})
    ...     readings[reading_place("door", "", n, time_us, device)] = event
    >>> found = replay_ratios(program.plan(), {"door": readings})
    >>> [f"{ratio:.1f}" for ratio in found.values()]
    ['1.7', '5.4']

Source: replay of what comes out of order, after FlameStream (`lasp_edge.ordered.places`).
"""

from collections import Counter
from collections.abc import Mapping
from random import Random

from lasp_edge.language.plan import Plan
from lasp_edge.language.streaming import FLEET, graph_of
from lasp_edge.ordered.cells import CELL_US, cell_of
from lasp_edge.ordered.deltas import Content, Delta
from lasp_edge.ordered.stages import ScanStage
from lasp_edge.units import SECOND_US

_Turns = dict[int, dict[str, Delta]]
"""When messages arrive -> what they bring, by event or by stream of each device."""


def replay_ratios(plan: Plan, readings: Mapping[str, Content]) -> dict[str, float]:
    """Return the replay ratio of each scan over the fleet, by name; 0 where nothing reaches it.

    Args:
        plan: of the program.
        readings: of events, by name; their places name the devices.
    """
    graph = graph_of(plan, FLEET)
    scans = [node for node in graph.nodes if isinstance(node.stage, ScanStage)]
    items, turns = Counter[str](), _turns(plan, readings)
    for now_us, deltas in sorted(turns.items()):
        # A device sends a cell within this time after its end.
        found = graph.update(deltas, cell_of(now_us - CELL_US))
        for name, _, sources in scans:
            changes = [each for source in sources for each in found.get(source, {}).values()]
            items[name] += sum((new is not None) - (old is not None) for old, new in changes)
    steps = {node.name: node.stage.steps for node in scans if isinstance(node.stage, ScanStage)}
    return {name: steps[name] / items[name] if items[name] else 0.0 for name in steps}


def _turns(plan: Plan, readings: Mapping[str, Content]) -> _Turns:
    """Return what arrives in each second: a device sends each cell once, some time after its end.

    The devices send all over ten seconds, in an order that is not the one of their readings.
    """
    by_device: dict[str, dict[str, Delta]] = {}
    for name, content in readings.items():
        for place, event in content.items():
            by_device.setdefault(place[1], {}).setdefault(name, {})[place] = (None, event)
    turns: _Turns = {}
    devices = sorted(by_device)
    Random(0).shuffle(devices)
    for number, device in enumerate(devices):
        after_us = CELL_US + number * CELL_US // len(by_device)
        for name, delta in _sent(plan, device, by_device[device]).items():
            for place, change in delta.items():
                at_us = (cell_of(place[0]) + after_us) // SECOND_US * SECOND_US
                turns.setdefault(at_us, {}).setdefault(name, {})[place] = change
    return turns


def _sent(plan: Plan, device: str, deltas: dict[str, Delta]) -> dict[str, Delta]:
    """Return what a device sends of its readings: outputs of its streams in place of some."""
    last_us = max(place[0] for delta in deltas.values() for place in delta)
    made = graph_of(plan, device).update(deltas, last_us)
    found = {}
    for name, sent in plan.item_streams.items():
        given = made if sent.outputs else deltas
        found[name] = {
            (place[0], device, *place[2:]): change for place, change in given.get(name, {}).items()
        }
    return found
