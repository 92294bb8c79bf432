"""Local folds: whatever came and went, the partial is that of what is held."""

from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crdts import BoundedLWWSet, Replica
from lasp_edge import folds
from lasp_edge.aggregates import local
from lasp_edge.aggregates.local import ElementsFold, FoldError, WindowFold, WindowFolds
from lasp_edge.folds.columns import Column, Op
from lasp_edge.folds.fold import Fold

ME = Replica(1, 7, "me")
FOLDS = [folds.mean(), folds.max(), folds.top(2), folds.last()]


class Picky(Fold):
    """A user's fold that fails on 13."""

    name, parts = "picky", ("total",)
    columns = (Column("total_q", Op.SUM),)

    def lift(self, value, time_us=0):
        if value == 13:
            raise RuntimeError("13")
        return (value,)

    def lower(self, partial, resolution):
        return {"total": partial[0]}


def refolded(fold, state):
    return fold.lift_column(state.values(), [time_us for time_us, _, _ in state.samples()])


@pytest.mark.parametrize("fold", FOLDS, ids=repr)
def test_a_window_folds_to_what_folding_anew_gives(fold, monkeypatch):
    monkeypatch.setattr(local, "SLIDE_FROM", 8)

    @settings(max_examples=40)
    @given(st.lists(st.lists(st.integers(-99, 99), min_size=1, max_size=30), max_size=20))
    def check(batches):
        state, window = BoundedLWWSet(bound=12), WindowFold(fold)
        for n, values in enumerate(batches):
            delta = state.add_many(ME, values, [n] * len(values))
            before = window.partial
            changed = window.update(state, state.join_changes(delta))
            assert window.partial == refolded(fold, state)
            assert changed == (window.partial != before)

    check()


def test_a_window_with_a_hole_keeps_its_partial():
    writer, state, window = BoundedLWWSet(bound=3), BoundedLWWSet(bound=3), WindowFold(folds.sum())
    deltas = []
    for value in (1, 2, 4):
        deltas.append(writer.add(ME, value, 0))
        writer |= deltas[-1]
    partials = []
    for at in (0, 2, 1):
        window.update(state, state.join_changes(deltas[at]))
        partials.append(window.partial)
    assert partials == [(1,), (1,), (7,)]


def test_a_fold_that_failed_is_tried_anew_with_all_samples():
    state, kept = BoundedLWWSet(bound=2), WindowFolds({"samples": {"total": Picky()}})
    changes = []
    for value in (5, 13, 6, 7):
        moved = state.join_changes(state.add(ME, value, 0))
        changes += kept.refold({"samples": {"": moved}}, {"samples": {"": state}})
    assert changes == [("total", "", (5,)), ("total", "", (13,))]
    assert [target for target, _ in kept.take_failures()] == ["total"] * 2
    assert kept.take_failures() == []
    assert kept.partials("total") == {"": (13,)}


def test_a_key_that_is_gone_is_told_once():
    kept = WindowFolds({"samples": {"count": folds.count(), "sum": folds.sum()}})
    state = BoundedLWWSet(bound=2)
    state |= state.add(ME, 5, 0)
    changes = list(kept.refold({"samples": {"hall": None}}, {"samples": {"hall": state}}))
    assert changes == [("count", "hall", (1,)), ("sum", "hall", (5,))]
    assert list(kept.refold({"samples": {"hall": None}}, {"samples": {"hall": state}})) == []
    for again in (True, False):
        changes = list(kept.refold({"samples": {"hall": None}}, {"samples": {}}))
        assert changes == ([("count", "hall", None), ("sum", "hall", None)] if again else [])
    assert kept.partials("sum") == {}


class Never(Picky):
    """A fold of which no partial is valid."""

    def within_limits(self, partial):
        return False


def test_a_partial_out_of_range_is_refused_and_the_one_before_stays():
    window, state = WindowFold(Never()), BoundedLWWSet(bound=2)
    state |= state.add(ME, 5, 0)
    with pytest.raises(FoldError):
        window.update(state, None)
    assert window.partial == (0,)


@pytest.mark.parametrize("fold", FOLDS, ids=repr)
def test_elements_in_any_order_fold_to_what_folding_anew_gives(fold):
    @given(st.lists(st.tuples(st.integers(-9, 9), st.booleans()), max_size=30))
    def check(steps):
        kept, held = ElementsFold(fold, lambda n: (n, n)), set()
        for element, comes in steps:
            before = kept.partial
            if comes != (element in held):
                assert kept.move([element] if comes else [], [] if comes else [element]) == 0
                held ^= {element}
            assert kept.update() == (kept.partial != before)
            assert kept.partial == reduce(
                fold.combine, [fold.lift(n, n) for n in sorted(held)], fold.zero
            )

    check()


def test_elements_that_a_fold_cannot_take_are_counted_and_left_out():
    kept = ElementsFold(Picky(), lambda element: element)
    assert kept.move([5, 13, 7], []) == 1
    assert kept.update()
    assert kept.move([], [13, 5]) == 0
    assert kept.update()
    assert kept.partial == (7,)
