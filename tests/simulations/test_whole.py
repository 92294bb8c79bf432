"""`lasp-edge check` runs whole programs: what fails on devices, or elsewhere, fails here first."""

import sys
from textwrap import dedent

import pytest

from lasp_edge import Program
from lasp_edge.checking.whole import all_tried
from lasp_edge.tool.loading import load_plan
from simulations import elsewhere
from simulations.oracle import Reading
from simulations.whole import RARE

HEAD = """
import os, platform, socket, sys, time
from crdts import BoundedLWWSet, Counter, GSet, LWWRegister, ORMap
from lasp_edge import Column, Fold, Op, Program, folds, scans
program = Program("planted")
t = program.event("t", resolution="0.1")
seen = []

class Own(Fold):
    name, parts = "own", ("own",)
    columns = (Column("total", Op.SUM),)
    def lift(self, value, time_us=0):
        return (int(self.given(value, time_us)),)
    def lower(self, partial, resolution):
        return {"own": partial[0]}

def own(given):
    return type("Own", (Own,), {"given": staticmethod(given)})()

def counted(value, time_us):
    if value not in seen:
        seen.append(value)
    return len(seen)
"""
WINDOW = 'program.window("w", source=t, size_s=60, '
SCAN = 'program.scan("s", source=t, per_device=True, scan='


@pytest.fixture
def found(tmp_path, monkeypatch):
    """Return what is wrong with a program, and what is doubtful."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def run(text):
        (tmp_path / "planted_whole.py").write_text(HEAD + dedent(text))
        sys.modules.pop("planted_whole", None)
        findings = all_tried(load_plan("planted_whole:program"), None, "planted_whole:program")
        return findings.wrong, findings.doubts

    yield run
    sys.modules.pop("planted_whole", None)


WRONG = {
    "a partial beyond its column": (
        f"{WINDOW} fold=own(lambda value, time_us: (time_us // 10**6) ** 2))",
        "window w: the partial is out of range",
    ),
    "a power of values": (
        f"{WINDOW} fold=own(lambda value, time_us: value ** 8))",
        "window w: the partial is out of range",
    ),
    "a part that is no number": (
        (
            f"program.result({SCAN} scans.changes()));"
            'program.result(program.map("s", lambda e: True, "m"), parts={"first": "1"})'
        ),
        "result m: part first is not a number: True",
    ),
    "a tag that a row of time lacks": (
        (
            f"s = {SCAN} scans.pattern(lambda e: e.value > 5, absent_s=600));"
            "m = program.map(s, lambda e: 1, 'm', resolution='1');"
            "program.window('w', source=m, size_s=60, fold=folds.count(), "
            "key=lambda e: e.tags['room'])"
        ),
        "KeyError: 'room'",
    ),
    "the clock in a lift": (
        f"{WINDOW} fold=own(lambda value, time_us: time.time() // 3600))",
        "window w gives something else on another machine",
    ),
    "memory in a lift": (f"{WINDOW} fold=own(counted))", "window w"),
    "a key of the host": (
        f"{WINDOW} fold=folds.sum(), key=lambda e: socket.gethostname())",
        "window w gives something else on another machine",
    ),
    "a key of the host, by the system": (
        f"{WINDOW} fold=folds.sum(), key=lambda e: os.uname().nodename)",
        "window w gives something else on another machine",
    ),
    "a key of a hash": (
        f"{WINDOW} fold=folds.sum(), key=lambda e: str(hash(str(e.value)) % 8))",
        "window w gives something else on another machine",
    ),
    "a key of the clock": (
        f"{WINDOW} fold=folds.sum(), key=lambda e: str(time.time() // 3600))",
        "window w gives something else on another machine",
    ),
    "what is of today alone": (
        f"{WINDOW} fold=folds.sum(), where=lambda e: e.time_us > 1e6 * (time.time() - 86_400))",
        "window w gives something else on another machine",
    ),
    "a key of the zone": (
        (
            f"{WINDOW} fold=folds.sum(), key=lambda e: time.strftime('%H', "
            "time.localtime(e.time_us // 10**6)))"
        ),
        "window w gives something else on another machine",
    ),
    "a key of the directory": (
        f"{WINDOW} fold=folds.sum(), key=lambda e: os.getcwd()[-9:])",
        "window w gives something else on another machine",
    ),
    "the order of a set": (
        (
            "program.result(program.flat_map(t, lambda e: "
            "list({'a', 'b', 'c', 'dd', str(e.value)}), 'f'), parts={'x': 'text'})"
        ),
        "result f gives something else on another machine",
    ),
    "the order of words": (
        """
        op = program.event("op", text=True)
        words = program.map(op, lambda e: " ".join({w for w in e.value.split()}), "words")
        program.result(words, parts={"x": "text"})
        """,
        "result words gives something else on another machine",
    ),
    "chance in a handler": (
        """
        import random
        g = program.declare(GSet(), "g")
        @program.on_event(t)
        def handler(event, update):
            update(g, GSet.add, str(random.random()))
        """,
        "handlers of event t gives something else",
    ),
    "an exit that few readings reach, in a handler": (
        """
        program.window("w", source=t, size_s=60, fold=folds.sum())
        @program.on_event(t)
        def handler(event, update):
            if 20.05 < event.value < 21:
                raise SystemExit(4)
        """,
        "SystemExit: 4 (",
    ),
    "an exit that few readings reach, in a filter": (
        f"{WINDOW} fold=folds.sum(), where=lambda e, at: 20.05 < e.value < 21 and exit(4))",
        "SystemExit: 4 (",
    ),
    "an exit of the last of all calls": (
        """
        @program.on_event(t)
        def handler(event, update):
            if sys._getframe(1).f_globals["__name__"] == "simulations.elsewhere":
                sys.exit(4)
            if "elsewhere" in socket.gethostname():
                raise ValueError
        """,
        "handlers of event t gives something else on another machine",
    ),
    "an exit in a stream": (
        """
        def few(event):
            if event.tags["on"] == "yes" and 20 < event.value < 30:
                raise SystemExit(4)
            return True
        program.result(program.filter(t, few, "few"), parts={"a": "0.1"})
        """,
        "SystemExit: 4 (",
    ),
    "a sample that is a text": (
        """
        op = program.event("op", text=True)
        last = program.declare_dynamic(BoundedLWWSet(bound=5), "last", measures=t)
        @program.on_event(op)
        def handler(event, update):
            update(last, BoundedLWWSet.add, event.value, event.time_us)
        """,
        "handler handler of event op fails each time",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_would_fail_on_devices_or_elsewhere_is_found(found, name):
    text, expected = WRONG[name]
    wrong, _ = found(text)
    assert any(expected in line for line in wrong), wrong


RIGHT = {
    "a rate, in whole numbers, beside a window of the same event": """
        watts = program.scan("watts", source=t, per_device=True,
            scan=scans.rate(3600, reset=True, resolution="1"))
        program.result(watts)
        program.window("w", source=t, size_s=900, fold=folds.count())
        """,
    "a filter that the program's own numbers meet": (
        f"{WINDOW} fold=folds.sum(), where=lambda e, at: e.value > 812.5)"
    ),
    "a tag of the program's own texts": (
        f"{WINDOW} fold=folds.count(), where=lambda e, at: e.tags['status'] == '200')"
    ),
    "a text that a register holds": """
        op = program.event("op", text=True)
        who = program.declare(LWWRegister(), "who")
        @program.on_event(op)
        def handler(event, update):
            update(who, LWWRegister.write, event.value.upper(), event.time_us)
        """,
    "a map of counters, changed by a function of theirs": """
        rides = program.declare(ORMap(Counter()), "rides")
        @program.on_event(t)
        def handler(event, update):
            update(rides, ORMap.update, event.device, Counter.increment, 1)
        """,
    "functions in other forms: objects, partials, generators": """
        from functools import partial
        class Above(int):
            __call__ = lambda self, event: event.value > self
        def halves(event):
            yield from (event.value / 2, event.value / 2)
        hot = program.filter(t, Above(30), "hot")
        twice = program.map(hot, partial(lambda n, e: e.value * n, 2), "twice", resolution="0.1")
        half = program.flat_map(twice, halves, "half", resolution="0.05")
        program.window("w", source=half, size_s=60, fold=folds.sum())
        opened = program.declare(GSet(), "opened")
        seen = partial(lambda name, event, update: update(opened, GSet.add, name), "t")
        program.on_event(t)(seen)
        """,
    "a fold of devices' results, beside a histogram of theirs": """
        last = program.declare_dynamic(BoundedLWWSet(bound=7), "last")
        program.collect(t, into=last)
        both = folds.struct(mean=folds.mean(), bins=folds.histogram([0, 5]))
        here = program.fold(last, both, "here")
        program.fold_dynamic(here, folds.max(), "most", part="mean", resolution="0.01")
        """,
    "a session's window": f"""
        s = {SCAN} scans.differences())
        program.result(s)
        program.window("w", source=s, size_s=60, fold=folds.mean())
        """,
    "a column that plausible readings do not fill": """
        p = program.event("p", least=0, most=60)
        program.window("w", source=p, size_s=60, fold=own(lambda value, time_us: value ** 8))
        """,
    "what nobody did for a while": f"""
        s = {SCAN} scans.pattern(lambda event: event.value == 1, absent_s=600))
        program.result(s)
        """,
    "an alert": """
        last = program.declare_dynamic(BoundedLWWSet(bound=5), "last")
        program.collect(t, into=last)
        here = program.fold(last, folds.mean(), "here")
        program.alert("hot", program.fold_dynamic(here, "fleet"), above=5)
        """,
}

FEW = """
program.window("w", source=t, size_s=60, fold=folds.count(), key=lambda e: e.tags["room"])
on = program.filter(t, lambda e: e.tags["status"] == "on", "on")
program.result(program.scan("work", source=on, per_device=True, scan=scans.sessions(gap_s=60),
                            key=lambda e: e.tags["bike"]))
@program.on_event(t)
def handler(event, update):
    if 20.05 < event.value < 21:
        event.tags["floor"]
"""


def test_a_tag_that_few_readings_must_have_is_given_to_them_and_told(found):
    wrong, _ = found(FEW)
    assert wrong == []
    plan = load_plan("planted_whole:program")
    asked = all_tried(plan).tags["t"]
    assert sorted(asked) == ["bike", "floor", "room", "status"]
    assert asked["bike"] == asked["floor"] == [RARE]
    lacking = all_tried(plan, {"room": "a", "status": "on", "bike": "b"}).wrong
    assert any("KeyError: 'floor'" in line for line in lacking)


@pytest.mark.parametrize("name", RIGHT)
def test_a_program_that_works_is_not_complained_of(found, name):
    assert found(RIGHT[name]) == ([], [])


def test_what_no_reading_reaches_is_a_warning(found):
    wrong, doubts = found(f"{WINDOW} fold=folds.sum(), where=lambda e, at: e.value > e.value)")
    assert wrong == []
    assert doubts == [
        "window w: no made-up reading counts in it; is what its functions ask for possible?"
    ]


GIVEN = {
    "closed over": "(lambda mast: lambda e: e.tags['mast'] == mast)('north')",
    "a default": "lambda e, mast='north': e.tags['mast'] == mast",
    "a keyword's default": "lambda e, *, mast='north': e.tags['mast'] == mast",
    "an argument of partial": "partial(lambda mast, e: e.tags['mast'] == mast, 'north')",
}


@pytest.mark.parametrize("function", GIVEN.values(), ids=GIVEN)
def test_a_text_that_was_given_to_a_function_is_tried(found, function):
    partial = "from functools import partial\n"
    assert found(f"{partial}{WINDOW} fold=folds.sum(), where={function})") == ([], [])


@pytest.mark.parametrize("where", ["e.tags.get('mast') == 'north'", "'mast' in e.tags"])
def test_readings_have_a_tag_that_a_function_can_do_without_and_lack_it(found, where):
    window = f"{WINDOW} fold=folds.sum(), where=lambda e: {where})"
    assert found(window) == ([], [])
    for condition in (where, f"not ({where})"):
        made = f"program.map(t, lambda e: 1 // ({condition}), 'made', resolution='1')"
        wrong, _ = found(f"{made}\nprogram.window('m', source='made', fold=folds.sum(), size_s=60)")
        assert any("ZeroDivisionError" in line for line in wrong)


def test_failures_that_differ_in_their_numbers_alone_are_one_line(found):
    wrong, _ = found(
        """
        d = program.scan("d", source=t, per_device=True, scan=scans.differences())
        program.result(d)
        g = program.declare(GSet(), "g")
        @program.on_result(d)
        def noted(row, update):
            update(g, GSet.add, 0.5 + row.parts["difference"])
        """
    )
    assert len(wrong) == 1
    assert "more with other numbers" in wrong[0]


@pytest.mark.parametrize(
    ("function", "seeds"),
    [
        (lambda event: next(iter({event.value, 0})), elsewhere.SEEDS),
        (lambda event: len(set(event.device)), elsewhere.SEEDS),
        (lambda event: event.value, elsewhere.SEEDS[:1]),
    ],
)
def test_a_program_that_makes_sets_runs_under_several_hash_seeds(monkeypatch, function, seeds):
    program, ran = Program("seeds"), []
    event = program.event("x", resolution="1")
    program.result(program.map(event, function, "m"), parts={"x": "1"})
    readings = [Reading("kitchen", "x", 21, 0, {})]

    def outcomes_there(_program, _readings, seed, _clock_s):
        ran.append(seed)
        return elsewhere.outcomes(program.plan(), readings if seed != seeds[-1] else [])

    monkeypatch.setattr(elsewhere, "_outcomes_there", outcomes_there)
    (line,) = elsewhere.differences("", program.plan(), readings)
    assert "result m gives something else" in line
    assert tuple(ran) == seeds


HOUR = "datetime.datetime.fromtimestamp(e.time_us // 1_000_000, datetime.timezone.utc)"
SELDOM = {
    "opening hours": f"8 <= {HOUR}.hour < 20",
    "a Sunday": f"{HOUR}.weekday() == 6",
    "a summer": f"6 <= {HOUR}.month <= 8",
}


@pytest.mark.parametrize("where", SELDOM.values(), ids=SELDOM)
def test_readings_of_all_hours_and_months_come_where_no_other_one_counts(found, where):
    window = f"{WINDOW} fold=folds.sum(), where=lambda e: {where})"
    assert found(f"import datetime\n{window}") == ([], [])


@pytest.mark.parametrize("rising", ["a == b == c == d", "a < b < c < d", "a > b > c > d"])
def test_runs_of_values_come_where_no_other_ones_give_a_row(found, rising):
    scan = f"""
    pulse = program.event("pulse", resolution="1", least=90, most=230)
    four = program.scan("four", source=pulse, scan=scans.last(4, partial=False), per_device=True)
    def run(e):
        a, b, c, d = e.value
        return {rising}
    program.result(program.filter(four, run, "run"), parts=dict.fromkeys("abcd", "1"))
    """
    assert found(scan) == ([], [])


def test_a_session_of_one_reading_is_tried(found):
    wrong, _ = found("""
    spread = scans.sessions(gap_s=60, fold=folds.stddev())
    program.result(program.scan("spread", source=t, scan=spread, per_device=True))
    """)
    (failure,) = wrong
    assert "part stddev is None, and its row needs a number; " in failure
