"""What a program says of streams: how they follow from each other, and what cannot work."""

import pickle
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crdts import BoundedLWWSet, ORSet
from lasp_edge import Event, Program, folds, scans
from lasp_edge.language.declarations import StreamResult
from lasp_edge.language.ordering import RESERVED
from lasp_edge.language.streaming import graph_of, meanings_of, parts_of, shown_parts
from lasp_edge.ordered.places import reading_place
from tests.lasp_edge.support_folds import Range


def laundry(**more):
    program = Program("laundry")
    power = program.event("power", resolution="1", unit="W")
    running = program.filter(power, lambda event: event.value > 5, "running")
    runs = program.scan(
        "runs",
        source=running,
        key=lambda event: event.tags["machine"],
        scan=scans.sessions(gap_s=300, fold=folds.struct(count=folds.count(), total=folds.sum())),
        per_device=True,
        **more,
    )
    return program, runs


def read(name, value, at_s, tags=None, device="pi-1"):
    at_us = at_s * 1_000_000
    event = Event(name, value, at_us, device, tags or {})
    return {reading_place(name, str(tags), value, at_us, device): (None, event)}


def test_runs_of_a_machine_have_the_parts_of_their_fold():
    program, runs = laundry()
    program.result(runs)
    plan = program.plan()
    result = plan.stream_results["runs"]
    assert dict(result.parts) == {
        "start_us": "1",
        "end_us": "1",
        "count": "1",
        "total": "0.001",
    }
    graph = graph_of(plan, "pi-1")
    delta = {}
    for at_s, watts in ((0, 100), (60, 120), (120, 2), (900, 7)):
        delta |= read("power", watts, at_s, {"machine": "m1"})
    outputs = graph.update({"power": delta}, 10_000_000_000)["runs"]
    values = [new.value for _, (_, new) in sorted(outputs.items())]
    assert values == [(0, 60_000_000, 2, 220), (900_000_000, 900_000_000, 1, 7)]
    rows = [shown_parts(result, parts_of(result, value)) for value in values]
    assert rows[0] == {"start_us": 0, "end_us": 60_000_000, "count": 2, "total": 220}
    assert [new.key for _, (_, new) in outputs.items()] == ["m1", "m1"]


def test_several_sources_are_their_union():
    program = Program("climate")
    warm = program.event("temperature", resolution="0.01")
    moist = program.event("humidity", resolution="0.1")
    both = program.scan(
        "both", source=[warm, moist], scan=scans.as_of(warm, moist, within_s=60), per_device=True
    )
    program.result(
        program.map(both, lambda event: event.value[0] + event.value[1], "sum", resolution="0.1")
    )
    graph = graph_of(program.plan(), "pi-1")
    delta = read("humidity", 50.0, 10) | read("temperature", 20.0, 10)
    outputs = graph.update(
        {
            name: {p: c for p, c in delta.items() if c[1].name == name}
            for name in ("temperature", "humidity")
        },
        20_000_000,
    )
    assert [new.value for _, new in outputs["sum"].values()] == [70.0]


def test_names_of_streams_stand_for_streams():
    program = Program("water")
    program.event("litres", resolution="0.1")
    used = program.scan("used", source="litres", scan=scans.differences, per_device=True)
    assert used.resolution.text == "0.1"
    assert program.filter("used", bool, "some").sources == ("used",)
    window = program.window("by_hour", source="used", fold=folds.sum(), size_s=3600)
    assert (window.source.name, window.source.resolution) == ("used", used.resolution)
    assert program.result("used") is used


def test_another_meaning_is_another_stream():
    plans = [laundry()[0].plan(), laundry(version=2)[0].plan()]
    assert meanings_of(plans[0], "pi-1") != meanings_of(plans[1], "pi-1")
    assert plans[0].digest != plans[1].digest
    assert meanings_of(plans[0], "pi-1") == meanings_of(laundry()[0].plan(), "pi-1")


def test_a_window_over_another_scan_is_another_stream():
    streams = set()
    for reset in (False, True):
        program = Program("water")
        litres = program.event("litres")
        scan = scans.differences(reset=reset)
        used = program.scan("used", source=litres, scan=scan, per_device=True)
        streams.add(program.window("w", source=used, fold=folds.sum(), size_s=60).stream)
    assert len(streams) == 2


def test_a_pickled_plan_leaves_the_functions_of_streams_behind():
    plan = pickle.loads(pickle.dumps(laundry()[0].plan()))
    assert list(plan.streams) == ["running", "runs"]
    with pytest.raises(RuntimeError, match="leaves the functions behind"):
        graph_of(plan, "pi-1")


def test_a_shared_set_is_still_mapped_and_filtered():
    program = Program("doors")
    program.event("door")
    doors = program.declare(ORSet(), "doors")
    upper = program.map(program.filter(doors, bool, "some"), str.upper, "upper")
    assert program.plan().derivations[upper.name].operator == "map"
    assert not program.plan().streams


def water():
    program = Program("water")
    program.event("litres", resolution="1")
    program.event("line", text=True)
    program.declare(ORSet(), "alarms")
    program.scan("used", source="litres", scan=scans.differences(), per_device=True)
    return program


class Nameless(scans.Scan):
    def step(self, state, event):
        return state, []


REFUSED = {
    "no name": (
        lambda p: p.scan("s", source="litres", scan=Nameless, per_device=True),
        'name = "..." is needed in class Nameless',
    ),
    "no scan": (
        lambda p: p.scan("s", source="litres", scan=folds.sum(), per_device=True),
        "a scan such as scans.differences",
    ),
    "no such event": (
        lambda p: p.scan("s", source="watts", scan=scans.changes(), per_device=True),
        "program 'water' declares no event 'watts'",
    ),
    "source is a number": (
        lambda p: p.scan("s", source=5, scan=scans.changes(), per_device=True),
        "scan 's': an event or a stream is needed, not 5",
    ),
    "no source": (
        lambda p: p.scan("s", source=[], scan=scans.changes(), per_device=True),
        "at least one event or stream",
    ),
    "a stream of another program": (
        lambda p: p.result(
            water().scan("z", source="litres", scan=scans.changes(), per_device=True)
        ),
        "declares no stream 'z'",
    ),
    "key is text": (
        lambda p: p.scan("s", source="litres", scan=scans.changes(), key="room", per_device=True),
        "key must be a function",
    ),
    "version 0": (
        lambda p: p.map("litres", abs, "m", version=0),
        "version must be a whole number from 1",
    ),
    "name of an event": (lambda p: p.filter("used", bool, "litres"), "'litres' is taken"),
    "name of a stream": (lambda p: p.filter("litres", bool, "used"), "'used' is taken"),
    "event named as a stream": (lambda p: p.event("used"), "taken by a stream"),
    "variable named as a stream": (lambda p: p.declare(ORSet(), "used"), "window or stream"),
    "no function": (lambda p: p.flat_map("litres", 5, "f"), "flat_map 'f': a function is needed"),
    "sessions of texts": (
        lambda p: p.scan("s", source="line", scan=scans.sessions(9, folds.mean()), per_device=True),
        "scan 's': sessions: folds.mean.* needs events in steps",
    ),
    "differences of texts": (
        lambda p: p.scan("s", source="line", scan=scans.differences(), per_device=True),
        "scan 's': scans.differences computes with numbers, and 'line' is a text; give it program",
    ),
    "a rate of filtered texts": (
        lambda p: p.scan("s", source=p.filter("line", len, "f"), scan=scans.rate()),
        "scan 's': scans.rate computes with numbers, and 'line' is a text",
    ),
    "window of a first one": (
        lambda p: p.window("w", source="used", fold=folds.first(), size_s=60),
        "an output of the scan behind 'used' may be revised, and .*first.* asks for times",
    ),
    "window of a fold of one's own": (
        lambda p: p.window("w", source="used", fold=Range(), size_s=60),
        "may be revised, and .* cannot take a value back",
    ),
    "window without a step": (
        lambda p: p.window("w", source=p.map("litres", abs, "m"), fold=folds.sum(), size_s=60),
        "window 'w': the values of 'm' have no step, so the fold cannot read them; write fold",
    ),
    "window of two steps": (
        lambda p: p.window(
            "w", source=["litres", p.event("fine", resolution="1e-4")], fold=folds.sum(), size_s=60
        ),
        "cannot read 'litres' in steps of 1 and 'fine' in steps of 1e-4 as one; give all of them",
    ),
    "window of texts": (
        lambda p: p.window("w", source="line", fold=folds.sum(), size_s=60),
        "'line' is a text, which the fold cannot read; write fold=folds.count.*, or value=lambda",
    ),
    "texts are collected": (
        lambda p: p.collect("line", into=p.declare_dynamic(BoundedLWWSet(bound=5), "s")),
        "the readings of 'line' are texts",
    ),
    "result without parts": (
        lambda p: p.result(p.map("line", lambda event: event.value.split()[0], "first")),
        "say what its values consist of, such as result",
    ),
    "result twice": (lambda p: (p.result("used"), p.result("used")), "it is a result already"),
    "result of a window": (
        lambda p: p.result(p.window("w", source="used", fold=folds.sum(), size_s=60)),
        "declares no stream 'w', which is a window: its rows are kept",
    ),
    "result of an event": (
        lambda p: p.result(p.event("more")),
        "declares no stream 'more', which is an event; write program.map",
    ),
    "scan of a window": (
        lambda p: p.scan(
            "s",
            source=p.window("w", source="used", fold=folds.sum(), size_s=60),
            scan=scans.changes(),
        ),
        "an event is needed, and 'w' is a window, of whose rows nothing is made",
    ),
    "result of a variable": (lambda p: p.result("alarms"), "declares no stream 'alarms'"),
    "part named as a column": (
        lambda p: p.result("used", parts={"status": "1"}),
        "'status' cannot name a part",
    ),
    "part without a step": (lambda p: p.result("used", parts={"x": "far"}), "resolution"),
    "on_result before result": (lambda p: p.on_result("used"), "write program.result.used. first"),
    "union of one": (lambda p: p.union("litres", "x"), "union: two sources and a new name"),
    "union without a name": (lambda p: p.union("litres", "line", name=5), "and a new name"),
    "as_of of nothing": (lambda p: scans.as_of(), "as_of: write scans.as_of.left, right"),
    "as_of of a set": (
        lambda p: scans.as_of("litres", p.declare(ORSet(), "more")),
        "an event, a stream or its name, not the variable 'more'",
    ),
    "as_of of what does not come": (
        lambda p: p.scan("s", source="litres", scan=scans.as_of("litres", "line"), per_device=True),
        "scan 's': scans.as_of asks for 'line', and its source gives litres alone",
    ),
    "as_of of a union": (
        lambda p: p.scan(
            "s",
            source=[p.union("litres", "used", "both"), "line"],
            scan=scans.as_of("both", "line"),
            per_device=True,
        ),
        "events of 'both' keep the names of its sources: write program.map.both, lambda",
    ),
    "a set with a resolution": (
        lambda p: p.map(p.declare(ORSet(), "more"), abs, "m", resolution="1"),
        "resolution= is for events and streams",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_work_is_refused_at_once(case):
    declare, why = REFUSED[case]
    program = water()
    with pytest.raises(ValueError, match=why):
        declare(program)


def test_a_stateless_stream_takes_any_fold():
    program = water()
    much = program.filter("litres", lambda event: event.value > 50, "much")
    window = program.window("w", source=much, fold=folds.max(), size_s=60)
    assert program.plan().windows["w"] is window


@pytest.mark.parametrize("value", [(1,), 1, ("dog", "cat"), ("dog", 1, 2), (1, 1), ("dog", True)])
def test_a_value_of_other_parts_is_refused(value):
    program = Program("words")
    program.event("line", text=True)
    words = program.flat_map("line", lambda event: [("dog", 1)], "words")
    program.result(words, parts={"word": "text", "count": "1"})
    result = program.plan().stream_results["words"]
    assert parts_of(result, ("dog", 2.5)) == {"word": "dog", "count_q": 2}
    with pytest.raises(ValueError, match="result words"):
        parts_of(result, value)


def test_reserved_names_are_those_of_a_row():
    assert {"key", "place", "status", "revision"} <= RESERVED


@given(
    st.integers(-(2**40), 2**40)
    | st.floats(-1e12, 1e12)
    | st.integers(-99, 99).map(lambda n: n / 8),
    st.sampled_from(["0.01", "5", "1e-3", "0.25", "3", "1"]),
)
def test_a_part_is_the_exact_quotient_rounded_half_to_even(part, step):
    result = StreamResult("rows", (("part", step),), 0)
    steps = round(Fraction(part) / Fraction(Decimal(step)))
    assert parts_of(result, part) == {"part_q": steps}


@pytest.mark.parametrize("part", [float("inf"), float("nan")])
def test_a_part_that_is_no_finite_number_is_refused_by_the_exact_quotient(part):
    with pytest.raises((ValueError, OverflowError)):
        parts_of(StreamResult("rows", (("part", "1"),), 0), part)
