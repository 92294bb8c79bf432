"""Plain values: what may be kept, and when two are the same."""

import pytest

from lasp_edge.ordered.plain import PLAIN_BYTES, check_plain, decoded, encoded, same

PLAIN = [
    *(0, 1, -1, 2**63 - 1, -(2**63), 1.5, -0.0, "", "é", b"\0", True, False, None, ()),
    (1, ("a", (2.5, None)), b"x"),
]


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_a_plain_value_comes_back_as_it_was(value):
    check_plain(value)
    back = decoded(encoded(value))
    assert (type(back), back, str(back)) == (type(value), value, str(value))


@pytest.mark.parametrize("a", PLAIN, ids=repr)
def test_only_a_value_itself_is_the_same(a):
    assert [b for b in PLAIN if same(a, b)] == [b for b in PLAIN if b is a]


class Level(int):
    pass


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ([1, 2], "a tuple in place of a list"),
        ((1, [2]), "a tuple in place of a list"),
        ({}, "not a dict"),
        (Level(1), "not a Level"),
        (float("nan"), "a finite number"),
        (float("inf"), "a finite number"),
        (2**63, "64 bits"),
        (("a", (1, 2**63)), "64 bits"),
        (("a", (1, float("nan"))), "a finite number"),
        ("x" * PLAIN_BYTES, f"at most {PLAIN_BYTES} bytes"),
        ((((((2**62,) * 6,) * 6,) * 6),) * 60, f"at most {PLAIN_BYTES} bytes"),
    ],
    ids=[
        *("list", "list within", "dict", "subclass", "nan", "inf"),
        *("long", "long within", "nan within", "large", "many within"),
    ],
)
def test_what_is_not_plain_is_refused(value, why):
    with pytest.raises(ValueError, match=why):
        check_plain(value)


def test_half_a_character_is_no_text():
    with pytest.raises(UnicodeEncodeError):
        check_plain("\ud800")


def test_tuples_within_each_other_have_a_limit():
    value = ()
    for _ in range(20):
        value = (value,)
    with pytest.raises(ValueError, match="within each other"):
        check_plain(value)


def test_the_limit_is_that_of_the_encoding():
    check_plain((0,) * (PLAIN_BYTES - 3))
    with pytest.raises(ValueError, match="bytes may be kept"):
        check_plain((0,) * (PLAIN_BYTES - 2))
