"""`check` runs functions on made-up readings: what fails is found before a fleet finds it."""

import re
import sys
from functools import partial

import pytest

from crdts import GSet
from lasp_edge import Program, folds, scans
from lasp_edge.checking.trial import tried
from lasp_edge.checking.whole import all_tried
from lasp_edge.dataflow.thresholds import cardinality
from lasp_edge.errors import Exit
from lasp_edge.examples import talk
from lasp_edge.testing import check_program
from lasp_edge.tool.command_line import main
from tests.lasp_edge.support_programs import averaged


@pytest.fixture
def house():
    program = averaged(event={"resolution": "0.1"})
    program.seen = program.declare(GSet(), "seen")
    return program


def window(program, key):
    program.window("w", source="temperature", fold=folds.mean(), size_s=1, key=key)


def lines(program, tags=None):
    found = tried(program.plan(), tags)
    return found.wrong + found.doubts


def test_functions_that_work_are_no_news(house):
    window(house, lambda event: event.tags["room"])

    @house.on_event("temperature")
    def sampled(event, update):
        update(house.seen, GSet.add, event.tags.get("floor", "0") + event.tags["room"])
        print("never shown")

    rooms = house.map(house.seen, lambda room: room.upper(), "rooms")
    house.on_threshold(rooms, cardinality(1))(lambda value, update: min(value))
    house.on_value(house.everywhere)(lambda value, update: sorted(value.parts))
    house.on_value(house.everywhere, above=20)(lambda value, update: value.number + 1)
    found = tried(house.plan())
    assert (found.wrong, found.doubts, found.untried) == ([], [], [])
    assert found.tags == {
        "temperature": {"room": ["key of window w", "handler sampled of event temperature"]}
    }
    check_program(house)
    found = tried(talk.program.plan())
    assert found.wrong + found.doubts == []


def test_a_tag_that_a_source_does_not_give_is_found(house):
    window(house, lambda event: event.tags["rom"])
    (text,) = lines(house, {"room": "attic"})
    assert text.startswith("key of window w fails each time: KeyError: 'rom': temperature has")
    assert "test_trial.py:" in text
    assert "for the reading temperature 21.5 with the tags {'room': 'attic'}; give them " in text


def test_a_made_up_tag_that_a_function_does_not_know_is_named(house):
    window(house, lambda event: {"attic": "2"}[event.tags["room"]])
    (text,) = lines(house)
    assert text.endswith("; '1' is made up: say what they have, by --tag room=TEXT")
    assert lines(house, {"room": "attic"}) == []


@pytest.mark.parametrize(
    ("declare", "text"),
    [
        (lambda p: window(p, lambda event: 7), "key of window w fails each time: WrongAnswer"),
        (
            lambda p: window(p, lambda event: str(1 / event.value)),
            "key of window w fails 1 of 6 times: ZeroDivisionError: ",
        ),
        (
            lambda p: p.on_event("temperature")(lambda e, update: update(p.seen, "ad", 1)),
            "handler <lambda> of event temperature fails each time: ValueError: update: 'seen'",
        ),
        (
            lambda p: p.on_event("temperature")(lambda e, update: update(p.seen, GSet.add)),
            "handler <lambda> of event temperature fails each time: ValueError: update: GSet.add",
        ),
        (
            lambda p: p.on_event("temperature")(lambda e, update: e.tags["room"].number),
            "handler <lambda> of event temperature fails each time: AttributeError: 'str' object",
        ),
        (
            lambda p: p.on_event("temperature")(
                lambda e, update: update.value(p.everywhere).number + 1
            ),
            "handler <lambda> of event temperature fails 6 of 12 times: AttributeError: 'NoneType'",
        ),
        (
            lambda p: p.on_value("everywhere")(lambda value, update: value.number > 3),
            "on_value of everywhere fails 1 of 7 times: TypeError: '>' not supported between",
        ),
        (
            lambda p: p.on_value("everywhere", above=3)(lambda value, update: sys.exit(3)),
            "on_value of everywhere fails each time: SystemExit: 3 (",
        ),
    ],
)
def test_a_function_that_fails_is_named_with_its_error(house, declare, text):
    declare(house)
    (found,) = lines(house)
    assert found.startswith(text)
    with pytest.raises(AssertionError, match="fails "):
        check_program(house)


def test_filters_and_thresholds_see_what_handlers_add(house):
    @house.on_event("temperature")
    def add(event, update):
        update(house.seen, GSet.add, round(event.value))

    odd = house.filter(house.seen, lambda number: 5 % number, "odd")
    house.on_threshold(odd, cardinality(2))(lambda value, update: update(odd, GSet.add, 1))
    house.on_threshold(house.seen, cardinality(1000))(lambda value, update: None)
    found = tried(house.plan())
    texts = sorted(found.wrong + found.doubts)
    assert texts[0].startswith("function of odd fails 1 of 6 times: ZeroDivisionError")
    assert texts[1].startswith("on_threshold of odd fails each time: ValueError: update: 'odd' is")
    assert texts[2].startswith("on_threshold of seen: no made-up readings reach it, however many")
    assert len(texts) == 3


PROGRAM = """
from lasp_edge import Program, folds
program = Program("planted")
event = program.event("e")
program.window("w", source=event, fold=folds.mean(), size_s=1, key=lambda event: {key})
"""


@pytest.fixture
def check(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def run(key, *words):
        (tmp_path / "tried_program.py").write_text(PROGRAM.format(key=key))
        sys.modules.pop("tried_program", None)
        code = main(["check", "tried_program", "--examples", "1", *words])
        out, err = capsys.readouterr()
        return code, out + err

    yield run
    sys.modules.pop("tried_program", None)


def test_the_command_tells_tags_and_failures(check):
    code, out = check('event.tags["room"]')
    assert code == Exit.FINE
    assert "\nTAG   readings of e must have the tag room: key of window w\n" in out
    code, out = check('event.tags["room"]', "--tag", "rom=attic")
    assert code == Exit.DIFFERS
    assert (
        "\nFAIL  key of window w fails each time: KeyError: 'room': e has no such tag; use" in out
    )
    assert "; give them the tag, too: --tag room=TEXT" in out
    assert out.startswith("1 thing that cannot work.\n")
    assert check('event.tags["room"]', "--tag", "rom=attic", "--no-run")[0] == Exit.FINE
    code, out = check("str(1 // event.value)")
    assert (code, "\nFAIL  key of window w fails 1 of 6" in out) == (Exit.DIFFERS, True)
    code, out = check('"a"', "--tag", "room")
    assert (code, "--tag NAME=VALUE is needed, such as room=attic" in out) == (Exit.USAGE, True)


def test_functions_that_see_parameters_are_tried_with_the_defaults(house):
    offset = house.parameter("offset", "1")
    house.window(
        "corrected",
        source="temperature",
        fold=folds.mean(),
        size_s=1,
        uses=(offset,),
        value=lambda event, at: 1 / (at[offset] - 1),
        where=lambda event, at: event.tags["room"] != "",
    )
    (text,) = lines(house)
    assert "value= and where= of window corrected fails each time: ZeroDivisionError" in text


@pytest.mark.parametrize(
    ("where", "given"),
    [
        (lambda event: event.tags["on"], "a str"),
        (lambda event: event.value, "a float"),
        (lambda event: None, "None"),
        (lambda event, at: re.match("x?", event.device), "a Match"),
        (partial(lambda on, event: [on], "x"), "a list"),
    ],
)
def test_a_where_that_gives_neither_true_nor_false_is_named_with_its_line(house, where, given):
    house.window("on", source="temperature", fold=folds.count(), size_s=60, where=where)
    (text,) = lines(house)
    assert f"WrongAnswer: where= of window 'on' must give True or False, not {given}: comp" in text
    assert isinstance(where, partial) or "test_trial.py:1" in text
    assert "for the reading temperature " in text


def test_functions_that_see_parameters_are_run_with_their_other_values(house):
    mode = house.parameter("mode", "day", choices=("day", "night"))
    parts = house.parameter("parts", "2", least=1)
    house.window(
        "rated",
        source="temperature",
        fold=folds.mean(),
        size_s=10,
        uses=(mode, parts),
        value=lambda event, at: event.value / at[parts],
        where=lambda event, at: event.value > {"day": 0}[at[mode]],
    )
    found = all_tried(house.plan())
    (text,) = found.wrong
    assert "window rated: KeyError: 'night'" in text, "and no part is 0, as it is at least 1"


@pytest.mark.parametrize("per_device", [True, False])
def test_a_step_that_raises_at_times_is_wrong_of_a_device_and_of_the_fleet(per_device):
    def step(state, event):
        return state + 1 // (event.value < 4)  # some readings raise

    program = Program("rare")
    door = program.event("door", resolution="1")
    scan = scans.running(step, 0)
    program.result(
        program.scan("odd", source=door, scan=scan, per_device=per_device), parts={"n": "1"}
    )
    found = all_tried(program.plan())
    assert [line for line in found.wrong if line.startswith("failed: odd: ZeroDivisionError")]


FLOORS = {"attic": 3, "cellar": 0}


@pytest.mark.parametrize(
    ("add", "threshold", "is_reached"),
    [
        (lambda event: event.tags["room"], cardinality(3), True),
        (lambda event: event.tags["room"], cardinality(700), True),
        (lambda event: event.tags["room"], GSet({"attic"}), True),
        (lambda event: FLOORS[event.tags["room"]], cardinality(2), True),
        (lambda event: round(event.value) * (event.value > 500), cardinality(2), True),
        (lambda event: int(event.value > 1), cardinality(4), False),
    ],
)
def test_a_threshold_is_tried_on_readings_that_reach_it(house, add, threshold, is_reached):
    @house.on_event("temperature")
    def added(event, update):
        update(house.seen, GSet.add, add(event) if event.tags["room"] != "attic" else "attic")

    house.on_threshold(house.seen, threshold)(lambda value, update: min(value, key=value))
    (line,) = lines(house)
    reached = "on_threshold of seen fails each time: TypeError: 'frozenset' object is not callable"
    assert line.startswith(reached if is_reached else "on_threshold of seen: no made-up readings")


def test_a_threshold_beyond_the_texts_that_come_is_left_aside(house):
    order = house.event("order", text=True, examples=["tea"])
    house.on_event(order)(lambda event, update: update(house.seen, GSet.add, event.value))
    house.on_threshold(house.seen, cardinality(2))(lambda value, update: None)
    found = tried(house.plan())
    assert found.wrong + found.doubts == []
    assert found.untried == ["on_threshold of seen: nothing made-up reaches it"]


def test_a_made_up_tag_of_which_a_part_is_empty_is_named(house):
    window(house, lambda event: str(int(event.tags["bed"][1:])))
    (text,) = lines(house)
    assert "ValueError: invalid literal for int() with base 10: ''" in text
    assert text.endswith("; '1' is made up: say what they have, by --tag bed=TEXT")
    assert lines(house, {"bed": "b7"}) == []
