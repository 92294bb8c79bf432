"""Cells of items as they travel: united, and checked for what a stranger may send."""

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crdts.plain import pack
from lasp_edge.event import text_of_stream
from lasp_edge.ordered.cells import CELL_US, PRESENT, RETRACTED, Item, packed, unpacked
from lasp_edge.ordered.sent_items import ItemForm, united

TAGS = st.sampled_from(["", '{"room":"attic"}', text_of_stream("sensors/a", '{"room":"attic"}')])
STATES = st.sampled_from([PRESENT, RETRACTED])


def cells(values):
    items = st.builds(Item, st.integers(7 * CELL_US, 8 * CELL_US - 1), values, TAGS)
    return st.dictionaries(items, STATES, min_size=1, max_size=6)


NUMBERS, TEXTS = cells(st.integers(-(2**40), 2**40)), cells(st.text(max_size=5))
FORM, TEXT_FORM = ItemForm(text=False), ItemForm(text=True)


@given(NUMBERS, NUMBERS, NUMBERS)
def test_uniting_is_a_join(one, two, three):
    assert united([one, two]) == united([two, one])
    assert united([united([one, two]), three]) == united([one, united([two, three])])
    assert united([one, one]) == one


@given(NUMBERS, TEXTS)
def test_what_a_device_sends_is_in_the_form_of_its_event_and_in_no_other(numbers, texts):
    numbers, texts = (packed(numbers),), (packed(texts),)
    assert (FORM.within_limits(numbers), FORM.within_limits(texts)) == (True, False)
    assert (TEXT_FORM.within_limits(numbers), TEXT_FORM.within_limits(texts)) == (False, True)


@given(st.binary(max_size=60))
def test_what_a_stranger_sends_raises_nothing(data):
    assert FORM.within_limits((data,)) in (True, False)


GOOD = {Item(7 * CELL_US, 5, '{"room":"attic"}'): PRESENT, Item(7 * CELL_US + 1, 6, ""): PRESENT}


def columns(**changed):
    """Return a packed cell with some of its columns changed."""
    names = ("first", "unit", "steps", "values", "tags", "numbers", "retracted")
    return pack(
        list({**dict(zip(names, msgpack.unpackb(packed(GOOD)), strict=True)), **changed}.values())
    )


BAD = {
    "empty": packed({}),
    "two cells": packed({Item(1, 5, ""): PRESENT, Item(CELL_US, 5, ""): PRESENT}),
    "a text that is long": packed({Item(1, "x" * 1_025, ""): PRESENT}),
    "tags that are no JSON": columns(tags=["", "room"]),
    "tags that are not canonical": columns(tags=["", '{"b":"1","a":"2"}']),
    "tags that are no texts": columns(tags=["", '{"room":5}']),
    "tags that are a list": columns(tags=["", "[]"]),
    "a number beyond 62 bits": columns(values=[2**62, 1]),
    "a double": columns(values=[0.5, 1]),
    "another encoding": packed(GOOD) + b"\x00",
    "too many times": columns(steps=[1, 1]),
    "a mark beyond the items": columns(retracted=[2]),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_cell_is_refused(case):
    assert not FORM.within_limits((BAD[case],))
    assert not TEXT_FORM.within_limits((BAD[case],))


WHATEVER = st.sampled_from(
    [0, 1, -1, 2**62, True, None, 1.0, "", "a", b"", b"\x01", [], [1], {0: 1}]
)


@given(
    st.one_of(NUMBERS, cells(st.integers(0, 1)), TEXTS),
    st.integers(0, 6),
    st.integers(0, 3),
    st.one_of(WHATEVER, st.integers(-3, 3)),
    st.sampled_from(["replace", "remove", "repeat", "append", "whole"]),
)
def test_a_damaged_cell_is_taken_only_if_it_is_what_packing_gives(cell, column, at, other, how):
    damaged = msgpack.unpackb(packed(cell))
    chosen = damaged[column]
    if not isinstance(chosen, list) or how == "whole":
        damaged[column] = other
    elif how == "append" or not chosen:
        chosen.append(other)
    elif how == "replace":
        chosen[at % len(chosen)] = other
    elif how == "remove":
        del chosen[at % len(chosen)]
    else:
        chosen.insert(at % len(chosen), chosen[at % len(chosen)])
    data = pack(damaged)
    if FORM.within_limits((data,)) or TEXT_FORM.within_limits((data,)):
        found = unpacked(data)
        assert packed(found) == data
        assert {type(item.time_us) for item in found} == {int}
        assert len({item.time_us // CELL_US for item in found}) == 1
        assert {type(item.value) for item in found} in ({int}, {str})


def test_a_good_cell_is_taken_and_two_columns_are_not():
    assert FORM.within_limits((columns(),))
    assert not FORM.within_limits((columns(), columns()))
    assert not FORM.within_limits((5,))
