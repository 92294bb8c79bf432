"""The laws find planted faults, show the smallest case, and let sound folds pass."""

from random import Random

import pytest

from crdts import BoundedLWWSet
from lasp_edge import Column, Fold, Op, folds
from lasp_edge.checking import laws
from lasp_edge.checking.programs import folds_of, verdicts
from lasp_edge.checking.search import smallest_broken
from lasp_edge.folds.numbers import Resolution
from lasp_edge.language.program import Program
from tests.lasp_edge.checking import planted


def broken(fold):
    return {verdict.law: verdict.broken for verdict in verdicts(fold) if verdict.broken}


@pytest.mark.parametrize(
    "fold",
    [
        folds.count(),
        folds.sum(),
        folds.mean(),
        folds.variance(),
        folds.stddev(),
        folds.min(),
        folds.max(),
        folds.first(),
        folds.last(),
        folds.top(3),
        folds.any(),
        folds.all(),
        folds.histogram([-1, 0, 20]).at(Resolution("1")),
        folds.quantile(0.5, 0.99),
        folds.distinct(8),
        folds.struct(mean=folds.mean(), last=folds.last(), top=folds.top(2)),
        planted.Total(),
        planted.OnlyAboveZero(),
    ],
)
def test_sound_folds_keep_every_law(fold):
    assert broken(fold) == {}


@pytest.mark.parametrize(
    ("fold", "law", "case"),
    [
        (planted.Averaging(), laws.associative, (0, 0, 1)),
        (planted.Newest(), laws.commutative, (1, 1)),
        (planted.WrongInverse(), laws.retract_undoes_combine, (0, 1)),
        (planted.OtherThanItsColumns(), laws.combine_follows_the_columns, (1, 1)),
        (planted.HastyColumn(), laws.lift_column_is_combine_over_lift, (2,)),
        (planted.OffFromAThousand(), laws.lift_column_is_combine_over_lift, (1,)),
        (planted.Fractional(), laws.fits_the_columns, (1, 0)),
        (planted.Remembering(), laws.lift_is_repeatable, (2,)),
        (planted.ListOfParts(), laws.fits_the_columns, (1, 0)),
        (planted.OtherZero(), laws.zero_is_identity, (0,)),
        (planted.OtherZero(), laws.zero_follows_the_columns, ()),
        (planted.PartialLower(), laws.lower_is_total, (0,)),
        (planted.NoNumber(), laws.lower_is_total, (0,)),
    ],
    ids=lambda each: getattr(each, "__name__", None) or type(each).__name__,
)
def test_a_planted_fault_is_found_and_made_small(fold, law, case):
    found = smallest_broken(law, fold, 3_000, Random(0))
    assert found
    assert tuple(map(len, found.case)) == case
    assert len(found.sides) == 2 or found.sides[-1][0].startswith("it raises")


def test_what_a_counter_example_calls_lift_is_what_lift_gives():
    found = smallest_broken(laws.associative, planted.Averaging(), 3_000, Random(0))
    *_, ((value, time_us),) = found.case
    assert f"c = lift({value}, {time_us}) = ({value},)" in found.lines()


def value_of(fold, law):
    (((value, time_us),), *rest) = smallest_broken(law, fold, 3_000, Random(0)).case
    assert time_us == 0
    assert not any(rest)
    return value


def test_values_are_made_as_small_as_they_break_the_law():
    assert value_of(planted.OffFromAThousand(), laws.lift_column_is_combine_over_lift) == 1_000
    assert value_of(planted.Fractional(), laws.fits_the_columns) == 1_001
    assert value_of(planted.ListOfParts(), laws.fits_the_columns) == 77
    twice = smallest_broken(
        laws.lift_column_is_combine_over_lift, planted.HastyColumn(), 200, Random(0)
    )
    assert twice.case == (((1, 0), (1, 0)),)


def test_the_counter_example_says_what_was_computed():
    (lines,) = [
        verdict.lines()
        for verdict in verdicts(planted.WrongInverse())
        if verdict.law is laws.retract_undoes_combine
    ]
    assert lines == [
        "FAIL  Retract is the inverse of combine",
        "        a = zero = (0, 0)",
        "        b = lift(-1, 0) = (1, -1)",
        "        a = (0, 0)",
        "        retract(combine(a, b), b) = (0, -2)",
    ]


def test_what_a_fold_raises_is_its_counter_example():
    found = broken(planted.PartialLower())
    assert list(found) == [laws.lower_is_total]
    assert found[laws.lower_is_total].lines() == [
        "a = zero = (0, 0)",
        "it raises ZeroDivisionError = 'division by zero'",
    ]


def test_an_error_that_breaks_every_law_is_shown_once():
    found = {verdict.law: verdict for verdict in verdicts(planted.Hot())}
    assert [law for law, verdict in found.items() if verdict.broken] == [laws.fits_the_columns]
    assert "it raises RuntimeError = 'too hot'" in found[laws.fits_the_columns].lines()[-1]
    assert found[laws.commutative].skipped == "the fold raises the same error there"


def test_the_same_seed_finds_the_same_case():
    shown = [[v.lines() for v in verdicts(fold(), seed=5)] for fold in (planted.Averaging,) * 2]
    assert shown[0] == shown[1]


def test_sliding_is_tried_where_its_laws_hold_and_an_inverse_where_there_is_one():
    def skipped(fold):
        lines = [line for verdict in verdicts(fold) for line in verdict.lines()]
        return [line for line in lines if line.startswith("SKIP")]

    (sliding,) = skipped(planted.WrongInverse())
    assert sliding.endswith("combining afresh gives: it follows from laws that are broken")
    (inverse,) = skipped(folds.max())
    assert (
        inverse == "SKIP  Retract is the inverse of combine: the fold has no inverse and needs none"
    )


def test_sliding_itself_can_fail(monkeypatch):
    monkeypatch.setattr("lasp_edge.aggregates.sliding.TwoStacks._turn_over", lambda queue: None)
    monkeypatch.setattr(
        "lasp_edge.aggregates.sliding.TwoStacks.pop", lambda queue: queue._younger.pop()
    )
    found = broken(folds.max())
    assert list(found) == [laws.sliding_equals_recomputation]


def test_a_fold_that_refuses_everything_cannot_be_checked():
    with pytest.raises(ValueError, match=r"total_of_mine\(\) lifts none of the samples"):
        verdicts(planted.RefusesAll())


def test_the_folds_of_a_program_are_those_of_windows_and_variables_once_each():
    program = Program("p")
    event = program.event("e", resolution="0.1")
    inner = folds.struct(own=planted.Total(), bins=folds.histogram([1]))
    program.window("a", source=event, fold=folds.mean(), size_s=1)
    program.window("b", source=event, fold=folds.mean(), size_s=2)
    program.window("c", source=event, fold=inner, size_s=2)
    named = folds_of(program.plan())
    assert [(each.where, each.fold.name) for each in named] == [
        (("window a", "window b"), "mean"),
        (("window c",), "struct"),
        (("window c, part own",), "total_of_mine"),
        (("window c, part bins",), "histogram"),
    ]
    assert [broken(each.fold) for each in named] == [{}] * 4


class Power(Fold):
    """Ten to the value: no machine can compute that of a value that no sensor has."""

    name, parts = "power", ("power",)
    columns = (Column("power_q", Op.SUM),)

    def lift(self, value, time_us=0):
        assert 1 <= value <= 12, "an implausible value"
        return (10**value,)

    def lower(self, partial, resolution):
        return {"power": partial[0]}


def test_a_fold_of_ones_own_is_tried_on_plausible_values():
    program = Program("loud")
    level = program.event("level", resolution="1", least=1, most=12)
    program.window("power", source=level, fold=Power(), size_s=60)
    program.window("doubled", source=level, fold=Power(), size_s=60, value=lambda e: e.value)
    plausible, other = folds_of(program.plan())
    assert not [
        each.broken for each in verdicts(Power(), plausible=plausible.plausible) if each.broken
    ]
    assert other.plausible is None, "what a function gives may be anything"
    assert any(each.broken for each in verdicts(Power()))


def combined(function, fold, resolution="1", **event):
    """Return the verdicts on a value of two others, and the program's events have a range."""
    program = Program("combined")
    values = []
    for name in "ab":
        made = program.event(name, resolution="1", **event)
        samples = program.declare_dynamic(BoundedLWWSet(bound=5), f"{name}s")
        program.collect(made, into=samples)
        values.append(
            program.fold_dynamic(program.fold(samples, fold, f"{name}_here"), f"of_{name}")
        )
    program.combine("both", function, *values, resolution=resolution)
    (named,) = [each for each in folds_of(program.plan()) if "fold both" in each.where[0]]
    return verdicts(named.fold, plausible=named.plausible)


def test_a_combined_value_may_be_beyond_all_steps():
    assert not [each for each in combined(lambda a, b: a + b, folds.sum()) if each.broken]


def test_a_counter_example_that_can_always_be_a_little_smaller_ends():
    parts = folds.struct(mean=folds.mean(), most=folds.max(), total=folds.sum())

    def divided(a, b):
        found = (a["mean"] - 10) * a["most"] / b["total"]
        if abs(found) >= 2**31 / 1_000:
            raise ValueError("out of range: choose a coarser resolution")
        return found

    (broken,) = [each for each in combined(divided, parts, resolution="0.001") if each.broken]
    assert "out of range" in broken.lines()[-2]
    assert "by event(..., least=, most=)" in broken.lines()[-1]


class Saturating(planted.Total):
    """Keeps every law, until many samples have a great total."""

    combines_itself = True

    def combine(self, a, b):
        count, total = a[0] + b[0], a[1] + b[1]
        return (count, min(total, 10**12) if count > 300 else total)


def test_what_a_fold_does_of_many_samples_is_tried():
    found = broken(Saturating())[laws.associative]
    assert any(" times lift(2147483647, " in line for line in found.lines())
    assert len(found.lines()) == 5


class CountingCombines(planted.Total):
    """Notes how often it combines."""

    combines = 0

    def combine(self, a, b):
        self.combines += 1
        return super().combine(a, b)


def test_thousands_of_equal_samples_are_combined_in_a_dozen_steps():
    fold = CountingCombines()
    assert laws.partial_of(fold, [(3, 0)] * 2_000 + [(5, 0)]) == (2_001, 6_005)
    assert fold.combines < 30


def test_the_folds_under_a_function_are_not_tried_on_many_samples_again():
    lifted = []

    class CountingLifts(CountingCombines):
        def lift(self, value, time_us=0):
            lifted.append(value)
            return super().lift(value, time_us)

    combined(lambda a, b: a + b, CountingLifts())
    of_function = len(lifted)
    lifted.clear()
    verdicts(CountingLifts())
    assert of_function < len(lifted)


class WhenGreatest(planted.Total):
    """Keeps the time of the greatest value, in units of `per_us` to a microsecond."""

    columns = (Column("most_q", Op.MAX), Column("at", Op.AT_MAX, by="most_q"))
    per_us = 1

    def lift(self, value, time_us=0):
        return (value, time_us * self.per_us)

    def lower(self, partial, resolution):
        return {"total": partial[1]}


def test_a_time_in_microseconds_may_be_beside_an_extreme():
    assert broken(WhenGreatest()) == {}


def test_the_column_that_a_part_does_not_fit_is_named():
    picoseconds = WhenGreatest()
    picoseconds.per_us = 10**6
    *_, last = broken(picoseconds)[laws.fits_the_columns].lines()
    assert last == "below 2**62, and None only where by= is None, in = ('at',)"
    *_, last = broken(planted.Fractional())[laws.fits_the_columns].lines()
    assert last.startswith("a whole number, None or bytes, as op= of the column asks, in = (")
