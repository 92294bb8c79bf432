"""Events of texts: what is made up for them, and the texts that a program says come."""

import json

import pytest
from hypothesis import HealthCheck, given, settings

from crdts import GSet
from lasp_edge import Program, folds, scans
from lasp_edge.checking.whole import all_tried
from lasp_edge.testing import check_program, replay
from lasp_edge.testing.strategies import readings
from simulations.simulate.sampled_run import sampled_run
from simulations.world.scenario import Scenario

TEXTS = ['{"room": "attic", "litres": 3}', '{"room": "hall", "litres": 4}']


def taps(examples=()):
    program = Program("taps")
    tap = program.event("tap", text=True, examples=examples)
    seen = program.declare(GSet(), "seen")
    of = lambda event: json.loads(event.value)  # noqa: E731 - as users write

    @program.on_event(tap)
    def drawn(event, update):
        update(seen, GSet.add, of(event)["room"])

    litres = program.map(tap, lambda event: of(event)["litres"], "litres", resolution="1")
    program.window("by_room", source=litres, fold=folds.sum(), size_s=60)
    return program


def test_texts_that_the_functions_cannot_read_are_named_with_what_to_write():
    found = all_tried(taps().plan())
    assert any(
        "drawn of event tap fails each time: JSONDecodeError" in line for line in found.wrong
    )
    assert found.doubts[-1] == (
        "the readings of 'tap' are made-up texts, such as 'open'; if others come, say which: "
        'event("tap", text=True, examples=[..])'
    )


def test_a_program_is_run_on_the_texts_that_it_says_come():
    found = all_tried(taps(TEXTS).plan())
    assert (found.wrong, found.doubts) == ([], [])
    check_program(taps(TEXTS))


def test_a_function_that_fails_for_one_of_them_is_found():
    found = all_tried(taps([*TEXTS, '{"room": "hall"}']).plan())
    assert any("KeyError: 'litres'" in line for line in found.wrong + found.doubts)


def test_simulated_devices_read_these_texts_and_no_others():
    run = sampled_run(taps(TEXTS).plan(), Scenario(seed=1, size=2, steps=60), every_steps=2)
    assert (run.trouble, run.failures, run.counts_why) == ([], [], False)
    windows, differing = run.compared.of("window")
    assert windows > 0
    assert differing == 0


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(drawn=readings(taps(TEXTS)))
def test_drawn_readings_are_of_these_texts(drawn):
    assert {value for _, _, value, *_ in drawn} <= set(TEXTS)
    assert replay(taps(TEXTS), drawn).failures == []


def test_a_filter_that_no_made_up_text_passes_says_what_to_write():
    def marked(**more):
        program = Program("marked")
        line = program.event("line", text=True, **more)
        urgent = program.filter(line, lambda event: event.value.isupper(), "urgent")
        last = program.scan("last", source=urgent, scan=scans.changes(), per_device=True)
        program.result(last, parts={"line": "text"})
        return all_tried(program.plan())

    assert any("examples=[..]" in line for line in marked().doubts)
    assert marked(examples=["FIRE", "calm"]).doubts == []


def test_examples_are_no_part_of_what_a_program_means():
    one, other = taps(TEXTS).plan(), taps(TEXTS[:1]).plan()
    assert one.digest == other.digest
    assert one.events == other.events


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"text": True, "examples": "on"}, r"examples=\['on'\]"),
        ({"text": True, "examples": [1]}, "texts are needed, such as"),
        ({"text": True, "examples": ["a" * 1_025]}, "of at most 1,024 bytes"),
        ({"resolution": "1", "examples": ["on"]}, "examples are of texts: write text=True"),
    ],
)
def test_examples_that_cannot_be_are_refused(arguments, text):
    with pytest.raises(ValueError, match=f"event 'op': examples.*{text}|event 'op': {text}"):
        Program("p").event("op", **arguments)
