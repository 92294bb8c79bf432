"""A fold whose columns' ops do not say how it combines; Spark's workers import it from here."""

from lasp_edge import Column, Fold, Op


class Parity(Fold):
    """The exclusive or of all values."""

    name, parts = "parity", ("parity",)
    columns = (Column("parity_q", Op.MAX),)
    combines_itself = True

    def lift(self, value, time_us=0):
        return (value,)

    def combine(self, a, b):
        return b if a == (None,) else a if b == (None,) else (a[0] ^ b[0],)

    def lower(self, partial, resolution):
        return {"parity": partial[0]}
