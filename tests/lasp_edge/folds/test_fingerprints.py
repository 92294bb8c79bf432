"""Fingerprints and descriptions: equal where partials may meet, different where they must not."""

import json

import pytest

from crdts import BoundedLWWSet
from lasp_edge import Program, folds
from lasp_edge.folds.columns import Column, Op
from lasp_edge.folds.numbers import Resolution
from tests.lasp_edge.support_folds import AT_B, BUILT_IN, HUNDREDTHS, Range, variant

DIFFERENT = [
    folds.mean(),
    folds.sum(),
    folds.any(),
    folds.all(),
    folds.min(),
    folds.first(),
    folds.last(),
    folds.variance(),
    folds.variance(population=True),
    folds.stddev(),
    folds.stddev(population=True),
    folds.top(2),
    folds.top(3),
    folds.histogram([1]),
    folds.histogram([2]),
    folds.histogram([1, 2]),
    folds.histogram(["1/3"]),
    folds.histogram(["0.333"]),
    folds.quantile(0.5),
    folds.quantile(0.25),
    folds.quantile(0.5, 0.25),
    folds.quantile(0.25, 0.5),
    folds.quantile(0.5, relative_error=0.02),
    folds.distinct(),
    folds.distinct(11),
    folds.struct(mean=folds.mean()),
    folds.struct(low=folds.min()),
    folds.struct(low=folds.max()),
    folds.struct(top=folds.top(2)),
    folds.struct(top=folds.top(3)),
    folds.struct(p=folds.quantile(0.5)),
    folds.struct(p=folds.quantile(0.25)),
    folds.struct(a=folds.histogram([1])),
    folds.struct(a=folds.histogram([2])),
]


def test_fingerprints_differ_where_partials_must_not_meet():
    different = [
        *(fold.fingerprint(HUNDREDTHS) for fold in DIFFERENT),
        folds.mean().fingerprint(Resolution("0.1")),
        folds.histogram([1]).fingerprint(Resolution("0.1")),
        Range().fingerprint(HUNDREDTHS),
        Range(version=2).fingerprint(HUNDREDTHS),
        Range(parameters="closed").fingerprint(HUNDREDTHS),
        folds.struct(range=Range()).fingerprint(HUNDREDTHS),
        folds.struct(range=Range(version=2)).fingerprint(HUNDREDTHS),
        variant(columns=(Column("a", Op.MIN), Column("b", Op.MAX))).fingerprint(HUNDREDTHS),
        variant(columns=(Column("a", Op.MIN), Column("b", Op.MIN))).fingerprint(HUNDREDTHS),
        variant(columns=(Column("a", Op.MIN), AT_B)).fingerprint(HUNDREDTHS),
        variant(columns=(Column("a", Op.MIN), AT_B._replace(by="c"))).fingerprint(HUNDREDTHS),
        variant(columns=(Column("a", Op.TOP, size=1),)).fingerprint(HUNDREDTHS),
        variant(columns=(Column("a", Op.TOP, size=2),)).fingerprint(HUNDREDTHS),
    ]
    assert len(set(different)) == len(different)


def test_streams_differ_where_fingerprints_do():
    streams = set()
    for fold in DIFFERENT:
        program = Program("p")
        event = program.event("e", resolution="0.01")
        samples = program.declare_dynamic(BoundedLWWSet(bound=3), "samples")
        local = program.fold(samples, fold, "local")
        program.fold_dynamic(local, "fleet")
        streams |= {
            program.window("w", source=event, fold=fold, size_s=1).stream,
            program.plan().local_folds["local"].stream,
            program.plan().dynamic_folds["fleet"].stream,
        }
    assert len(streams) == 3 * len(DIFFERENT)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (folds.mean(), folds.mean()),
        (folds.histogram([0.1, 2]), folds.histogram(["0.10", "2e0"])),
        (folds.quantile(0.5, 1), folds.quantile("0.50", "1.0", relative_error="1/100")),
        (folds.histogram([1]), folds.histogram([1]).at(HUNDREDTHS)),
    ],
)
def test_one_meaning_has_one_fingerprint_however_it_is_written(one, other):
    same = other.fingerprint(Resolution("1e-2"))
    assert same == one.fingerprint(HUNDREDTHS)
    again = folds.fold_of(json.loads(json.dumps(one.description())))
    assert again.fingerprint(HUNDREDTHS) == same


@pytest.mark.parametrize("fold", [*BUILT_IN.values(), *DIFFERENT])
def test_built_in_folds_are_made_again_from_their_description(fold):
    again = folds.fold_of(json.loads(json.dumps(fold.description()))).at(HUNDREDTHS)
    assert type(again) is type(fold)
    assert again.fingerprint(HUNDREDTHS) == fold.fingerprint(HUNDREDTHS)
    assert (again.columns, again.parts) == (fold.columns, fold.parts)
    column = [-3, 0, 5, 700, 5], [1, 2, 3, 4, 5]
    assert again.lift_column(*column) == fold.at(HUNDREDTHS).lift_column(*column)
    partial = again.lift_column(*column)
    assert again.lower(partial, HUNDREDTHS) == fold.lower(partial, HUNDREDTHS)


def test_a_description_of_another_fold_or_version_makes_none():
    assert folds.fold_of({"fold": "median", "version": 1}) is None
    assert folds.fold_of({"fold": "mean", "version": 2}) is None
    assert folds.fold_of(folds.struct(range=Range()).description()) is None
