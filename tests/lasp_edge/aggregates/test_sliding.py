"""Sliding: every structure equals the recomputation, whatever comes and goes."""

from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lasp_edge import folds
from lasp_edge.aggregates import sliding
from lasp_edge.folds.columns import Column, Op
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import Resolution
from tests.lasp_edge.support_folds import ONE_EACH


class Coldest(Fold):
    """A user's fold: the coldest sample, when it was, and how many there are."""

    name, parts = "coldest", ("coldest",)
    columns = (
        Column("least_q", Op.MIN),
        Column("when_s", Op.AT_MIN, by="least_q"),
        Column("many", Op.SUM),
    )

    def lift(self, value, time_us=0):
        return (value, time_us, 1)

    def lower(self, partial, resolution):
        return {"coldest": partial[1]}


class Clipped(Fold):
    """A user's fold with an inverse of its own: a total of what is above 0."""

    name, parts = "clipped", ("clipped",)
    columns = (Column("above_q", Op.SUM), Column("many", Op.SUM))

    def lift(self, value, time_us=0):
        return (max(value, 0), 1)

    def lower(self, partial, resolution):
        return {"clipped": partial[0]}


FOLDS = {name: fold.at(Resolution("0.01")) for name, fold in ONE_EACH.items()} | {
    "coldest": Coldest(),
    "clipped": Clipped(),
}
every_fold = pytest.mark.parametrize("fold", FOLDS.values(), ids=FOLDS)


def recomputed(fold, partials):
    return reduce(fold.combine, partials, fold.zero)


values = st.integers(-5, 5)
puts = st.tuples(st.integers(0, 12), st.none() | values)


@every_fold
def test_a_total_by_key_equals_the_recomputation(fold):
    @given(st.lists(puts, max_size=40))
    def check(asked):
        total, held = sliding.keyed(fold), {}
        for n, (key, value) in enumerate(asked):
            if value is None:
                total.discard(key)
                held.pop(key, None)
            else:
                held[key] = fold.lift(value, n % 3)
                total.put(key, held[key])
            assert total.total == recomputed(fold, held.values())
            assert len(total) == len(held)

    check()


@every_fold
def test_a_queue_equals_the_recomputation(fold):
    @given(st.lists(st.none() | values, max_size=60))
    def check(asked):
        queue, held = sliding.TwoStacks(fold), []
        for n, value in enumerate(asked):
            if value is not None:
                held.append(fold.lift(value, n % 3))
                queue.push(held[-1])
            elif held:
                assert queue.pop() == held.pop(0)
            else:
                with pytest.raises(IndexError, match="empty queue"):
                    queue.pop()
            assert queue.total == recomputed(fold, held)
            assert len(queue) == len(held)

    check()


@pytest.mark.parametrize(
    ("fold", "by_key"),
    [
        (folds.mean(), sliding.RetractedKeys),
        (folds.quantile(0.5), sliding.RetractedKeys),
        (folds.max(), sliding.TreeOfKeys),
        (folds.distinct(), sliding.TreeOfKeys),
        (folds.struct(mean=folds.mean(), max=folds.max()), sliding.TreeOfKeys),
    ],
    ids=["mean", "quantile", "max", "distinct", "struct"],
)
def test_the_structure_is_chosen_by_what_the_fold_declares(fold, by_key):
    assert type(sliding.keyed(fold)) is by_key


class Counting(Fold):
    """The max, counting how often it is combined."""

    name, parts, columns = "counting", ("max",), folds.max().columns

    def __init__(self):
        self.combined = 0

    def lift(self, value, time_us=0):
        return (value,)

    def lower(self, partial, resolution):
        return {"max": partial[0]}

    def combine(self, a, b):
        self.combined += 1
        return super().combine(a, b)


def test_one_changed_key_of_ten_thousand_costs_the_logarithm():
    fold = Counting()
    total = sliding.keyed(fold)
    for key in range(10_000):
        total.put(key, (key,))
    fold.combined = 0
    total.put(77, (10**6,))
    assert total.total == (10**6,)
    total.discard(77)
    assert total.total == (9_999,)
    assert fold.combined <= 3 * 14
    for key in range(10_000):
        total.discard(key)
    assert (len(total), total.total) == (0, (None,))
    assert fold.combined <= 10_000 * 3 * 14


def test_a_queue_costs_three_combines_a_sample():
    fold = Counting()
    window = sliding.TwoStacks(fold)
    for n in range(5_000):
        window.push((n % 997,))
        if len(window) > 100:
            window.pop()
    assert fold.combined <= 3 * 5_000
