"""Scans whose arguments are parameters: what is declared, refused, and counts at which time."""

import pytest

from crdts import ControlLog
from lasp_edge import Event, Program, folds, scans
from lasp_edge.checking.streams import tried_streams
from lasp_edge.language.parameter_scan import NO_ENTRIES
from lasp_edge.language.streaming import graph_of
from lasp_edge.ordered.places import reading_place
from lasp_edge.ordered.scan import Scan


def laundry():
    """Return a program, one of whose scans has a parameter, and what declares it again."""
    program = Program("laundry")
    power = program.event("power", resolution="1")
    pause = program.parameter("pause_s", "3")
    mode = program.parameter("mode", "day", choices=("day", "night"))

    def declare(name="runs", **changed):
        given = {
            "scan": lambda at: scans.sessions(gap_s=at[pause], fold=folds.count()),
            "uses": (pause,),
            "per_device": True,
        }
        return program.scan(name, source=power, **given | changed)

    return program, declare, (pause, mode)


def said(plan, log, times_s):
    """Return (begin, end, count) of the sessions of readings at these seconds."""
    graph = graph_of(plan, "pi-1", log)
    came = {
        reading_place("power", "", 1, at * 1_000_000): (
            None,
            Event("power", 1, at * 1_000_000, "pi-1", {}),
        )
        for at in times_s
    }
    found = graph.update({"power": came}, 10**12)["runs"]
    return [(place[0] // 1_000_000, *new.value) for place, (_, new) in sorted(found.items())]


def test_events_and_timers_go_by_the_values_of_their_times():
    program, declare, (_, mode) = laundry()
    declare()
    declare("other", uses=(mode,), scan=lambda at: scans.last(2 if at[mode] == "day" else 3))
    plan, log = program.plan(), ControlLog()
    assert [count for *_, count in said(plan, NO_ENTRIES, (0, 2, 4, 9))] == [3, 1]
    log |= log.set("pause_s", "", 2_000_000, "1", "ann")
    log |= log.set("pause_s", "pi-1", 9_000_000, "5", "ann")
    log |= log.set("pause_s", "pi-2", 0, "60", "ann")
    # At 2 s the first session is overdue; the last two readings are no more than 5 s apart.
    found = [(at_s, count) for at_s, *_, count in said(plan, log, (0, 2, 4, 9, 13))]
    assert found == [(2, 1), (3, 1), (5, 1), (18, 2)]


def test_a_value_under_which_there_is_no_scan_leaves_the_one_before_it():
    program, declare, (_, mode) = laundry()
    declare()
    declare("other", uses=(mode,), scan=lambda at: scans.last(2 if at[mode] == "day" else 3))
    plan, log = program.plan(), ControlLog()
    log |= log.set("pause_s", "", 0, "1", "ann")
    log |= log.set("pause_s", "", 1_000_000, "-7", "ann")
    assert [count for *_, count in said(plan, log, (0, 2, 4))] == [1, 1, 1]
    (why,) = plan.functions.streams["runs"].unfit(log)
    assert "scan 'runs': its scan cannot be made" in why


class Counted(Scan):
    """Counts from a number on."""

    name = "counted"

    def __init__(self, first):
        self.zero = first

    def step(self, state, event):
        return state + 1, (state + 1,)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"uses": ()}, "of a function of parameters, name these in uses="),
        ({"scan": scans.last(2)}, "uses= names what the function of a scan asks for"),
        ({"scan": lambda at: at["pause_s"]}, r"must give a scan such as scans.sessions\(gap_s="),
        ({"scan": lambda at: scans.last(at["none"])}, "the window uses pause_s|uses pause_s"),
        ({"per_device": False}, "in one order over the whole fleet takes no parameter"),
        ({"uses": ("none",)}, "is not a parameter of program"),
        (
            {"uses": ("mode",), "scan": lambda at: Counted(len(at["mode"]))},
            "first state, parts, step and timers of its scan must not depend on parameters",
        ),
    ],
)
def test_what_cannot_be_declared_is_named(changed, expected):
    _, declare, _ = laundry()
    with pytest.raises(ValueError, match=expected):
        declare(**changed)


def test_check_finds_a_scan_with_parameters_that_remembers():
    program, declare, _ = laundry()
    given = iter(range(10**6))

    class Remembering(Scan):
        name, zero, parts = "remembering", 0, {"n": "1"}

        def step(self, state, event):
            return state, (next(given),)

    program.result(declare(scan=lambda _at: Remembering(), uses=("pause_s", "mode")))
    assert any("step from 0 at" in flaw for flaw in tried_streams(program.plan()).wrong)


def test_another_default_is_another_stream():
    found = []
    for default in ("3", "4"):
        program = Program("laundry")
        pause = program.parameter("pause_s", default)
        program.scan(
            "runs",
            source=program.event("power"),
            scan=lambda at: scans.sessions(gap_s=at["pause_s"], fold=folds.count()),
            uses=(pause,),
            per_device=True,
        )
        found.append(program.plan().streams["runs"].fingerprint)
    assert found[0] != found[1]
