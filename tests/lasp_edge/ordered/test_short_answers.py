"""Answers as they travel: shorter rows of an entry, and what a stranger may send in their place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lasp_edge.event import short_tags, tags_of_short, tags_text
from lasp_edge.ordered.answers import stated_at, statement
from lasp_edge.ordered.cells import CELL_US
from lasp_edge.ordered.parted import sent_at
from lasp_edge.ordered.plain import encoded
from lasp_edge.ordered.sent_outputs import OutputAt, OutputForm, packed_outputs, sent_outputs
from lasp_edge.ordered.short_answers import long_row, short_row

CELL = 2 * CELL_US
PLACE = (CELL + 5, "desk", ("end", '{"room":"attic"}', 1), (1,))
ANSWER = ("", ("a", b"basis1", (1, (3, 70)), 1, 3), "", "")
FORM = OutputForm((("end", False),))

texts = st.sampled_from(["", "a", "desk", '{"b":"c"}', "{}", '{"b": "c"}', "[1]", "\0desk"])
ties = st.just(stated_at(0).tie) | st.lists(texts | st.integers(-2, 2), min_size=1, max_size=4).map(
    lambda rest: ("\0" + str(rest[0]), *map(str, rest[1:3]), *rest[3:])
)
firsts = st.sampled_from(["a", "g", "r", "w"])
values = st.lists(st.binary(max_size=2) | st.integers(0, 3), max_size=4).map(tuple)
contents = st.none() | st.builds(
    lambda name, first, value, key: (name, (first, *value), key, ""),
    st.sampled_from(["", "", "x"]),
    firsts,
    values,
    st.sampled_from(["", "", "k"]),
)


@given(st.sampled_from([CELL, CELL + 1]), ties, st.sampled_from([(), (1,)]), contents)
def test_a_row_is_known_from_what_travels_of_it(time_us, tie, path, content):
    row = (time_us, tie, path, content)
    assert long_row(short_row(row)) == row


@given(st.dictionaries(texts, texts, max_size=3))
def test_tags_are_known_from_what_travels_of_them(tags):
    text = tags_text(tags)
    assert tags_of_short(short_tags(text)) == text


@pytest.mark.parametrize("text", ["{}", '{"b": "c"}', '{"b":"c","a":"d"}', '{"a":1}', "[1]", "x"])
def test_a_text_that_no_tags_give_stays_as_it_is(text):
    assert tags_of_short(short_tags(text)) == short_tags(text) == text


def test_an_answer_and_a_statement_travel_short_and_are_what_they_were():
    outputs = {stated_at(CELL): statement([b"basis2"], (1, 3)), sent_at(PLACE): ANSWER}
    packed = packed_outputs(outputs)
    assert sent_outputs(packed) == outputs
    assert FORM.within_limits((packed,))
    assert len(packed) < len(encoded([(*at, each) for at, each in outputs.items()])) - 25


LONG = (*sent_at(PLACE), ANSWER)
SHORT = short_row(LONG)
HOSTILE = {
    "a long answer": LONG,
    "a long statement": (*stated_at(CELL), statement([b"basis2"], (1, 3))),
    "no device": (SHORT[0], None, *SHORT[2:]),
    "no name": (*SHORT[:2], 7, *SHORT[3:]),
    "a name without a value": (*SHORT[:3], ("room",), *SHORT[4:]),
    "tags that are no text": (*SHORT[:3], ("room", 5), *SHORT[4:]),
    "tags that could be shorter": (*SHORT[:3], '{"room":"attic"}', *SHORT[4:]),
    "a text in place of a number": (*SHORT[:4], "x", *SHORT[5:]),
    "no path": (*SHORT[:5], 1, *SHORT[6:]),
    "a cell that is no number": ("x", b"basis2", 1, 3),
    "a cell too far": (2**62, b"basis2", 1, 3),
    "nothing": (),
    "a number": (5,),
    "two": (5, 6),
}


@pytest.mark.parametrize("row", HOSTILE.values(), ids=HOSTILE)
def test_a_strangers_row_is_not_in_the_form(row):
    assert FORM.within_limits((encoded([SHORT]),))
    assert not FORM.within_limits((encoded([row]),))


def test_outputs_that_are_no_answers_travel_as_they_did():
    at = OutputAt(CELL + 1, ("end", "", 5), (0,))
    content = ("", ("a", b"basis1", (), 1, 3), "", "")
    assert packed_outputs({at: content}) == encoded([(*at, content)])
