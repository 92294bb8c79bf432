"""Scans with local events: what stays and what leaves, and which choices are refused."""

import pytest

from lasp_edge import Program, scans
from lasp_edge.event import Event
from lasp_edge.language.streaming import FLEET, graph_of
from lasp_edge.ordered.oracle import outputs_of
from lasp_edge.ordered.places import reading_place
from tests.lasp_edge.scans.support_synchronised import SmartHome, ValueBarrier


def plan_of(local=None, kind=ValueBarrier, more=None):
    program = Program("p")
    a, b = program.event("a", resolution="1"), program.event("b", resolution="1")
    program.result(program.scan("found", source=[a, b], scan=kind, local=local))
    if more is not None:
        program.result(program.scan("more", source=a, scan=more))
    return program.plan()


@pytest.mark.parametrize("local", ["a", ["a"], True])
def test_local_events_stay_and_their_outputs_leave(local):
    plan = plan_of(local)
    assert plan.streams["found"].local == ("a",)
    assert set(plan.item_streams) == {"b", "found: leaf"}
    assert plan.item_streams["found: leaf"].outputs
    assert plan.evaluated_events == {"a"}
    assert list(plan.fleet_results) == ["found"]


def test_a_local_event_leaves_for_another_scan_that_hears_it():
    assert set(plan_of("a", more=scans.changes()).item_streams) == {"a", "b", "found: leaf"}


def test_another_choice_has_other_ids():
    here, all_sent = plan_of("a"), plan_of()
    assert here.item_streams["b"].stream == all_sent.item_streams["b"].stream
    assert here.digest != all_sent.digest
    assert here.fleet_results["found"].stream != all_sent.fleet_results["found"].stream


def test_what_it_means_is_the_scan_over_all_events():
    def rows_of(plan):
        content = {"a": {}, "b": {}}
        for time_us, name, value, device in [(1, "a", 5, "x"), (2, "a", 6, "y"), (3, "b", 1, "z")]:
            place = reading_place(name, "", value, time_us, device)
            content[name][place] = Event(name, float(value), time_us, device, {})
        return outputs_of(graph_of(plan, FLEET).nodes, content)["found"]

    assert [event.value for event in rows_of(plan_of("a")).values()] == [11]
    assert rows_of(plan_of("a")) == rows_of(plan_of())


REFUSED = {
    "b": "scan 'found': b cannot be local: by what depends says, these can: a",
    "c": "scan 'found': c cannot be local: .* these can: a",
    (): "scan 'found': nothing cannot be local: .* these can: a",
}


@pytest.mark.parametrize("local", REFUSED)
def test_what_cannot_be_local_is_refused_with_what_can(local):
    with pytest.raises(ValueError, match=REFUSED[local]):
        plan_of(local)


def test_all_but_the_fewest_stay_where_that_is_left_open():
    program = Program("home")
    events = [program.event(name, resolution="1") for name in ("warm", "pressure", "minute")]
    assert program.scan("s", source=events, scan=SmartHome, local=True).local == (
        "warm",
        "pressure",
    )


def test_another_scan_and_streams_as_sources_are_refused():
    program = Program("p")
    a, b = program.event("a"), program.event("b")
    with pytest.raises(ValueError, match=r"local= needs a scans\.Synchronised"):
        program.scan("s", source=[a, b], scan=scans.changes(), local=a)
    most = program.filter(a, lambda event: event.value > 0, "most")
    with pytest.raises(ValueError, match="with local= its sources must be events, not streams"):
        program.scan("s", source=[most, b], scan=ValueBarrier, local="a")
    assert list(program.plan().streams) == ["most"]
