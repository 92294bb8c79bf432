"""Folds that break a law each, as users might write them; and one that breaks none."""

from lasp_edge import Column, Fold, Op


class Total(Fold):
    """Keeps every law; the others differ from it in one method."""

    name, parts = "total_of_mine", ("total",)
    columns = (Column("many", Op.SUM), Column("total_q", Op.SUM))

    def lift(self, value, time_us=0):
        return (1, value)

    def lower(self, partial, resolution):
        return {"total": resolution.real(partial[1])}


class Averaging(Total):
    """Not associative: the mean of means."""

    columns = (Column("average_q", Op.SUM),)

    def lift(self, value, time_us=0):
        return (value,)

    def lower(self, partial, resolution):
        return {"total": partial[0]}

    def combine(self, a, b):
        return ((a[0] + b[0]) // 2,)


class Newest(Total):
    """Not commutative: whoever comes second wins."""

    columns = (Column("newest_q", Op.MAX),)

    def lift(self, value, time_us=0):
        return (value,)

    def lower(self, partial, resolution):
        return {"total": partial[0]}

    def combine(self, a, b):
        return a if b[0] is None else b


class WrongInverse(Total):
    """Takes back the amount, whatever its sign."""

    def retract(self, a, b):
        return (a[0] - b[0], a[1] - abs(b[1]))


class OtherThanItsColumns(Total):
    """Associative and commutative, but its columns say sum, and Spark would add."""

    def combine(self, a, b):
        return (a[0] + b[0], max(a[1], b[1]) if a[0] and b[0] else a[1] + b[1])

    @property
    def invertible(self):
        return False


class HastyColumn(Total):
    """Lifts equal samples of a column once."""

    def lift_column(self, values, times_us):
        return (len(values), sum(set(values)))


class OffFromAThousand(Total):
    """Is wrong only from a total of 1,000 on."""

    def lift_column(self, values, times_us):
        return (len(values), sum(values) + (sum(values) >= 1_000))


class Fractional(Total):
    """Makes a float of what is above 1,000."""

    def lift(self, value, time_us=0):
        return (1, value / 2 if value > 1_000 else value)


class Remembering(Total):
    """Lifts by what it lifted before."""

    def __init__(self):
        self.before = 0

    def lift(self, value, time_us=0):
        self.before, before = value, self.before
        return (1, value - before)


class ListOfParts(Total):
    """Gives a list."""

    def lift(self, value, time_us=0):
        return [1, value] if value == 77 else (1, value)


class OtherZero(Total):
    """Starts with one sample that there never was."""

    zero = (1, 0)


class PartialLower(Total):
    """Divides by the count."""

    def lower(self, partial, resolution):
        return {"total": partial[1] / partial[0]}


class NoNumber(Total):
    """Is infinite where there is no sample."""

    def lower(self, partial, resolution):
        return {"total": partial[1] if partial[0] else float("inf")}


class OnlyAboveZero(Total):
    """Keeps every law for the samples that it accepts."""

    def lift(self, value, time_us=0):
        if value <= 0:
            raise ValueError("above 0")
        return (1, value)


class RefusesAll(Total):
    """Accepts nothing but what it is defined with."""

    def lift(self, value, time_us=0):
        if value != 3:
            raise ValueError("only 3")
        return (1, value)


class Hot(Total):
    """Raises an error from a value on."""

    def lift(self, value, time_us=0):
        if value > 900:
            raise RuntimeError("too hot")
        return (1, value)
