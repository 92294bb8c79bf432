"""Derived sets from anyone: what is not canonical, or is not made of shadows, is refused."""

import pytest

from crdts import DerivedSet, EWFlag, GSet, ORSet, Replica


def test_what_is_no_plain_form_is_refused():
    plain = DerivedSet({"a": GSet({1})}, [("x", frozenset({("a", 1)}))]).to_plain()
    shadows, pairs = plain
    for broken, reason in [
        ((shadows, pairs * 2), "canonical form"),
        (((), pairs), "needs the shadow of 'a'"),
        ((shadows, (("x", (("a", 2),)),)), "canonical form"),
        (((("a", ORSet()),), pairs), "needs shadows of its leaves, got ORSet"),
        ((shadows, ((1.5, (("a", 1),)),)), "an element needs"),
        (shadows, "a derived set needs a list of 2"),
    ]:
        with pytest.raises(ValueError, match=reason):
            DerivedSet.from_plain(broken)


def test_an_element_is_in_while_one_of_its_terms_is_live():
    me = Replica(1, 7, "kitchen")
    numbers = ORSet().add_many(me, [1, 2])
    (one, _), (two, _) = numbers.tokens()
    terms = [frozenset({("numbers", token)}) for token in (one, two)]
    both = DerivedSet({"numbers": numbers.shadow()}, [("x", term) for term in terms])
    assert both.value == {"x"}
    without_one = numbers | numbers.remove(me, 1)
    assert (both | DerivedSet({"numbers": without_one.shadow()})).value == {"x"}
    assert (both | DerivedSet({"numbers": (numbers | numbers.clear(me)).shadow()})).value == set()
    assert DerivedSet({"numbers": EWFlag()}, [("x", terms[0])]) == DerivedSet()
