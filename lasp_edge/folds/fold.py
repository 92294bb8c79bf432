"""The fold contract: an aggregate written once, as lift, combine and lower.

A **fold** turns a sample into a partial (`lift`), joins partials (`combine`) and reads an answer
off one (`lower`). Its partial is a tuple with one part for each named column, and each column says
how it combines (`lasp_edge.folds.columns.Op`). That is all a tier needs to know, so `combine` is
derived here and in Spark from the same declaration, and it is associative and commutative by
construction. A fold whose columns are all sums or counts also has an inverse, `retract`.

Source: lift, combine and lower after Tangwongsan, Hirzel, Schneider and Wu, "General Incremental
Sliding-Window Aggregation", VLDB 2015; named columns after twitter/algebird's aggregators.
"""

import builtins
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, reduce
from typing import Any, Self, TypeVar

from lasp_edge.folds.columns import Algebra, Column, Op, Partial, meaning
from lasp_edge.folds.numbers import LIMIT, Resolution
from lasp_edge.reasons import reason_of

MAX_COLUMNS = 64
"""The most columns of one fold: an entry of a frame then stays below 1 kB of integers."""

BUILT_IN: dict[str, type["Fold"]] = {}
"""The folds of lasp-edge by name; a user's fold has another name."""

_HALVES = Resolution("0.5")


class Fold(ABC):
    """An aggregate of quantised samples. Define the columns, `lift` and `lower`; the rest follows.

    >>> from lasp_edge import Column, Op, Resolution
    >>> class Range(Fold):
    ...     name, parts = "range", ("range",)
    ...     columns = (Column("least_q", Op.MIN), Column("most_q", Op.MAX))
    ...
    ...     def lift(self, value, time_us=0):
    ...         return (value, value)
    ...
    ...     def lower(self, partial, resolution):
    ...         least, most = partial
    ...         return {"range": None if least is None else resolution.real(most - least)}
    >>> fold = Range()
    >>> fold.lower(fold.combine(fold.lift(2150), fold.lift(2250)), Resolution("0.01"))
    {'range': 1.0}

    Attributes:
        version: raise it whenever `lift` or the meaning of a column changes.
        parameters: whatever else gives the partial its meaning, as canonical text.
        columns: the columns of a partial, in order.
        parts: names of the values that `lower` gives.
        outer: of a fold of devices' results, what folds them; None of others.
        takes_fields: it takes several numbers of an event (`lasp_edge.folds.fields`).
        reads_value: its partial depends on a sample's value; False of a count, which can be of
            samples that are no numbers.
        combines_itself: its own `combine` counts, and not what the columns' ops say. Spark then
            runs it in Python, so its class has to be importable on Spark's machines.
    """

    name: str
    version: int = 1
    combines_itself: bool = False
    outer: "Fold | None" = None
    takes_fields: bool = False
    reads_value: bool = True
    parameters: str = ""
    columns: tuple[Column, ...]
    parts: tuple[str, ...]

    @abstractmethod
    def lift(self, value: int, time_us: int = 0) -> Partial:
        """Return the partial of one sample.

        Args:
            value: the quantised value, in steps of the resolution.
            time_us: the sample's own time, microseconds since the epoch.
        """

    @abstractmethod
    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:
        """Return the readable values by part; None where there is no sample."""

    @property
    def columns_named(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple([column.name for column in self.columns])

    @cached_property
    def algebra(self) -> Algebra:
        """What follows from the columns."""
        return Algebra(self.columns)

    @property
    def zero(self) -> Partial:
        """The partial of no sample at all."""
        return self.algebra.zero

    @property
    def invertible(self) -> bool:
        """Whether `retract` exists."""
        return self.algebra.invertible and not self.combines_itself

    def at(self, resolution: Resolution) -> "Fold":  # noqa: ARG002 - most folds need no units
        """Return the fold for samples in steps of `resolution`.

        It is the fold itself unless its parameters are in units, as a histogram's edges are. Such
        a fold can lift only after this; it can combine and lower without.
        """
        return self

    def lift_column(self, values: Sequence[int], times_us: Sequence[int]) -> Partial:
        """Return the partial of many samples, equal to `combine` over `lift` of each."""
        return reduce(self.combine, map(self.lift, values, times_us), self.zero)

    def combine(self, a: Partial, b: Partial) -> Partial:
        """Return the partial of the samples of both."""
        return self.algebra.combine(a, b)

    def retract(self, a: Partial, b: Partial) -> Partial:
        """Return the partial of the samples of `a` without those of `b`, which are among them.

        Raises:
            ValueError: the fold has no inverse, or counts of `b` are not in `a`.
        """
        if not self.invertible:
            raise ValueError(f"fold {self.name}: only sums and counts have an inverse")
        return self.algebra.retract(a, b)

    def within_limits(self, partial: Sequence[Any]) -> bool:
        """Return whether `partial`, which may hold anything, is valid as one device's partial."""
        return self.algebra.within_limits(partial)

    def room_for(self, count: int, peak: int = LIMIT - 1) -> Callable[[Partial], bool]:
        """Return a function: does a valid partial certainly stay in range with more samples?

        There are at most `count` more, none larger than `peak` steps without the sign.

        It is right for built-in folds, whose lifted columns grow with the size of a sample.
        """
        limits: list[tuple[int, int]] = []
        for place, column in enumerate(self.columns):
            if column.op is Op.SUM:
                most = max(1, abs(self.lift(peak)[place]), abs(self.lift(-peak)[place]))
                limits.append((place, column.limit - count * most))

        def has_room(partial: Partial) -> bool:
            return all(-limit < partial[place] < limit for place, limit in limits)

        return has_room

    def checked(self) -> Self:
        """Return the fold itself.

        Raises:
            ValueError: it cannot be used as it is defined; the text says why.
        """
        _need_tuples(self)
        names = self.columns_named
        if not 0 < len(names) <= MAX_COLUMNS or not self.parts:
            raise ValueError(f"fold {self.name}: 1 to {MAX_COLUMNS} columns and a part are needed")
        for name in (*names, *self.parts):
            if not name.isidentifier():
                raise ValueError(f"fold {self.name}: {name!r} cannot name a column or a part")
        for several in (names, self.parts):
            doubled = sorted(
                {name for name in several if _folded(several).count(name.casefold()) > 1}
            )
            if doubled:
                raise ValueError(f"fold {self.name}: {doubled} would be there twice; rename a part")
        flaws = filter(None, (column.flaw(self.columns) for column in self.columns))
        for flaw in flaws:
            raise ValueError(f"fold {self.name}: {flaw}")
        self._check_sample()
        return self

    def _check_sample(self) -> None:
        """Try one sample: `lift` and `lower` must give the declared columns and parts."""
        bound = self.at(_HALVES)
        partial: object = _tried(f"fold {self.name}: lift", "the value 3", lambda: bound.lift(3, 0))
        if not isinstance(partial, tuple) or not self.within_limits(partial):
            raise ValueError(
                f"fold {self.name}: lift must give a tuple with one part a column "
                f"({', '.join(self.columns_named)}), whole numbers, None or bytes as its op= asks, "
                f"not {partial!r}"
            )
        shown = f"the partial {partial!r}"
        lowered: object = _tried(
            f"fold {self.name}: lower", shown, lambda: self.lower(partial, _HALVES)
        )
        if not isinstance(lowered, Mapping):
            raise ValueError(f"fold {self.name}: lower gives {lowered!r}, not {self.parts} by name")
        if set(lowered) != set(self.parts):
            raise ValueError(
                f"fold {self.name}: lower must give the parts {self.parts} by name, not {lowered!r}"
            )
        for name, value in zip(self.columns_named, partial, strict=True):
            if lowered.get(name, value) != value:
                raise ValueError(
                    f"fold {self.name}: part {name!r} is not what the column of that name holds; "
                    "give one of the two another name"
                )

    def fingerprint(self, resolution: Resolution) -> str:
        """Return canonical text that differs for partials that must not meet."""
        columns = [[each for each in meaning(column) if each] for column in self.columns]
        text = [self.name, self.version, self.parameters, columns, resolution.canonical]
        return json.dumps([*text, "combines itself"] if self.combines_itself else text)

    @property
    def is_built_in(self) -> bool:
        """Whether it is one of lasp-edge's own: it never fails, and its description is enough."""
        return BUILT_IN.get(self.name) is type(self)

    def description(self) -> dict[str, Any]:
        """Return plain data, from which `fold_of` makes a built-in fold again."""
        return {"fold": self.name, "version": self.version}

    @classmethod
    def described(cls, description: Mapping[str, Any]) -> "Fold | None":
        """Return the fold of a description; None where a part of it is not built in."""
        return cls(**description.get("arguments", {}))

    def without_code(self) -> "Fold":
        """Return what can be pickled: a built-in fold, or what a user's fold declares.

        A fold that combines by itself needs its code wherever its partials are combined.
        """
        return self if self.is_built_in or self.combines_itself else DeclaredFold(self)

    def __repr__(self) -> str:
        built_in = BUILT_IN.get(self.name) is type(self)
        return f"{'folds.' if built_in else ''}{self.name}({self.parameters})"


class DeclaredFold(Fold):
    """What a user's fold declares, without its code: so it stands in a pickled plan.

    It combines partials by its columns, but can neither lift nor lower.
    """

    def __init__(self, fold: Fold) -> None:
        self.name, self.version, self.parameters = fold.name, fold.version, fold.parameters
        self.columns, self.parts = fold.columns, fold.parts

    def lift(self, value: int, time_us: int = 0) -> Partial:  # noqa: ARG002 - the signature
        raise self._missing()

    def lower(
        self,
        partial: Partial,  # noqa: ARG002 - the signature
        resolution: Resolution,  # noqa: ARG002
    ) -> dict[str, float | int | None]:
        raise self._missing()

    def _missing(self) -> RuntimeError:
        return RuntimeError(
            f"the code of fold {self.name} is not here: a pickled plan leaves it behind; load the "
            "program in the process that is to run it"
        )


_FoldClass = TypeVar("_FoldClass", bound=type[Fold])


def built_in(made: _FoldClass) -> _FoldClass:
    """Decorate the class of a fold of lasp-edge itself."""
    BUILT_IN[made.name] = made
    return made


def as_fold(fold: Any, *, of_events: bool = False) -> Fold:
    """Return `fold`, or what it makes when it is a factory such as `folds.mean`.

    >>> from lasp_edge import folds
    >>> as_fold(folds.mean).parts
    ('mean',)
    >>> as_fold("mean")
    Traceback (most recent call last):
        ...
    ValueError: a fold such as folds.mean(), or of a class that extends Fold, is needed, not 'mean'

    Args:
        fold: what a user gave.
        of_events: it may be one that takes several fields of an event.

    Raises:
        ValueError: it is neither, or a user's fold whose definition cannot work.
    """
    try:
        made = fold() if callable(fold) and not isinstance(fold, Fold) else fold
    except TypeError as error:  # it needs arguments, or an abstract method is missing
        name = getattr(fold, "__name__", "")
        if getattr(builtins, name, None) is fold:
            is_one = name in {"all", "any", "max", "min", "sum"}
            write = f"write folds.{name}()" if is_one else "one such as folds.mean() is needed"
            raise ValueError(f"the function {name} of Python is no fold; {write}") from None
        raise ValueError(f"a fold such as folds.mean() is needed, not {fold!r}: {error}") from None
    if not isinstance(made, Fold):
        raise ValueError(
            f"a fold such as folds.mean(), or of a class that extends Fold, is needed, not {fold!r}"
        )
    if made.takes_fields and not of_events:
        raise ValueError(
            f"{made!r} takes several fields of an event, and samples are single numbers: it is for "
            "windows, alone and in no struct"
        )
    if type(made) is not BUILT_IN.get(made.name, type(made)):
        raise ValueError(f"fold {made.name}: that is a built-in fold's name; give yours another")
    return made.checked()


def fold_of(description: Mapping[str, Any]) -> Fold | None:
    """Return the built-in fold of a description, or None where it is not built in.

    Where parameters are in units, ask it for `.at(resolution)` before it lifts.

    >>> from lasp_edge import folds
    >>> folds.fold_of(folds.quantile(0.5, 0.99).description()).parts
    ('p50', 'p99')
    """
    made = BUILT_IN.get(description["fold"])
    if made is None or made.version != description["version"]:
        return None
    return made.described(description)


def _tried(what: str, given: str, function: Callable[[], Any]) -> Any:
    """Return the result of a user's function.

    Raises:
        ValueError: it cannot take what it is given.
    """
    try:
        return function()
    except (TypeError, LookupError, AttributeError, ArithmeticError) as error:
        takes = "a partial, and the step of its samples"
        if what.endswith("lift"):
            takes = "a whole number, the value in steps, and the time: (self, value, time_us=0)"
        raise ValueError(
            f"{what} is given {takes}; it fails for {given}: {reason_of(error)}"
        ) from None


def _need_tuples(fold: Fold) -> None:
    """Check that columns and parts are tuples; a comma is easily left out."""
    for what, given in (("columns", fold.columns), ("parts", fold.parts)):
        if isinstance(given, str | Column):
            shown = repr(given) if isinstance(given, str) else "Column(..)"
            raise ValueError(
                f"fold {fold.name}: {what} is a tuple, with a comma even for one: write "
                f"{what} = ({shown},)"
            )


def _folded(names: Sequence[str]) -> list[str]:
    """Return names as Spark compares columns: without regard to case."""
    return [name.casefold() for name in names]
