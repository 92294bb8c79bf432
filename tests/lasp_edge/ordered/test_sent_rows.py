"""Rows of results on their way: places as texts, rows as bytes, and the newest of several."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lasp_edge.language.declarations import StreamResult
from lasp_edge.ordered.places import place_text
from lasp_edge.ordered.plain import encoded
from lasp_edge.ordered.sent_rows import Landed, RowForm, newest_rows, packed_row, row_at, row_name

TEXTS = st.text(alphabet=' !"\\x00\\x1f{}aé', max_size=3)
INTEGERS = st.integers(-1_100, 1_100)
PLACES = st.tuples(
    INTEGERS,
    st.sampled_from(["pi", "pi-1"]),
    st.tuples(TEXTS, TEXTS, INTEGERS),
    st.lists(st.integers(0, 101), max_size=3).map(tuple),
)
FORM = RowForm((False, True))


@given(PLACES, PLACES)
def test_texts_of_places_are_ordered_as_places_are(a, b):
    texts = place_text(a), place_text(b)
    assert (texts[0] < texts[1], texts[0] == texts[1]) == (a < b, a == b)


@given(PLACES, st.sampled_from([None, (5, "on")]))
def test_a_row_comes_back_from_its_bytes(place, parts):
    said = packed_row(place, "attic", parts)
    assert FORM.within_limits((said,))
    assert row_at(place[0], place[1], said) == (place, "attic", parts)


def test_what_time_alone_brought_is_of_no_device_in_the_order():
    place = (20, "", ("left_open", "hall"), (0,))
    assert row_at(20, "pi-1", packed_row(place, "hall", (7,))).place == place


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\xc1",
        7,
        packed_row((1, "a", (), ()), "", (5,)),
        packed_row((1, "a", (), ()), "", ("on", 5)),
        packed_row((1, "a", (), ()), "", (5.5, "on")),
        encoded((True, ("x",), (-1,), "", (5, "on"))),
        encoded((True, ("x",), (0,), 7, (5, "on"))),
        encoded((True, (None,), (0,), "", (5, "on"))),
        encoded((1, ("x",), (0,), "", (5, "on"))),
        encoded((True, "x", (0,), "", (5, "on"))),
        encoded((True, ("x",), (0,), "", (5, "a" * 20_000))),
        encoded((True, ("x",), (0,), "", (5, "on")))[:-1],
        encoded((True, ("x",), (0,), "", (5, "on"))) + b"\x00",
        # 5 as a longer integer than is needed
        encoded((True, ("x",), (0,), "", (5, "on"))).replace(b"\x05", b"\xcc\x05"),
    ],
)
def test_what_is_no_row_in_its_form_is_not_taken(said):
    assert not FORM.within_limits((said,))


def test_a_result_knows_which_of_its_parts_are_texts():
    result = StreamResult("counts", (("count", "0.1"), ("word", "text")), 1)
    assert result.fold == FORM
    assert result.columns == ("count_q", "word")


@given(st.permutations(range(6)))
def test_of_a_device_the_newest_version_of_a_row_counts(order):
    place = (20, "pi-1", ("x", "", 5), (0,))
    name = row_name(place)
    versions = [(1, 9, 1), (1, 9, 7), (2, 3, 1), (2, 3, 2)]
    landed = [
        Landed("pi-1", 20, name, version, packed_row(place, "", (n,)))
        for n, version in enumerate(versions)
    ]
    landed += [landed[0], landed[0]._replace(device="pi-2")]
    found = newest_rows([landed[at] for at in order])
    assert {at[0]: row.parts for at, row in found.items()} == {"pi-1": (3,), "pi-2": (0,)}
