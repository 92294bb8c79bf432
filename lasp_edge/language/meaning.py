"""What the values of a variable mean: it stands beside them in every store and stream.

Integers say nothing of the event that they were read from, nor of their step. So a program that
declares a variable again must not take over the values under the same name. A meaning is what has
to be equal for that; where only the step differs, values may be converted.

    >>> old = Meaning("BoundedLWWSet", ("temperature",), "1/100", keyed=True)
    >>> print(old)
    samples of temperature in steps of 0.01, by key (version 1)
    >>> old.factor(old._replace(resolution="1/1000"))
    Fraction(10, 1)
    >>> Meaning.from_text(old.text) == old
    True
"""

import json
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from typing import Any, NamedTuple, Self

from crdts import BoundedLWWSet
from crdts.wire import encode
from lasp_edge.folds.numbers import Resolution
from lasp_edge.variables import Variable


class Meaning(NamedTuple):
    """What the values of one variable mean.

    Attributes:
        kind: the type of its state, and its settings where these cannot change.
        events: what writes its samples, sorted; none where it holds no samples.
        resolution: the step of its samples as `numerator/denominator`; "" where it holds none.
        keyed: each key has samples of its own.
        version: of the meaning of its key function.
    """

    kind: str
    events: tuple[str, ...] = ()
    resolution: str = ""
    keyed: bool = False
    version: int = 1

    @classmethod
    def of(cls, variable: Variable, events: tuple[str, ...], resolution: Resolution | None) -> Self:
        """Return the meaning of a declared variable; a resolution is that of its samples."""
        bottom = variable.bottom
        assert bottom is not None
        kind = type(bottom).__name__
        if isinstance(bottom, BoundedLWWSet) and resolution is not None:
            return cls(kind, events, resolution.canonical, variable.keyed, variable.version)
        settings = sha256(encode(bottom)).hexdigest()[:16]
        return cls(f"{'' if variable.dynamic else 'shared '}{kind}:{settings}")

    @property
    def text(self) -> str:
        """The meaning as canonical text."""
        return json.dumps(self)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the meaning that gave `text`."""
        kind, events, *rest = json.loads(text)
        return cls(kind, tuple(events), *rest)

    def factor(self, other: "Meaning") -> Fraction | None:
        """Return by what a value is multiplied to mean `other`; None where no factor does it."""
        if not self.resolution or self._replace(resolution=other.resolution) != other:
            return None
        return Fraction(self.resolution) / Fraction(other.resolution)

    def __str__(self) -> str:
        if not self.resolution:
            return f"a {self.kind.partition(':')[0]}"
        step = Fraction(self.resolution)
        decimal = format(Decimal(step.numerator) / Decimal(step.denominator), "f")
        keys = f", by key (version {self.version})" if self.keyed else ""
        whose = " and ".join(self.events) or "no event"
        return f"samples of {whose} in steps of {decimal}{keys}"


def kept_in_words(samples: BoundedLWWSet) -> str:
    """Return which samples a set keeps.

    >>> kept_in_words(BoundedLWWSet(bound=100)), kept_in_words(BoundedLWWSet(max_age_s=60))
    ('the last 100', 'those of 60 s')
    """
    words = [] if samples.bound is None else [f"the last {samples.bound}"]
    if samples.max_age_s is not None:
        words.append(f"{'' if words else 'those '}of {samples.max_age_s:.15g} s")
    return " ".join(words) or "all"


def program_digest(name: str, *declared: Iterable[tuple[Any, ...]]) -> str:
    """Return 16 hexadecimal digits that tell a program from others.

    Args:
        name: the program's.
        *declared: the rows of each table of declarations, in any order.
    """
    text = json.dumps([name, *[sorted(rows, key=str) for rows in declared]])
    return sha256(text.encode()).hexdigest()[:16]
