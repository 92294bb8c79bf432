"""What must hold where a program has streams: devices say what the oracle says, under all faults.

- what a device holds for its streams is what its meter wrote: nothing lost, nothing that came back
- the rows of each result are what the oracle says of what it holds, encoded alike, and their status
  is that of the frontier
- what is final stays final: a device's frontier never goes back
- a row that was final changes only where something came late or was taken back, at its place or
  before it
- an as-of join is what its definition says: the oracle and the engine share the scan itself
- windows over streams land as the oracle's outputs, folded, as far as they count there; and rows of
  results as they are
- a row whose handler runs once final has been handled

All of it is read from the store: memory may be ahead of it, and nothing has left before it.
"""

from collections import defaultdict
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from crdts import ControlLog
from lasp_edge.language.declarations import StreamResult, Window
from lasp_edge.language.plan import Plan
from lasp_edge.language.regimes import WindowRegimes
from lasp_edge.language.streaming import graph_of, parts_of
from lasp_edge.ordered.cells import PRESENT, RETRACTED, Cell
from lasp_edge.ordered.deltas import Content
from lasp_edge.ordered.oracle import outputs_of
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.plain import encoded
from lasp_edge.ordered.results import ResultRow
from lasp_edge.protocol.status import TENTATIVE
from simulations.world.device import OUTCOMES, VirtualDevice
from simulations.world.streamed import ALARMED, BOTH, BOTH_WITHIN_S, METERED, OF_STAMPED
from simulations.world.streams_held import StreamsHeld
from simulations.world.truth import landed_partials
from simulations.world.world import World

EncodedRows = dict[tuple[str, Place], bytes]
"""(result, place) -> its value there, encoded."""


class _Known:
    """What is known of a device's streams.

    Attributes:
        items: event -> what it has held since its store is what it is.
        final: what was final when it was looked at last, and the frontier then.
    """

    def __init__(self) -> None:
        self.items: dict[str, Cell] = defaultdict(dict)
        self.final: EncodedRows = {}
        self.frontier_us: int | None = None
        self.plan: Plan | None = None
        self.goes_back = 0


class ScanChecks:
    """Looks at what streams say."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[VirtualDevice, _Known] = WeakKeyDictionary()

    def stepped(self, world: World, device: VirtualDevice) -> None:
        """Look at a running device: what was final may change for few reasons."""
        if device.disk_until:
            return  # its disk fails after some operations, and a look is one
        known, held = self._seen(device)
        if held is None:
            return
        before_us, frontier_us = known.frontier_us, held.frontier_us
        if before_us is not None and (frontier_us is None or frontier_us < before_us):
            world.trouble.append(
                f"{device.name}: its streams went back from {before_us} to {frontier_us}"
            )
        arrived_us = device.arrivals.take_oldest_us()
        floor_us = device.core.intake.progress.pruned_us
        rows = held.encoded
        is_same = known.final is rows or known.frontier_us is None
        if known.plan is device.core.agent.plan and not is_same:
            assert known.frontier_us is not None
            for at in sorted(known.final.keys() | rows.keys()):
                time_us = at[1][0]
                if not floor_us <= time_us < known.frontier_us or at[0] in OF_STAMPED:
                    continue
                if known.final.get(at) != rows.get(at) and not arrived_us <= time_us:
                    before, after = known.final.get(at), rows.get(at)
                    world.trouble.append(
                        f"{device.name}: what was final changed, and nothing came late: "
                        f"{at} from {before!r} to {after!r}"
                    )
                    break
        known.plan, known.frontier_us = device.core.agent.plan, held.frontier_us
        known.final = rows

    def _seen(self, device: VirtualDevice) -> tuple[_Known, StreamsHeld | None]:
        known = self._known.get(device)
        if known is None or known.goes_back != device.goes_back:
            known = self._known[device] = _Known()
            known.goes_back = device.goes_back
        held = device.streams_held()
        if held is not None:
            for event, cell in held.items.items():
                known.items[event] |= cell
        return known, held

    def at_the_end(self, world: World) -> None:
        """Hold what the streams of all devices say against the truth."""
        for device in world.devices.values():
            known, held = self._seen(device)
            if held is None:
                if device.meter is not None and device.meter.lines and not device.forgot:
                    world.trouble.append(f"{device.name} holds nothing of its meter")
                continue
            self._items(world, device, known)
            self._results(world, device, known, held)

    def _items(self, world: World, device: VirtualDevice, known: _Known) -> None:
        """Compare what a device has held with what its meter wrote."""
        meter, held = device.meter, known.items[METERED]
        assert meter is not None
        written, sure = meter.items(), meter.items(meter.sure_from)
        strange = held.keys() - written.keys()
        back = [each for each, state in held.items() if state > written.get(each, RETRACTED)]
        lost = [item for item, state in sure.items() if held.get(item, 0) < state]
        if not device.uncertain and (strange or back):
            world.trouble.append(f"{device.name} holds {min([*strange, *back])}, not its meter's")
        if len(lost) > device.counted(*OUTCOMES):
            world.trouble.append(
                f"{device.name}: its streams lack {len(lost)} readings, such as {min(lost)}"
            )

    def _results(
        self, world: World, device: VirtualDevice, known: _Known, held: StreamsHeld
    ) -> None:
        plan, frontier_us = device.core.agent.plan, held.frontier_us
        content = _content(plan, device.name, known.items)
        truth = outputs_of(graph_of(plan, device.name).nodes, content, frontier_us, device.name)
        floor_us = device.core.intake.progress.pruned_us
        rows = {at: row for at, row in _rows(plan, held).items() if at[1][0] >= floor_us}
        here = {at: encoded(_value(row)) for at, row in rows.items() if row.event is not None}
        there = {
            (name, place): encoded((event.value, event.key))
            for name in plan.device_results
            for place, event in truth[name].items()
            if place[0] >= floor_us
        }
        if here != there:
            at = min(at for at in here.keys() | there.keys() if here.get(at) != there.get(at))
            world.trouble.append(
                f"{device.name} says {here.get(at)!r} at {at}, and the oracle {there.get(at)!r}"
            )
        wrong = [at for at, row in rows.items() if _is_wrong(at[1], row, frontier_us)]
        if wrong:
            status = rows[wrong[0]].status
            world.trouble.append(f"{device.name}: {wrong[0]} is {status} at {frontier_us}")
        self._joined(world, device, content, truth[BOTH], frontier_us)
        if _is_clear(world, device):
            self._left(world, device, truth, rows)

    def _left(
        self,
        world: World,
        device: VirtualDevice,
        truth: dict[str, Content],
        rows: dict[tuple[str, Place], ResultRow],
    ) -> None:
        """Compare what has left a device: windows over streams, and what handlers reported."""
        plan = device.core.agent.plan
        for window in plan.windows.values():
            if window.source.name in {METERED, *plan.streams}:
                self._landed(world, device, window, truth[window.source.name])
        for result in plan.device_results.values():
            self._rows_landed(world, device, result, truth[result.name])
        alarms: Any = device.core.variables.shared()["alarms"]
        for (name, place), row in rows.items():
            is_due = name == ALARMED and row.event is not None and row.status != TENTATIVE
            if is_due and f"{row.event and row.event.key} {place[0]}" not in alarms:
                world.trouble.append(f"{device.name}: no handler was called for {place}")

    def _joined(
        self,
        world: World,
        device: VirtualDevice,
        content: dict[str, Content],
        joined: Content,
        frontier_us: int | None,
    ) -> None:
        """Compare an as-of join with its definition."""
        right = sorted((p[0], p[1:], e.value) for p, e in content["timed"].items())
        expected = []
        for place, event in sorted(content[METERED].items()):
            before = [(at_us, value) for at_us, _, value in right if at_us <= place[0]]
            is_settled = frontier_us is not None and place[0] + 1 < frontier_us
            if is_settled and before and place[0] - before[-1][0] <= BOTH_WITHIN_S * 1_000_000:
                expected.append((event.value, before[-1][1]))
        found = [event.value for place, event in joined.items() if place[0] < (frontier_us or 0)]
        if sorted(found) != sorted(expected):
            world.trouble.append(f"{device.name} joins {sorted(found)}, not {sorted(expected)}")

    def _rows_landed(
        self, world: World, device: VirtualDevice, result: StreamResult, truth: Content
    ) -> None:
        """Compare the rows of a result in each sink with what the oracle says."""
        expected = {
            place: (event.key, tuple(parts_of(result, event.value).values()))
            for place, event in truth.items()
        }
        for sink in world.sinks:
            if not sink.lander.keeps_all:
                continue
            rows = sink.lander.rows(device.core.agent.plan, result.name)
            found = {
                at: (row.key, row.parts) for (of, at), row in rows.items() if of == device.name
            }
            if found != expected:
                at = min(
                    at for at in found.keys() | expected.keys() if found.get(at) != expected.get(at)
                )
                world.trouble.append(
                    f"{device.name}: {result.name} landed {found.get(at)} at {at}, "
                    f"and it is {expected.get(at)}"
                )

    def _landed(self, world: World, device: VirtualDevice, window: Window, truth: Content) -> None:
        """Compare what has landed of a window with what it is to be."""
        fold, expected = window.fold, dict[tuple[int, str], Any]()
        functions = device.core.agent.plan.functions
        key_of = partial(functions.key, window.name)
        where = functions.windows.get((window.name, "where"))
        (piece,) = WindowRegimes(window, functions, ControlLog(), device.name).pieces
        for event in truth.values():
            if where is not None and not where(event, {}):
                continue
            at = (event.time_us // window.span_us * window.span_us, key_of(event))
            lifted = fold.lift(window.resolution.quantise(event.value), event.time_us)
            expected[at] = fold.combine(expected.get(at, fold.zero), lifted)
        expected = {at: partial for at, partial in expected.items() if any(partial)}
        for sink in world.sinks:
            landed = landed_partials(sink.lander, window, piece.stream, device.name)
            if landed != expected:
                at = min(
                    at
                    for at in landed.keys() | expected.keys()
                    if landed.get(at) != expected.get(at)
                )
                world.trouble.append(
                    f"{device.name}: {window.name} landed {landed.get(at)} at {at}, "
                    f"and it is {expected.get(at)}"
                )


def _is_clear(world: World, device: VirtualDevice) -> bool:
    """Return whether all that a device ever sent is known, and was taken."""
    short = world.scenario.retain_s < 3_600  # noqa: PLR2004
    retired = device.name in world.operator.commands.membership.entries
    lost = device.forgot or device.uncertain or device.counted(*OUTCOMES)
    return not (short or retired or lost or any(sink.former for sink in world.sinks))


def _is_wrong(place: Place, row: ResultRow, frontier_us: int | None) -> bool:
    """Return whether the status of a row is not that of the frontier."""
    is_final = frontier_us is not None and place[0] < frontier_us
    return is_final == (row.status == TENTATIVE)


def _value(row: ResultRow) -> Any:
    assert row.event is not None
    return row.event.value, row.event.key


def _rows(plan: Plan, held: StreamsHeld) -> dict[tuple[str, Place], ResultRow]:
    return {
        (name, place): row for name in plan.device_results for place, row in held.rows[name].items()
    }


def _content(plan: Plan, device: str, items: dict[str, Cell]) -> dict[str, Content]:
    """Return what is present, as the oracle takes it."""
    return {
        event: {
            item.place(event, device): item.event(event, device, plan.events[event].resolution)
            for item, state in items[event].items()
            if state == PRESENT
        }
        for event in plan.evaluated_events
    }
