"""Streams in one order over the fleet: what runs where, what leaves, and what is refused."""

import pytest

from lasp_edge import Event, Program, folds, scans
from lasp_edge.language.streaming import FLEET, Leaving, graph_of
from lasp_edge.ordered.cells import Item
from lasp_edge.ordered.graph import StreamGraph


def water(name="water", least=50, version=1):
    """Return a program with streams of both sides over one event, and one of another event."""
    program = Program(name)
    litres, line = program.event("litres"), program.event("line", text=True)
    own = program.scan("own", source=litres, scan=scans.differences(), per_device=True)
    much = program.filter(litres, lambda event: event.value > least, "much", version=version)
    program.scan("all", source=much, scan=scans.changes())
    words = program.flat_map(line, lambda event: event.value.split(), "words")
    program.scan("last", source=words, scan=scans.last(2))
    program.result(own)
    return program


def test_each_side_runs_what_it_needs():
    plan = water().plan()
    assert list(plan.device_streams) == ["own"]
    assert list(plan.fleet_streams) == ["much", "all", "words", "last"]
    assert [each.name for each in graph_of(plan, "pi-1").nodes] == ["own"]
    assert [each.name for each in graph_of(plan, FLEET).nodes] == ["much", "all", "words", "last"]
    assert plan.evaluated_events == {"litres"}
    assert list(plan.item_streams) == ["line", "litres"]


def test_a_result_belongs_to_the_side_of_its_stream():
    program = water()
    program.result("all")
    plan = program.plan()
    assert (list(plan.device_results), list(plan.fleet_results)) == (["own"], ["all"])
    sent = {each.stream for each in plan.sent_streams}
    assert plan.stream_results["own"].stream in sent
    assert plan.stream_results["all"].stream not in sent
    assert {each.stream for each in plan.item_streams.values()} <= sent
    assert not {each.stream for each in plan.item_streams.values()} & {
        each.stream for each in plan.pane_streams
    }


def test_a_filter_decides_on_the_device_what_leaves():
    leaving = Leaving(water().plan(), "litres")
    items = [Item(1, value, "") for value in (50, 51)]
    assert leaving.leaving(items, "pi-1") == {items[1]}


def test_a_function_that_raises_makes_nothing_so_nothing_leaves():
    program = Program("water")
    litres = program.event("litres")
    wet = program.filter(litres, lambda event: event.tags["room"] == "bath", "wet")
    program.scan("all", source=wet, scan=scans.changes())
    leaving = Leaving(program.plan(), "litres")
    items = [Item(1, 5, tags) for tags in ("", '{"room":"bath"}')]
    assert leaving.leaving(items, "pi-1") == {items[1]}


def test_all_readings_leave_that_a_scan_takes_unfiltered():
    program = water()
    program.scan("every", source="litres", scan=scans.differences())
    leaving = Leaving(program.plan(), "litres")
    assert leaving.leaving([Item(1, 1, "")], "pi-1") == {Item(1, 1, "")}


def test_readings_that_come_together_are_looked_at_together(monkeypatch):
    updates, update = [], StreamGraph.update
    monkeypatch.setattr(StreamGraph, "update", lambda *at: updates.append(1) or update(*at))
    items = [Item(n, n, "") for n in range(100)]
    assert Leaving(water().plan(), "litres").leaving(items, "pi-1") == set(items[51:])
    assert len(updates) == 1


def test_another_filter_makes_another_stream_of_items_and_another_scan_does_not():
    def stream(program):
        return program.plan().item_streams["litres"].stream

    assert stream(water()) == stream(water())
    assert stream(water()) != stream(water(version=2))
    more = water()
    more.scan("more", source="much", scan=scans.differences())
    assert stream(more) == stream(water())
    every = water()
    every.scan("every", source="litres", scan=scans.differences())
    unfiltered = Program("water")
    unfiltered.scan("x", source=unfiltered.event("litres"), scan=scans.changes())
    assert stream(every) == stream(unfiltered) != stream(water())


def test_the_two_sides_of_one_scan_do_not_mean_the_same():
    found = set()
    for side in ({"per_device": True}, {}):
        program = Program("water")
        used = program.scan("used", source=program.event("x"), scan=scans.changes(), **side)
        found.add(program.result(used) and program.plan().stream_results["used"].stream)
    assert len(found) == 2


def test_a_map_of_a_fleet_stream_is_the_fleets():
    program = water()
    half = program.map("all", lambda event: event.value / 2, "half", resolution="0.5")
    program.result(half)
    plan = program.plan()
    assert plan.streams["half"].fleet
    assert list(plan.fleet_results) == ["half"]
    assert "half" not in plan.device_streams


def test_outputs_of_each_device_leave_for_a_scan_over_the_fleet():
    program = water()
    high = program.filter("own", lambda event: event.value > 3, "high")
    program.scan("mixed", source=[high, "line"], scan=scans.last(2))
    plan = program.plan()
    assert list(plan.device_streams) == ["own", "high"]
    assert list(plan.fleet_streams) == ["much", "all", "words", "last", "mixed: sources", "mixed"]
    assert {name: each.outputs for name, each in plan.item_streams.items()} == {
        "high": (("line", True), ("litres", False)),  # each event, and whether it is a text
        "line": (),
        "litres": (),
    }
    assert plan.evaluated_events == {"litres"}
    wider = water()
    high = wider.filter("own", lambda event: event.value > 2, "high", version=2)
    wider.scan("mixed", source=high, scan=scans.last(2))
    assert wider.plan().item_streams["high"].stream != plan.item_streams["high"].stream


def test_a_union_of_both_sides_is_the_fleets():
    program = water()
    program.result(program.union("all", "own", "both"), parts={"value": "1"})
    plan = program.plan()
    assert list(plan.fleet_results) == ["both"]
    assert plan.item_streams["own"].outputs


REFUSED = {
    "per device of the fleet's": (
        lambda p: p.scan("s", source="all", scan=scans.changes(), per_device=True),
        "scan 's': 'all' is in one order over the whole fleet, which no single device has",
    ),
    "window": (
        lambda p: p.window("w", source="all", fold=folds.count(), size_s=60),
        "window 'w': 'all' is in one order over the whole fleet, and a window is made on devices",
    ),
    "handler": (
        lambda p: (p.result("all"), p.on_result("all")),
        "on_result: 'all' is in one order over the whole fleet, so no device has its rows",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_no_side_can_run_is_refused_at_once(case):
    declare, why = REFUSED[case]
    with pytest.raises(ValueError, match=why):
        declare(water())


def test_the_order_of_a_fleet_is_by_time_and_then_by_device():
    program = Program("doors")
    door = program.event("door")
    last = program.scan("last", source=door, scan=scans.last(3))
    graph = graph_of(program.plan(), FLEET)
    items = [("b", Item(1, 7, "")), ("a", Item(1, 9, "")), ("a", Item(2, 8, ""))]
    delta = {
        item.place("door", device): (None, Event("door", item.value, item.time_us, device, {}))
        for device, item in items
    }
    found = graph.update({"door": delta}, 10)[last.name]
    assert [new.value for _, (_, new) in sorted(found.items())][-1] == (9, 7, 8)
