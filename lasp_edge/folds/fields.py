"""Folds of several fields of an event: a weighted mean, a correlation, a line through points.

Each field is a number that a function gives of the event, rounded once to a step of its own. From
there on all is whole numbers, so devices, simulator and Spark agree to the last bit.

Sums of squares and of products have 63 bits: of two fields within 96 million steps a pane has room
for 1,000 events, within a million steps for millions. Of a time take what lies behind the hour,
such as `event.time_us / 1e6 % 3600`: that of today in seconds has room for two.

    >>> from lasp_edge.event import Event
    >>> fold = WeightedMean(lambda e: e.value[0], lambda e: e.value[1], steps=("0.01", "1"))
    >>> trades = [Event("trade", pair, 0, "pi-1", {}) for pair in ((10.0, 3), (12.5, 1))]
    >>> one, other = map(fold.lift_event, trades)
    >>> fold.lower(fold.combine(one, other), Resolution("1"))
    {'weighted_mean': 10.625}

A fold of your own extends `FieldsFold`: its `lift_fields` is given the fields in steps.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from lasp_edge.event import Event
from lasp_edge.folds.columns import COUNT_LIMIT, SQUARES_LIMIT, Column, Op, Partial
from lasp_edge.folds.fold import Fold, built_in
from lasp_edge.folds.numbers import Refused, Resolution
from lasp_edge.folds.sums import root


class FieldsFold(Fold):
    """A fold whose `lift` gets the event, of which it takes several numbers.

    >>> from lasp_edge import Column, Op, folds
    >>> class Work(folds.Fields):
    ...     '''Force times way, in steps of 0.1 N times 0.01 m.'''
    ...     name, count, parts = "work", 2, ("joule",)
    ...     columns = (Column("work_q", Op.SUM),)
    ...
    ...     def lift_fields(self, force, way):
    ...         return (force * way,)
    ...
    ...     def lower(self, partial, resolution):
    ...         return {"joule": partial[0] / 1_000}
    >>> work = Work(lambda e: e.value[0], lambda e: e.value[1], steps=("0.1", "0.01"))
    >>> from lasp_edge import Event
    >>> partial = work.lift_event(Event("pulled", (20.0, 1.5), 0, "pi-1", {}))
    >>> partial, work.lower(partial, None)
    ((30000,), {'joule': 30.0})

    Args:
        *fields: functions, each of which gives a number of an event.
        steps: the step to which each of them is rounded, as decimal text.

    Raises:
        ValueError: there are not as many steps as fields, or one is no step.
    """

    takes_fields = True
    count: int | None = None
    """How many fields it takes; None: as many as it is given."""

    def __init__(self, *fields: Callable[[Event[Any]], Any], steps: Sequence[str]) -> None:
        if not all(map(callable, fields)) or not 0 < len(fields) == len(steps):
            raise ValueError(
                f"{self.name}: a function for each field is needed, and as many steps=, such as "
                'steps=("0.01", "1")'
            )
        if self.count not in {None, len(fields)}:
            raise ValueError(f"{self.name}: {self.count} fields are needed, not {len(fields)}")
        self.functions, self.steps = fields, tuple(map(Resolution, steps))
        self.parameters = ",".join(step.canonical for step in self.steps)

    @abstractmethod
    def lift_fields(self, *fields: Any, **nothing: Any) -> Partial:
        """Return the partial of one event, given its fields in steps: `(self, price, amount)`.

        To type checkers, `Any` for all lets a fold name as many as it takes.
        """

    def lift_event(self, event: Event[Any]) -> Partial:
        """Return the partial of an event.

        Raises:
            ValueError: a field is no number in range. What its function raises is passed on.
        """
        fields: list[int] = []
        for of, step in zip(self.functions, self.steps, strict=True):
            given = of(event)
            try:
                fields.append(step.quantise(given))
            except Refused as error:
                remedy = ": write float(..)" if isinstance(given, str) else ""
                kind = type(given).__name__
                raise Refused(f"field {len(fields) + 1} ({kind}) is {error}{remedy}") from None
        return self.lift_fields(*fields)

    def lift(self, value: int, time_us: int = 0) -> Partial:
        """Return the partial of a made-up event: the laws are tried on such."""
        return self.lift_fields(*[(value * (n + 1) + time_us) % 1_001 - 500 for n in self._numbers])

    @property
    def _numbers(self) -> range:
        return range(len(self.steps))

    def description(self) -> dict[str, Any]:
        steps = [step.text for step in self.steps]
        return super().description() | {"arguments": {"steps": steps}}

    @classmethod
    def described(cls, description: Any) -> Fold:
        steps = description["arguments"]["steps"]
        return cls(*[_not_here] * len(steps), steps=steps)


def _not_here(_event: Event[Any]) -> Any:
    raise RuntimeError("whoever reads results has not the functions of the program")


@built_in
class WeightedMean(FieldsFold):
    """The mean of a field, each value counted by the weight beside it. None without any weight.

    >>> from lasp_edge import Event, Resolution, folds
    >>> mean = folds.weighted_mean(lambda e: e.value[0], lambda e: e.value[1], steps=("0.01", "1"))
    >>> trades = [Event("trade", pair, 0, "pi-1", {}) for pair in ((10.0, 3), (12.5, 1))]
    >>> mean.lower(mean.combine(*map(mean.lift_event, trades)), Resolution("1"))
    {'weighted_mean': 10.625}

    Args:
        *fields: give the value and the weight of an event.
        steps: of both.
    """

    name, count = "weighted_mean", 2
    columns = (Column("weight_q", Op.SUM), Column("weighted_q", Op.SUM, SQUARES_LIMIT))
    parts = ("weighted_mean",)

    def lift_fields(self, *fields: int) -> Partial:
        value, weight = fields
        return (weight, value * weight)

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:  # noqa: ARG002
        weight, weighted = partial
        mean = Fraction(weighted, weight) * self.steps[0].exact if weight else None
        return {"weighted_mean": None if mean is None else float(mean)}


class _Pairs(FieldsFold):
    """A fold of the sums of two fields, of their squares and of their products."""

    count = 2
    columns = (
        Column("count", Op.SUM, COUNT_LIMIT),
        *(Column(name, Op.SUM) for name in ("x_q", "y_q")),
        *(Column(name, Op.SUM, SQUARES_LIMIT) for name in ("xx_q", "yy_q", "xy_q")),
    )

    def lift_fields(self, *fields: int) -> Partial:
        x, y = fields
        return (1, x, y, x * x, y * y, x * y)


@built_in
class Correlation(_Pairs):
    """The correlation of two fields, from -1 to 1. None where one of them does not change.

    >>> from lasp_edge import Event, Resolution, folds
    >>> both = folds.correlation(lambda e: e.value[0], lambda e: e.value[1], steps=("1", "0.1"))
    >>> pairs = [Event("both", pair, 0, "pi-1", {}) for pair in ((1, 2.5), (2, 5.0))]
    >>> both.lower(both.combine(*map(both.lift_event, pairs)), Resolution("1"))
    {'correlation': 1.0}

    Args:
        *fields: give both of an event.
        steps: of both.
    """

    name, parts = "correlation", ("correlation",)

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:  # noqa: ARG002
        n, x, y, xx, yy, xy = partial
        spread = (n * xx - x * x) * (n * yy - y * y)
        if not spread:
            return {"correlation": None}
        shared = n * xy - x * y
        found = root(shared * shared, spread)
        return {"correlation": found if shared >= 0 else -found}


@built_in
class Regression(_Pairs):
    """The line through points with the least squares: its slope, and its value at x = 0.

    None where all points have one x.

    >>> from lasp_edge import Event, Resolution, folds
    >>> line = folds.regression(lambda e: e.value[0], lambda e: e.value[1], steps=("1", "0.1"))
    >>> points = [Event("point", pair, 0, "pi-1", {}) for pair in ((1, 3.5), (3, 4.5))]
    >>> line.lower(line.combine(*map(line.lift_event, points)), Resolution("1"))
    {'slope': 0.5, 'intercept': 3.0}

    Args:
        *fields: give x and y of an event.
        steps: of both.
    """

    name, parts = "regression", ("slope", "intercept")

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:  # noqa: ARG002
        n, x, y, xx, _, xy = partial
        spread = n * xx - x * x
        if not spread:
            return dict.fromkeys(self.parts)
        slope = Fraction(n * xy - x * y, spread) * self.steps[1].exact / self.steps[0].exact
        intercept = (y * self.steps[1].exact - slope * x * self.steps[0].exact) / n
        return {"slope": float(slope), "intercept": float(intercept)}
