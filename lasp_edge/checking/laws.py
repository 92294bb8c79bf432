"""The laws of a fold, each stated once as sides that must be equal.

A law takes the samples of up to three partials and yields (what is computed, its value); it holds
for them if all values are equal. Combining freely, sliding and merging in Spark rest on nothing
else. A fold that only declares columns keeps the laws of combine by construction; one that writes
`combine`, `retract` or `lift_column` itself may not.

    >>> from lasp_edge import folds
    >>> sides = dict(commutative(folds.sum(), [(3, 0)], [(4, 0)]))
    >>> sides
    {'combine(a, b)': (7,), 'combine(b, a)': (7,)}
"""

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import groupby
from math import isfinite
from typing import Any

from lasp_edge.aggregates.sliding import TwoStacks, keyed
from lasp_edge.folds.columns import Algebra, Partial
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import Resolution

TimedValue = tuple[int, int]
"""A quantised value and its time in microseconds."""
TimedValues = Sequence[TimedValue]
Sides = Iterator[tuple[str, Any]]
Law = Callable[..., Sides]

_STEP = Resolution("0.5")
_ANY_SIZE = 2**500


def partial_of(fold: Fold, samples: TimedValues) -> Partial:
    """Return the partial of samples by its definition: `combine` over `lift`.

    A row of equal samples is combined in halves: thousands take a dozen steps.
    """
    rows = [_combined(fold, fold.lift(*sample), len([*row])) for sample, row in groupby(samples)]
    return reduce(fold.combine, rows) if rows else fold.zero


def _combined(fold: Fold, partial: Partial, count: int) -> Partial:
    """Return `count` equal partials, combined."""
    if count == 1:
        return partial
    half = _combined(fold, partial, count // 2)
    even = fold.combine(half, half)
    return fold.combine(even, partial) if count % 2 else even


def fits_the_columns(fold: Fold, a: TimedValues, b: TimedValues) -> Sides:
    """Lift and combine give a tuple with one part of the right kind a column."""
    kinds = Algebra(tuple(column._replace(limit=_ANY_SIZE) for column in fold.columns))
    partials = [("zero", fold.zero)]
    partials += [(f"lift{sample}", fold.lift(*sample)) for sample in (*a, *b)]
    partials.append(("combine(a, b)", fold.combine(partial_of(fold, a), partial_of(fold, b))))
    for name, partial in partials:
        if type(partial) is not tuple or not kinds.within_limits(partial):
            yield name, partial
            yield _misfit(fold, partial)


def _misfit(fold: Fold, partial: Any) -> tuple[str, Any]:
    """Return what a partial is not."""
    if not isinstance(partial, tuple) or len(partial) != len(fold.columns):
        return "a tuple with one part for each of", fold.columns_named
    alone = [each._replace(limit=_ANY_SIZE, by="") for each in fold.columns]
    misfits = [
        each.name
        for each, part in zip(alone, partial, strict=True)
        if not Algebra((each,)).within_limits((part,))
    ]
    if misfits:
        return "a whole number, None or bytes, as op= of the column asks, in", tuple(misfits)
    return "below 2**62, and None only where by= is None, in", tuple(
        each.name for each in fold.columns if each.by
    )


def lift_is_repeatable(fold: Fold, a: TimedValues) -> Sides:
    """Lift gives the same partial each time, whatever was lifted in between."""
    yield "lift of each sample", [fold.lift(*sample) for sample in a]
    yield "lift of each, again", [fold.lift(*sample) for sample in a]
    backwards = [fold.lift(*sample) for sample in reversed(a)]
    yield "lift of each, backwards", backwards[::-1]


def zero_is_identity(fold: Fold, a: TimedValues) -> Sides:
    """Zero changes nothing when combined."""
    partial = partial_of(fold, a)
    yield "a", partial
    yield "combine(a, zero)", fold.combine(partial, fold.zero)
    yield "combine(zero, a)", fold.combine(fold.zero, partial)


def commutative(fold: Fold, a: TimedValues, b: TimedValues) -> Sides:
    """Combine is commutative."""
    x, y = partial_of(fold, a), partial_of(fold, b)
    yield "combine(a, b)", fold.combine(x, y)
    yield "combine(b, a)", fold.combine(y, x)


def associative(fold: Fold, a: TimedValues, b: TimedValues, c: TimedValues) -> Sides:
    """Combine is associative."""
    x, y, z = (partial_of(fold, samples) for samples in (a, b, c))
    yield "combine(combine(a, b), c)", fold.combine(fold.combine(x, y), z)
    yield "combine(a, combine(b, c))", fold.combine(x, fold.combine(y, z))


def combine_follows_the_columns(fold: Fold, a: TimedValues, b: TimedValues) -> Sides:
    """Combine equals the columns' ops, which is all that Spark runs."""
    x, y = partial_of(fold, a), partial_of(fold, b)
    algebra = Algebra(fold.columns)
    yield "combine(a, b)", fold.combine(x, y)
    yield "the columns' ops on a and b", algebra.combine(x, y)


def zero_follows_the_columns(fold: Fold) -> Sides:
    """Zero is the zero of the columns' ops."""
    yield "zero", fold.zero
    yield "the columns' zero", Algebra(fold.columns).zero


def retract_undoes_combine(fold: Fold, a: TimedValues, b: TimedValues) -> Sides:
    """Retract is the inverse of combine."""
    x, y = partial_of(fold, a), partial_of(fold, b)
    yield "a", x
    yield "retract(combine(a, b), b)", fold.retract(fold.combine(x, y), y)


def lift_column_is_combine_over_lift(fold: Fold, a: TimedValues) -> Sides:
    """Lift_column gives what combining lifted samples gives."""
    lifted = [fold.lift(*sample) for sample in a]
    yield "combine over lift, from zero", reduce(fold.combine, lifted, fold.zero)
    yield "lift_column", fold.lift_column([value for value, _ in a], [time for _, time in a])


def lower_is_total(fold: Fold, a: TimedValues) -> Sides:
    """Lower reads every partial, zero too, the same each time, as a number or None a part."""
    partial = partial_of(fold, a)
    lowered = fold.lower(partial, _STEP)
    yield "lower(a)", lowered
    yield "lower(a), again", fold.lower(partial, _STEP)
    for part in fold.parts:
        value = lowered.get(part, "missing")
        if not (value is None or (isinstance(value, int | float) and isfinite(value))):
            yield f"part {part!r}, which must be None or a finite number", value
    if set(lowered) != set(fold.parts):
        yield f"the parts {fold.parts}", tuple(lowered)


def sliding_equals_recomputation(fold: Fold, a: TimedValues, b: TimedValues) -> Sides:
    """Sliding, by key and in order, gives what combining afresh gives."""
    before, after = ([fold.lift(*sample) for sample in samples] for samples in (a, b))
    by_key, in_order = keyed(fold), TwoStacks(fold)
    for n, partial in enumerate(before + after):
        in_order.push(partial)
        by_key.put(n if n < len(a) else n - len(a), partial)  # those of b replace those of a
    for n in range(len(a)):
        in_order.pop()
        if n >= len(b):
            by_key.discard(n)
    yield "b, combined afresh", reduce(fold.combine, after, fold.zero)
    yield "a, then b, then without a: first in, first out", in_order.total
    yield "a, then b in its place: by key", by_key.total


LAWS: tuple[Law, ...] = (
    fits_the_columns,
    lift_is_repeatable,
    zero_is_identity,
    commutative,
    associative,
    zero_follows_the_columns,
    combine_follows_the_columns,
    retract_undoes_combine,
    lift_column_is_combine_over_lift,
    lower_is_total,
    sliding_equals_recomputation,
)
"""All laws; the last follows from the others."""


def statement(law: Law) -> str:
    """Return a law as a sentence, without its full stop."""
    return str(law.__doc__).partition(".\n")[0].rstrip(".")
