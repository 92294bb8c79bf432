"""What is said of an error of a user's function: a tag that is missing is named with its event."""

import pytest

from crdts import GSet
from lasp_edge import Program
from lasp_edge.event import Event
from lasp_edge.reasons import reason_of

FLOOR = "floor"
NAMES = {"attic": 3}
HINT = ": warm has no such tag; use --with-tag {0}=TEXT or tags.get('{0}', '') ("


def of_tags(tags):
    return tags["room"]


@pytest.mark.parametrize(
    ("function", "begin"),
    [
        (lambda event: event.tags["room"], "KeyError: 'room'" + HINT.format("room")),
        (lambda event: of_tags(event.tags), "KeyError: 'room'" + HINT.format("room")),
        (lambda event: event.tags[FLOOR], "KeyError: 'floor'" + HINT.format("floor")),
        (lambda event: NAMES[event.tags["house"]], "KeyError: 'oak' ("),
        (lambda event: NAMES[event.value], "KeyError: 21.5 ("),
        (lambda event: {}.popitem()[event], "KeyError: 'popitem(): dictionary is empty' ("),
        (lambda event: {}[event.tags["house"] and "house"], "KeyError: 'house' ("),
    ],
    ids=("key", "helper", "global", "of a tag", "of a value", "popitem", "of a dict"),
)
def test_only_a_tag_that_is_missing_is_taken_for_one(function, begin):
    with pytest.raises(KeyError) as raised:
        function(Event("warm", 21.5, 1, "pi-1", {"house": "oak"}))
    assert reason_of(raised.value).startswith(begin)


def test_an_output_that_time_brought_has_its_key_in_place_of_tags():
    with pytest.raises(KeyError) as raised:
        of_tags_of(Event("stay", 21.5, 1, "", {}, "attic"))
    why = "KeyError: 'room': stay has no such tag; use event.key or tags.get('room', '') ("
    assert reason_of(raised.value).startswith(why)


def of_tags_of(event):
    return event.tags["room"]


def test_what_our_own_code_names_is_no_tag_of_a_users():
    code = compile("def see(event, f):\n    return f(event) or '1'", is_ours_file(), "exec")
    found: dict = {}
    exec(code, found)
    with pytest.raises(KeyError) as raised:
        found["see"](Event("warm", 21.5, 1, "pi-1", {"kind": "1"}), lambda e: NAMES[e.tags["kind"]])
    assert reason_of(raised.value).startswith("KeyError: '1' (")


def is_ours_file():
    return reason_of.__code__.co_filename


def test_a_mutator_that_was_called_is_to_be_given():
    with pytest.raises(TypeError) as raised:
        GSet.add("attic")
    assert ": let update call it, as in update(VARIABLE, GSet.add, ..) (" in reason_of(raised.value)


def test_a_variable_is_changed_by_update_alone():
    seen = Program("doors").declare(GSet(), "seen")
    with pytest.raises(AttributeError, match="seen changes by update alone: write update"):
        seen.add("attic")
    with pytest.raises(AttributeError, match="'Variable' object has no attribute 'nothing'"):
        _ = seen.nothing
