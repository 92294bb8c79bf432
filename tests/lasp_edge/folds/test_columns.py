"""Columns: every op against its definition on plain values."""

from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lasp_edge.folds import hll
from lasp_edge.folds.columns import COUNT_LIMIT, TOTAL_LIMIT, Algebra, Column, Op
from lasp_edge.folds.packed import counts_of, packed_counts, packed_top, top_of
from lasp_edge.folds.signed import packed_values, values_of

EVERY = (
    Column("total", Op.SUM),
    Column("low", Op.MIN),
    Column("high", Op.MAX),
    Column("at_low", Op.AT_MIN, by="low"),
    Column("at_high", Op.AT_MAX, by="high"),
    Column("counts", Op.COUNTS),
    Column("top", Op.TOP, size=2),
    Column("kinds", Op.HLL, size=8),
    Column("values", Op.VALUES),
)


def lifted(sample):
    by, value = sample
    one = {value: 1}
    return (
        *(value, by, by, value, value),
        *(packed_counts(one), packed_top([value]), hll.image_of([value], 8), packed_values(one)),
    )


def oracle(samples):
    if not samples:
        return (0, None, None, None, None, b"", b"", b"", b"")
    values = [value for _, value in samples]
    return (
        sum(values),
        min(by for by, _ in samples),
        max(by for by, _ in samples),
        min(samples)[1],
        max(samples)[1],
        packed_counts({value: values.count(value) for value in values}),
        packed_top(sorted(values)[-2:]),
        hll.image_of(values, 8),
        packed_values({value: values.count(value) for value in values}),
    )


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-9, 9)), max_size=40), st.randoms())
def test_every_op_says_what_its_definition_says_in_any_grouping(samples, random):
    algebra = Algebra(EVERY)
    partials = [lifted(sample) for sample in samples] or [algebra.zero]
    while len(partials) > 1:
        a = partials.pop(random.randrange(len(partials)))
        b = partials.pop(random.randrange(len(partials)))
        partials.append(algebra.combine(a, b))
    assert partials == [oracle(samples)]
    assert algebra.within_limits(partials[0])


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_sums_of_any_number_of_columns_add_up(size):
    algebra = Algebra(tuple(Column(f"c{n}", Op.SUM) for n in range(size)))
    partials = [tuple(range(start, start + size)) for start in (3, 10, 100)]
    assert reduce(algebra.combine, partials) == tuple(map(sum, zip(*partials, strict=True)))
    taken = algebra.retract(tuple(range(size)), tuple(range(1, 3 * size, 3)))
    assert taken == tuple(place - (1 + 3 * place) for place in range(size))


def test_sums_and_counts_are_taken_back_and_nothing_else_is():
    algebra = Algebra((Column("n", Op.SUM), Column("c", Op.COUNTS)))
    assert algebra.invertible
    a, b = (5, packed_counts({1: 2})), (3, packed_counts({1: 1, 4: 1}))
    assert algebra.retract(algebra.combine(a, b), b) == a
    for op in set(Op) - {Op.SUM, Op.COUNTS, Op.VALUES}:
        assert not Algebra((Column("n", Op.SUM), Column("c", op, by="", size=8))).invertible


def test_values_are_taken_back_though_they_are_elsewhere():
    algebra = Algebra((Column("values", Op.VALUES),))
    first, second = (packed_values({5: 2, 7: 1}),), (packed_values({7: 1}),)
    here = algebra.retract(algebra.zero, second)
    assert values_of(here[0]) == {7: -1}
    assert algebra.combine(first, here) == (packed_values({5: 2}),)
    assert algebra.within_limits(here)
    for broken in (b"", b"1", here[0] * 2, here[0][:4] + (2**31).to_bytes(4, "big")):
        assert algebra.within_limits((broken,)) == (broken == b"")
    with pytest.raises(ValueError, match="value 5 with count 2147483648 is out of range"):
        algebra.combine((packed_values({5: 2**31 - 1}),), (packed_values({5: 1}),))


def test_binary_columns_are_told_from_integers():
    assert {column.op for column in EVERY if column.binary} == {
        Op.COUNTS,
        Op.TOP,
        Op.HLL,
        Op.VALUES,
    }
    assert Algebra(EVERY).zero == (0, None, None, None, None, b"", b"", b"", b"")


def test_top_keeps_to_the_size_of_its_column():
    algebra = Algebra((Column("a", Op.TOP, size=1), Column("b", Op.TOP, size=3)))
    each = [(packed_top([n]), packed_top([n])) for n in (4, 9, 7)]
    assert [top_of(part) for part in reduce(algebra.combine, each)] == [(9,), (9, 7, 4)]


@pytest.mark.parametrize(
    ("column", "valid", "invalid"),
    [
        (Column("a", Op.SUM, COUNT_LIMIT), [0, COUNT_LIMIT - 1], [COUNT_LIMIT, None, b""]),
        (Column("a", Op.MIN), [None, 1 - TOTAL_LIMIT], [-TOTAL_LIMIT, 1.0, True]),
        (Column("a", Op.MAX, 5), [None, 4, -4], [5, -5, "4"]),
        (Column("a", Op.COUNTS, 5), [b"", packed_counts({1: 4})], [packed_counts({1: 5}), None, 0]),
        (Column("a", Op.TOP, size=1), [b"", packed_top([1])], [packed_top([1, 2]), None, ()]),
        (
            Column("a", Op.HLL, size=8),
            [b"", hll.image_of([1], 8)],
            [hll.image_of([1], 9), None, "x"],
        ),
    ],
    ids=lambda each: each.op if isinstance(each, Column) else "",
)
def test_limits_tell_what_a_stranger_may_not_send(column, valid, invalid):
    algebra = Algebra((column,))
    assert [algebra.within_limits((part,)) for part in valid] == [True] * len(valid)
    assert [algebra.within_limits((part,)) for part in invalid] == [False] * len(invalid)
    assert counts_of(b"") == {}


def test_what_is_beside_an_extreme_may_be_a_time_and_not_more_than_a_total():
    for limit in (2**62, 2**500):
        algebra = Algebra((Column("t", Op.MIN), Column("v", Op.AT_MIN, limit, by="t")))
        assert algebra.within_limits((2**60, 2**62 - 1))
        assert not algebra.within_limits((2**60, 2**62))
