"""Folds of several fields of an event, over events, joins and scans, against plain Python."""

from statistics import correlation, linear_regression

import pytest

from lasp_edge import Column, Op, Program, folds, scans
from lasp_edge.testing import check_fold, replay

START_S = 1_764_028_800
POINTS = [(10.0, 3), (12.5, 1), (11.25, 4), (9.75, 2), (14.0, 7)]
BOTH = {"steps": ("0.01", "1")}


def first(event):
    return event.value[0]


def second(event):
    return event.value[1]


class Spent(folds.Fields):
    """What was paid: the price by the amount."""

    name, parts, count = "spent", ("spent",), 2
    columns = (Column("spent_q", Op.SUM),)

    def lift_fields(self, price, amount):
        return (price * amount,)

    def lower(self, partial, resolution):
        return {"spent": self.steps[0].real(partial[0])}


def trades(scan=None):
    program = Program("market")
    price = program.event("price", resolution="0.01", unit="€")
    amount = program.event("amount", resolution="1")
    both = program.scan(
        "both", source=[price, amount], scan=scans.as_of(price, amount), per_device=True
    )
    for fold in (folds.weighted_mean, folds.correlation, folds.regression, Spent):
        made = fold(first, second, **BOTH)
        program.window(made.name, source=both, fold=made, size_s=3600)
    return program


@pytest.mark.parametrize("faults", [(), "rough"])
def test_each_gives_its_definition(faults):
    given = [
        ("pi-1", name, value, START_S + 60 * n)
        for n, point in enumerate(POINTS)
        for name, value in zip(("price", "amount"), point, strict=True)
    ]
    found = replay(trades(), given, faults=faults, seed=2)
    assert found.failures == []
    xs, ys = zip(*POINTS, strict=True)
    weighted = sum(x * y for x, y in POINTS)
    (row,) = found.window("weighted_mean")
    assert row["weighted_mean"] == pytest.approx(weighted / sum(ys))
    assert found.window("spent")[0]["spent"] == weighted
    (row,) = found.window("correlation")
    assert row["correlation"] == pytest.approx(correlation(xs, ys))
    (row,) = found.window("regression")
    assert (row["slope"], row["intercept"]) == pytest.approx(linear_regression(xs, ys))


def test_the_fields_of_an_event_are_what_functions_give_of_it():
    program = Program("market")
    price = program.event("price", resolution="0.01")
    fold = folds.weighted_mean(
        lambda event: event.value, lambda event: int(event.tags["amount"]), **BOTH
    )
    given = {"source": price, "size_s": 60, "key": lambda event: event.tags["what"]}
    program.window("vwap", fold=fold, where=lambda event: event.value > 1, **given)
    found = replay(
        program,
        [
            ("pi-1", "price", 10.0, START_S, {"what": "a", "amount": "3"}),
            ("pi-2", "price", 12.0, START_S + 1, {"what": "a", "amount": "1"}),
            ("pi-2", "price", 1.0, START_S + 2, {"what": "a", "amount": "9"}),
            ("pi-2", "price", 7.0, START_S + 3, {"what": "b", "amount": "0"}),
        ],
        faults="rough",
    )
    rows = {row["key"]: row["weighted_mean"] for row in found.window("vwap")}
    assert rows == {"a": 10.5, "b": None}


def test_a_field_that_fails_leaves_its_event_out_and_says_so():
    program = Program("market")
    price = program.event("price", resolution="0.01")
    fold = folds.weighted_mean(
        lambda event: event.value, lambda event: 1 / (event.value - 2), **BOTH
    )
    program.window("w", source=price, fold=fold, size_s=60)
    found = replay(program, [("a", "price", value, START_S + value) for value in (2, 3)])
    assert [row["weighted_mean"] for row in found.window("w")] == [3.0]
    assert "ZeroDivisionError" in " ".join(found.failures)


@pytest.mark.parametrize("made", [folds.weighted_mean, folds.correlation, folds.regression, Spent])
def test_it_keeps_the_laws_and_is_read_without_its_functions(made):
    fold = made(first, second, **BOTH)
    check_fold(fold)
    if fold.is_built_in:
        read = folds.fold_of(fold.description())
        assert read.lower(fold.lift(7), read.steps[0]) == fold.lower(fold.lift(7), read.steps[0])


def test_what_has_single_numbers_takes_no_fold_of_fields():
    program = trades()
    for refused in (folds.struct, lambda **parts: scans.sessions(9, parts["one"])):
        with pytest.raises(ValueError, match="takes several fields of an event"):
            refused(one=Spent(first, second, **BOTH))
    for fields, steps in (((first,), ("1",)), ((first, second), ("1",)), ((1, 2), ("1", "1"))):
        with pytest.raises(ValueError, match=r"spent: "):
            Spent(*fields, steps=steps)
    assert program.plan().windows["spent"].fold.name == "spent"
