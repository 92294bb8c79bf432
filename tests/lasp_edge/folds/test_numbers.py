"""Quantising: the fast ways give what the definition says, and nothing else gets in."""

from decimal import Decimal
from fractions import Fraction
from math import inf, nextafter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lasp_edge.folds.numbers import KEPT_VALUES, LIMIT, PlausibleRange, Refused, Resolution

STEPS = ("0.01", "0.1", "5", "0.3", "1e-6", "1", "1e30", "1e-30")
resolutions = st.sampled_from(STEPS).map(Resolution)
quantised = st.integers(-LIMIT + 1, LIMIT - 1)


@st.composite
def near_halves(draw):
    """A double beside the middle of two steps, where rounding is decided."""
    step = draw(resolutions)
    exact = (draw(quantised) + Fraction(1, 2)) * step.exact
    ulps = draw(st.integers(-3, 3))
    near = float(exact)
    for _ in range(abs(ulps)):
        near = next_double(near, up=ulps > 0)
    return step, near


def next_double(value, *, up):
    return nextafter(value, inf if up else -inf)


values = st.one_of(
    st.floats(),
    st.floats(-1e4, 1e4),
    st.floats(-3e9, 3e9),
    st.integers(),
    st.integers(-(10**12), 10**12),
    st.booleans(),
    st.none(),
    st.fractions(),
    st.decimals(),
    st.text(max_size=3),
)


def outcome(quantise, value):
    try:
        return quantise(value)
    except Refused as refused:
        return f"refused: {refused}"


@given(resolutions, values)
@example(Resolution("0.01"), 0.125)
@example(Resolution("0.01"), float(LIMIT) / 100)
@example(Resolution("1"), LIMIT - 0.5)
@example(Resolution("1"), LIMIT - 0.500001)
@example(Resolution("1"), -LIMIT + 1)
@example(Resolution("1"), 10**400)
@example(Resolution("1"), float("inf"))
@example(Resolution("1"), float("nan"))
@example(Resolution("1"), Decimal("sNaN"))
@example(Resolution("0.01"), -0.0)
def test_fast_way_equals_the_definition(resolution, value):
    fast, defined = (
        outcome(way, value) for way in (resolution.quantise, resolution.quantise_exactly)
    )
    assert fast == defined
    assert type(fast) in {int, str}


@given(near_halves())
def test_rounding_is_right_beside_every_half(drawn):
    resolution, value = drawn
    expected = round(Fraction(value) / resolution.exact)
    got = outcome(resolution.quantise, value)
    assert got == (
        expected if abs(expected) < LIMIT else outcome(resolution.quantise_exactly, value)
    )


@given(resolutions, st.lists(values, max_size=20))
def test_column_equals_one_by_one(resolution, column):
    together = [
        f"refused: {item}" if isinstance(item, Refused) else item
        for item in resolution.quantise_column(column)
    ]
    assert together == [outcome(resolution.quantise, value) for value in column]


@given(resolutions, quantised)
@example(Resolution("0.3"), LIMIT - 1)
@example(Resolution("1e-6"), 1 - LIMIT)
def test_real_value_quantises_back(resolution, steps):
    assert resolution.quantise(resolution.real(steps)) == steps


@given(resolutions, st.integers(-(2**80), 2**80))
def test_real_value_is_the_nearest_double(resolution, steps):
    assert resolution.real(steps) == float(steps * resolution.exact)


def test_half_goes_to_even():
    whole = Resolution("1")
    assert [whole.quantise(x) for x in (0.5, 1.5, 2.5, -0.5, -1.5)] == [0, 2, 2, 0, -2]


def test_real_readings_lose_their_float_noise():
    assert Resolution("0.01").quantise(18.899999618530273) == 1890


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "missing value"),
        (True, "not a number"),
        ("21.5", "not a number"),
        ([1], "not a number"),
        (1 + 0j, "not a number"),
        (float("nan"), "not finite"),
        (float("-inf"), "not finite"),
        (Decimal("NaN"), "not finite"),
        (Decimal("-Infinity"), "not finite"),
        (2**31, "coarser resolution"),
        (-(2**31), "coarser resolution"),
        (1e300, "coarser resolution"),
        (Decimal("1e999999999"), "coarser resolution"),
    ],
)
def test_what_is_no_reading_is_refused_with_its_reason(value, reason):
    with pytest.raises(Refused, match=reason):
        Resolution("1").quantise(value)
    (refused,) = Resolution("1").quantise_column([value])
    assert isinstance(refused, Refused)
    assert reason in str(refused)


def test_tiny_decimal_is_zero_at_once():
    assert Resolution("1e-30").quantise(Decimal("1e-999999999")) == 0


@pytest.mark.parametrize(
    "text",
    ["", "0", "-1", "0.0", "abc", "nan", "sNaN", "inf", "1e31", "1e-31", "1/3", "1e999999999"],
)
def test_a_step_that_is_no_positive_decimal_is_a_value_error(text):
    with pytest.raises(ValueError, match=r"resolution: .* is needed, not"):
        Resolution(text)


@pytest.mark.parametrize(
    "text",
    ["1e-999999999", 0.01, 1, None, b"1"],
    ids=["tiny", "float", "int", "none", "bytes"],
)
def test_a_tiny_step_or_one_that_is_no_text_is_a_value_error(text):
    with pytest.raises(ValueError, match=r"resolution: .* is needed, not"):
        Resolution(text)


def test_resolutions_are_equal_by_what_they_are():
    assert Resolution("0.10") == Resolution("1e-1")
    assert Resolution("0.10").canonical == "1/10" == Resolution(" 1e-1 ").canonical
    assert len({Resolution("5"), Resolution("5.0"), Resolution("0.5")}) == 2
    assert Resolution("1") != 1


SENSOR = PlausibleRange(Resolution("0.1"), -40, "60.05")


@given(st.lists(st.one_of(st.integers(-500, 700).map(lambda tenths: tenths / 10), st.none())))
def test_a_plausible_range_refuses_the_same_alone_and_in_a_column(column):
    together = [
        f"refused: {item}" if isinstance(item, Refused) else item
        for item in SENSOR.quantise_column(column)
    ]
    assert together == [outcome(SENSOR.quantise, value) for value in column]
    assert SENSOR.quantise_certain(column) in (None, together)


def test_a_sensor_that_is_broken_or_just_switched_on_is_refused():
    assert [SENSOR.quantise(value) for value in (-40, 60, 21.57)] == [-400, 600, 216]
    for value in (-127, 85, -40.1, 60.1):
        with pytest.raises(Refused, match=r"outside of -40 to 60\.05"):
            SENSOR.quantise(value)
    with pytest.raises(Refused, match="below 0"):
        PlausibleRange(Resolution("1"), least=0).quantise(-1)


@pytest.mark.parametrize(
    ("least", "most", "why"),
    [(1, 0, "no value lies"), ("a", None, "least: a number"), (None, True, "most: a number")],
)
def test_a_range_has_to_hold_a_value(least, most, why):
    with pytest.raises(ValueError, match=why):
        PlausibleRange(Resolution("1"), least, most)


@pytest.mark.parametrize(
    ("step", "bound", "coarser"),
    [
        ("1e-6", 80_000, "0.0001"),
        ("0.01", -1e9, "1"),
        ("1", LIMIT, "10"),
        ("1e-9", 2.147483648, "1e-8"),
    ],
)
def test_a_range_that_no_reading_reaches_is_refused_with_the_step_that_fits(step, bound, coarser):
    way_out = f"choose a resolution of {Decimal(coarser):f} or coarser"
    for bounds in ({"least": bound}, {"most": bound}):
        with pytest.raises(ValueError, match=f"={bound}: a reading has fewer .*{way_out}"):
            PlausibleRange(Resolution(step), **bounds)
        assert PlausibleRange(Resolution(coarser), **bounds).span
    assert LIMIT * Fraction(coarser) > abs(Fraction(str(bound))) >= LIMIT * Fraction(coarser) / 10


@pytest.mark.parametrize("distinct", [3, KEPT_VALUES, KEPT_VALUES + 1, 3 * KEPT_VALUES])
def test_values_that_come_again_are_quantised_as_at_first(distinct):
    step = Resolution("0.01")
    column = [number / 7 for number in range(distinct)]
    truth = [Resolution("0.01").quantise_exactly(value) for value in column]
    for start in range(0, distinct, 500):
        part = slice(start, start + 700)
        assert step.quantise_column(column[part]) == truth[part]
    assert step.quantise_certain([*column, 0, -0.0]) == [*truth, 0, 0]
    assert step.quantise_certain([*column[:3], inf]) is None
    assert step.quantise_certain([*column[:3], True]) is None
    assert step.quantise_certain(column) == truth


@given(resolutions, values)
@example(Resolution("0.001"), 1e300)
@example(Resolution("1"), Decimal("1e999999999"))
@example(Resolution("1"), 10**400)
@example(Resolution("1e-30"), 1e300)
def test_a_value_of_any_size_is_rounded_as_a_reading_is(resolution, value):
    rounded, known = outcome(resolution.rounded, value), outcome(resolution.nearest, value)
    if "coarser resolution" not in str(known):
        assert rounded == known
    elif rounded != "refused: not finite":
        assert rounded == float(round(Fraction(value) / resolution.exact) * resolution.exact)
    else:
        assert abs(Fraction(value)) > 10**300 if type(value) is not Decimal else value > 1
