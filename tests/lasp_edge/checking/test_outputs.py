"""Scans whose steps, timers and outputs are hardly what their author means are named."""

import pytest

from lasp_edge import Program, scans
from lasp_edge.checking.streams import tried_streams


def found_of(scan, resolution="0.1", above=None, **limits):
    """Return what check finds of a scan over an event, and of a filter of what is at least one."""
    program = Program("water")
    litres = program.event("litres", resolution=resolution, **limits)
    source = program.scan("scanned", source=litres, scan=scan, per_device=True)
    if above is not None:
        source = program.filter(source, lambda event: event.value >= above, "some")
    program.result(source, parts={"it": "0.1"})
    found = tried_streams(program.plan())
    return found.wrong + found.doubts


def stepping(step, first=0, due=None):
    """Return a scan of these functions."""
    methods = {"name": "own", "zero": first, "step": lambda _self, state, event: step(state, event)}
    if due is not None:
        methods["due"] = lambda _self, state: due(state)
        methods["ring"] = lambda _self, _state, _at_us: (first, [1])
    return type("Own", (scans.Scan,), methods)()


@pytest.mark.parametrize(
    ("step", "given"),
    [
        (lambda state, event: ([state], state), "([0], 0)"),
        (lambda state, event: (state, state), "(0, 0)"),
        (lambda state, event: (state, None), "(0, None)"),
        (lambda state, event: (state, "open"), "(0, 'open')"),
        (lambda state, event: (state, (each for each in "a")), "(0, <generator object"),
        (lambda state, event: state, "gives 0"),
        (lambda state, event: None, "gives None"),
    ],
)
def test_a_step_that_gives_no_state_and_outputs_is_told_what_to_return(step, given):
    (line,) = found_of(stepping(step))
    assert line.startswith(
        "scan scanned: step must give a state and a list of outputs, such as return state, [output]"
    )
    assert given in line


def test_a_state_that_is_given_as_the_outputs_is_named():
    def widest(state, event):
        new = min(state[0], round(event.value)), max(state[1], round(event.value))
        return new, new

    (line,) = found_of(stepping(widest, (0, 0)))
    assert line.endswith("for one output, return state, [state]")
    assert not found_of(stepping(lambda state, event: (state, (1, 2))))


@pytest.mark.parametrize(
    ("due", "found"),
    [
        (lambda state: {}[state], "fails each time: KeyError: "),
        (
            lambda state: state and 1.5,
            "fails each time: ValueError: due must give whole microseconds, not 1.5",
        ),
    ],
)
def test_a_due_that_raises_or_gives_no_time_is_named(due, found):
    lines = found_of(stepping(lambda state, event: (event.time_us, []), due=due))
    assert any(found in line for line in lines), lines


@pytest.mark.parametrize(
    ("after", "is_odd"), [(480, True), (86_400, True), (480_000_000, False), (200_000, False)]
)
def test_a_timer_of_so_many_microseconds_is_one_of_seconds(after, is_odd):
    def due(state):
        return state + after if state else None

    lines = found_of(stepping(lambda state, event: (event.time_us, []), due=due))
    assert any(f"write event.time_us + {after} * 1_000_000" in line for line in lines) == is_odd


@pytest.mark.parametrize(
    ("scan", "argument"),
    [
        (scans.time_weighted_mean(every_s=0.06), "every_s"),
        (scans.sessions(gap_s=0.06), "gap_s"),
    ],
)
def test_a_timer_of_a_built_in_scan_that_rings_at_once_is_named_by_its_argument(scan, argument):
    (line,) = found_of(scan)
    assert line == (
        f"scan scanned: {argument}=0.06 is 60 milliseconds, and as soon its timers ring; for 60 "
        f"seconds, write {argument}=60"
    )


@pytest.mark.parametrize(
    ("first", "least", "is_odd"), [(0, 0, True), (None, 0, False), (0, -10, False)]
)
def test_a_running_state_that_never_leaves_its_first_one_is_named(first, least, is_odd):
    def running(state, event):
        return event.value if state is None else min(state, event.value)

    lines = found_of(scans.running(running, first), least=least)
    assert any("write zero=None" in line for line in lines) == is_odd


@pytest.mark.parametrize(
    ("add", "resolution", "above", "is_odd"),
    [
        (lambda total, event: total + event.value, "0.1", 1, True),
        (lambda total, event: total + event.value, "0.1", None, False),  # its rows are rounded
        (lambda total, event: total + event.value, "0.5", 1, False),  # doubles have that step
        (lambda total, event: total + round(event.value / 0.1), "0.1", 10, False),
        (lambda mean, event: 0.9 * mean + 0.1 * event.value, "0.1", 1, False),
    ],
)
def test_a_sum_of_doubles_that_is_compared_is_named(add, resolution, above, is_odd):
    lines = found_of(scans.running(add), resolution, above, least=0, most=100)
    assert any("filter some compares" in line for line in lines) == is_odd


@pytest.mark.parametrize(("most", "is_endless"), [(5, False), (10**9, True)])
def test_a_timer_that_is_set_again_without_end_is_named_before_years_are_run(most, is_endless):
    class Tick(scans.Scan):
        name, zero = "tick", (0, 0)

        def step(self, state, event):
            return (event.time_us, 0), []

        def due(self, state):
            return state[0] + 1_000_000 if state[0] and state[1] < most else None

        def ring(self, state, at_us):
            return (at_us, state[1] + 1), [1]

    lines = [line for line in found_of(Tick()) if "let due give None after some of them" in line]
    assert len(lines) == is_endless


class Summed(scans.Scan):
    """Its first state was forgotten."""

    name = "summed"

    def step(self, state, event):
        return state + round(event.value), [state]


class FromZero(Summed):
    zero = 0


def test_a_scan_whose_first_state_was_forgotten_is_told_of_it():
    (line,) = found_of(Summed())
    assert "; its class has no zero: write zero = 0, or what else is so at first, for the" in line
    assert found_of(FromZero()) == []


def test_a_map_that_gives_no_number_is_told_what_it_gives():
    def lines(function):
        program = Program("water")
        litres = program.event("litres", resolution="0.1")
        program.result(program.map(litres, function, "some", resolution="0.1"))
        return tried_streams(program.plan()).wrong

    (line,) = lines(lambda event: event.value > -1_000_000)
    assert "; it gives True, and a number is needed, and a condition is for program.filter" in line
    (line,) = lines(lambda event: "hot")
    assert "; it gives 'hot', and a number is needed, for the event litres" in line
    assert lines(lambda event: event.value + 1) == []


class Spread(scans.Scan):
    """How far the readings that this object has seen lie apart."""

    name, zero = "spread", ()

    def __init__(self):
        self.seen = []

    def step(self, state, event):
        self.seen.append(event.value)
        return state, [max(self.seen) - min(self.seen)]


class SpreadOfState(Spread):
    def step(self, state, event):
        low, high = state or (event.value, event.value)
        now = min(low, event.value), max(high, event.value)
        return now, [now[1] - now[0]]


def test_a_scan_that_remembers_what_its_state_does_not_have_is_named_in_the_readings_unit():
    (line,) = found_of(Spread(), least=0, most=50)
    assert line.startswith("scan scanned: step from () at ")
    assert "gives ((), (0.0,)) first, and ((), (50.0,)) once it has seen other readings" in line
    assert found_of(SpreadOfState(), least=0, most=50) == []


A, B = (lambda event: event.name == "a"), (lambda event: event.name == "b")
HOT = lambda event: event.value > 5  # noqa: E731 - as in the docs


@pytest.mark.parametrize(
    ("scan", "is_named"),
    [
        (scans.pattern(B, B, within_s=60), True),
        (scans.pattern(A, B, within_s=60), False),
        (scans.pattern(B, HOT, within_s=60), False),
        (scans.pattern(B, lambda event: event.name != "b", within_s=60), False),
        (scans.pattern(B, lambda e: e.name == "a" and e.value == 4.711, within_s=60), False),
        (scans.pattern(B, absent_s=60), False),
        (scans.held_for(B, 60), False),
    ],
    ids=["b b", "a b", "hot", "not b", "rare", "absent", "held"],
)
def test_an_event_of_which_a_pattern_takes_no_reading_is_named(scan, is_named):
    program = Program("doors")
    both = [program.event(name, resolution="0.1", least=0, most=9) for name in "ab"]
    program.result(program.scan("met", source=both, scan=scan, per_device=True))
    lines = tried_streams(program.plan()).doubts
    assert [line.partition(":")[0] for line in lines] == ["scan met"] * is_named
    assert all("no condition of its pattern takes a reading of a" in line for line in lines)
