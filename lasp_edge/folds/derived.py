"""Folds whose partial is made of other partials of a device: of their results, or of several.

A value of the fleet that is made of two others, such as a spread, is a fold like any: its partial
holds the partials of both, and they are lowered and brought together where it is read. So it is
combined, compared and stored as every value is. And a percentile of the devices' means is a fold
of one sample a device: its mean, rounded once.

    >>> from lasp_edge.folds.extremes import Maximum
    >>> from lasp_edge.folds.sums import Mean
    >>> tenths, ones = Resolution("0.1"), Resolution("1")
    >>> greatest = OfResults(Maximum(), Mean(), "mean", tenths, ones)
    >>> one, other = greatest.of_partials((2, 410)), greatest.of_partials((3, 600))
    >>> greatest.lower(greatest.combine(one, other), ones)
    {'max': 20.0}
    >>> parts = [PartOfCombined("warm", Maximum(), tenths), PartOfCombined("cold", Mean(), tenths)]
    >>> spread = CombinedFold("spread", lambda warm, cold: warm - cold, parts)
    >>> spread.lower(spread.of_partials((250,), (2, 410)), tenths)
    {'spread': 4.5}
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from lasp_edge.folds.columns import Column, Partial
from lasp_edge.folds.exactly import exact_part
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import Refused, Resolution
from lasp_edge.folds.structs import prefixed_column


class FoldOfFolds(Fold):
    """A fold whose partial on a device is made of those of other folds."""

    @abstractmethod
    def of_partials(self, *partials: Partial) -> Partial:
        """Return the partial of a device, of one of each of those folds."""


class OfResults(FoldOfFolds):
    """A fold over devices of one number a device: a part of what another fold gives there.

    Args:
        outer: folds the numbers.
        inner: gives them, of a device's samples.
        part: which part of what it gives.
        samples: the step of the samples.
        results: the step to which a number is rounded.
    """

    name = "of_results"

    def __init__(
        self, outer: Fold, inner: Fold, part: str, samples: Resolution, results: Resolution
    ) -> None:
        self.outer: Fold = outer.at(results)
        self.inner, self.part = inner.at(samples), part
        self.samples, self.results = samples, results
        self.columns, self.parts = outer.columns, outer.parts
        self.combines_itself = outer.combines_itself
        folds = [f"{each.name}.{each.version}({each.parameters})" for each in (outer, inner)]
        self.parameters = f"{folds[0]} of {part} of {folds[1]} in {samples.canonical}"

    @property
    def zero(self) -> Partial:
        return self.outer.zero

    def of_partials(self, *partials: Partial) -> Partial:
        number = exact_part(self.inner, partials[0], self.samples, self.part)
        return self.zero if number is None else self.outer.lift(self.results.quantise(number))

    def lift(self, value: int, time_us: int = 0) -> Partial:
        return self.of_partials(self.inner.lift(value, time_us))

    def combine(self, a: Partial, b: Partial) -> Partial:
        return self.outer.combine(a, b)

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:
        return self.outer.lower(partial, resolution)

    def description(self) -> dict[str, Any]:
        """Return that of the fold of the numbers: whoever reads a total off needs no more."""
        return self.outer.description()

    def without_code(self) -> Fold:
        return self.outer.without_code()


class PartOfCombined(NamedTuple):
    """One of the values that another one is made of.

    Attributes:
        name: of the function's argument.
        fold: at the resolution.
    """

    name: str
    fold: Fold
    resolution: Resolution


class CombinedFold(FoldOfFolds):
    """A function of what several folds give, over the partials of all of them.

    Without a sample in one of them it gives None, and the function is not called; and where it
    divides by zero.

    Args:
        part: names the value.
        function: gives the value; of a fold with several parts it is given all of them, by name.
        of: the folds, in the order of its arguments.
        version: of the meaning of the function.
    """

    name = "combined"

    def __init__(
        self,
        part: str,
        function: Callable[..., Any],
        of: Sequence[PartOfCombined],
        version: int = 1,
    ) -> None:
        self.parts, self.function, self.of, self.version = (part,), function, tuple(of), version
        self.columns: tuple[Column, ...] = tuple(
            prefixed_column(each.name, column) for each in of for column in each.fold.columns
        )
        self.parameters = ";".join(
            f"{each.name}={each.fold.name}.{each.fold.version}({each.fold.parameters}) "
            f"in {each.resolution.canonical}"
            for each in of
        )

    def of_partials(self, *partials: Partial) -> Partial:
        return tuple(part for partial in partials for part in partial)

    def lift(self, value: int, time_us: int = 0) -> Partial:
        return self.of_partials(*(each.fold.lift(value, time_us) for each in self.of))

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:
        given: list[Any] = []
        start = 0
        for _, fold, step in self.of:
            stop = start + len(fold.columns)
            lowered = fold.lower(partial[start:stop], step)
            if None in lowered.values():
                return dict.fromkeys(self.parts)
            given.append(lowered if len(fold.parts) > 1 else lowered[fold.parts[0]])
            start = stop
        try:
            number = self.function(*given)
        except ZeroDivisionError:
            return dict.fromkeys(self.parts)
        try:
            return {self.parts[0]: resolution.rounded(number)}
        except Refused as error:
            kind = type(number).__name__
            raise Refused(f"the function of {self.parts[0]} gives {kind}: {error}") from None
