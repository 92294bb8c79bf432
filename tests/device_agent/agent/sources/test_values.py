"""Numbers from what messages say: words, quotes, units, exactly."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_agent.agent.sources.mapping import FieldMapping
from device_agent.agent.sources.values import Conversion, EventRule, as_number, rule_of_table
from lasp_edge.folds.numbers import Resolution


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, 1),
        (False, 0),
        ("ON", 1),
        ("off", 0),
        (" Open ", 1),
        ("CLOSED", 0),
        ("true", 1),
        ("21.5", 21.5),
        (" 1e3 ", 1000.0),
        ("", None),
        ("  ", None),
        (None, None),
        ("warm", "warm"),
        ("nan", "nan"),
        ([1], [1]),
        (7, 7),
    ],
)
def test_what_a_plain_value_means(value, expected):
    found = as_number(value)
    assert (found, type(found)) == (expected, type(expected))


@given(st.decimals(-(10**6), 10**6, places=4), st.decimals(-1000, 1000, places=6))
def test_scaling_is_that_of_decimals_on_paper(value, scale):
    conversion = Conversion(scale=Fraction(scale), offset=Fraction("0.1"))
    told = float(value)  # as JSON gives it
    assert conversion.of(told) == Fraction(value * scale) + Fraction(Decimal("0.1"))
    assert conversion.of(str(value)) == conversion.of(told)


def test_a_scaled_tie_is_rounded_as_on_paper_and_not_as_doubles_are():
    tenfold = Conversion(scale=Fraction(10))
    assert Resolution("1").quantise(tenfold.of(2.15)) == 22  # 21.5; the double is 21.4999...
    assert Resolution("1").quantise(2.15 * 10) == 22
    assert Resolution("1").quantise(tenfold.of(1.005)) == 10
    assert Resolution("0.01").quantise(Conversion(scale=Fraction(1, 10)).of(0.35)) == 4
    assert Resolution("0.01").quantise(0.35 * 0.1) == 3  # what doubles would give


def test_fahrenheit_becomes_celsius():
    rule = rule_of_table("t", {"field": "temp_f", "scale": "5/9", "offset": "-160/9"})
    batch = FieldMapping({"t": rule}).batch("s", [{"temp_f": 70.7}, {"temp_f": "32"}])
    assert batch.values == [Fraction("21.5"), 0]


def test_words_of_a_mapping_come_before_ours_and_are_not_scaled():
    rule = rule_of_table("door", {"values": {"open": 0, "tilted": 2, "true": 5}, "scale": 3})
    values = FieldMapping({"door": rule}).batch(
        "s", [{"door": word} for word in ("open", "tilted", True, "closed", 7)]
    )
    assert values.values == [0, 2, 5, 0, 21]


def test_what_is_not_finite_stays_as_it_is_and_a_huge_number_is_no_trouble():
    conversion = Conversion(scale=Fraction(1, 3))
    assert str(conversion.of(float("nan"))) == "nan"
    assert conversion.of(10**400) == Fraction(10**400, 3)
    assert conversion.of(1e300) == Fraction(10**300, 3)
    assert conversion.of(None) is None


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ({"feild": "x"}, 'event t has no key "feild"; did you mean "field"?'),
        ({"field": 3}, "event t, field: a text is needed, not 3"),
        ({"required": "yes"}, "event t, required: true or false is needed, not 'yes'"),
        ({"scale": "ten"}, "event t, scale: a number or decimal text"),
        ({"offset": True}, "event t, offset: a number or decimal text"),
        ({"values": ["a"]}, "event t, values: a table WORD = NUMBER"),
        ({"values": {"a": "b"}}, "event t, values, a: a number"),
    ],
)
def test_a_rule_that_means_nothing_is_refused(table, reason):
    with pytest.raises(ValueError, match=reason.replace("?", r"\?")):
        rule_of_table("t", table)


def test_a_required_event_that_is_missing_is_a_missing_value():
    rules = {"t": EventRule("t", required=True), "h": EventRule("h")}
    batch = FieldMapping(rules).batch("s", [{"h": 1}, {"t": 2}])
    assert list(zip(batch.names, batch.values, strict=True)) == [("t", None), ("h", 1), ("t", 2)]
    assert batch.refused == {}
