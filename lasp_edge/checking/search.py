"""The search for a case that breaks a law, and its smallest form.

Small cases are tried one by one, then larger ones by a seeded generator: few samples, values near
zero, near the ends of the range and in between, times that are often equal. What breaks a law is
made smaller while it still breaks it: samples are left out, values and times moved towards zero by
every power of two. So the same fold and seed give the same counter-example on every machine, and
nothing has to be installed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from inspect import signature
from itertools import groupby, product
from random import Random
from typing import Any

from lasp_edge.checking.endless import EndlessCallError
from lasp_edge.checking.laws import Law, TimedValue, lower_is_total, partial_of
from lasp_edge.errors import pass_interrupt
from lasp_edge.folds.derived import CombinedFold
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import LIMIT, PlausibleRange

Case = tuple[tuple[TimedValue, ...], ...]
"""The samples of each partial that a law takes."""

_SMALL: tuple[tuple[TimedValue, ...], ...] = ((), ((0, 0),), ((1, 0),), ((2, 1),), ((-1, 2),))
_MOST_SAMPLES = 4
LONG_CASES = 20
"""Cases of many samples that are drawn, where a user wrote what a law tries."""
_COUNTS = (1, 400, 2_000, 2_000)
_BUILT_IN = "lasp_edge.folds."
"""Where the methods of built-in folds are defined."""
_RECENT_US = 1_700_000_000_000_000
_TRIES = 20
_MOST_SHRINKING = 2_000
"""Cases that are tried to make a counter-example smaller: a second or two."""
_MANY = 200
"""Samples from which on a case counts as two."""
_RAISES = "it raises "
_RANGE = (
    "so say which readings there can be, by event(..., least=, most=), or give what the fold makes "
    "a coarser resolution="
)


@dataclass(frozen=True, slots=True)
class Broken:
    """A case that breaks a law.

    Attributes:
        case: the samples of each partial.
        sides: each computation and its value; or the error.
    """

    law: Law
    fold: Fold
    case: Case
    sides: tuple[tuple[str, Any], ...]

    @property
    def error(self) -> tuple[str, str] | None:
        """The kind and text of the error that the case ends with, if it does."""
        what, value = self.sides[-1]
        return (what, str(value)) if what.startswith(_RAISES) else None

    def lines(self) -> list[str]:
        """Return the case and the two sides, for people."""
        lines = []
        for name, samples in zip("abc", self.case, strict=False):
            counted = ((sample, len(list(equal))) for sample, equal in groupby(samples))
            lifts = (f"{n:,} times " * (n > 1) + f"lift{sample}" for sample, n in counted)
            chosen = ", ".join(lifts)
            made = f", combined: {_shown(self.fold, samples)}" if len(samples) > 1 else ""
            value = _shown(self.fold, samples) if len(samples) < 2 else ""  # noqa: PLR2004
            lines.append(f"{name} = {chosen or 'zero'}{made}{' = ' if value else ''}{value}")
        lines += [f"{what} = {value!r}" for what, value in self.sides]
        return lines + [_RANGE] * str(self.sides[-1][1]).startswith("out of range")


def _shown(fold: Fold, samples: tuple[TimedValue, ...]) -> str:
    try:
        return repr(partial_of(fold, samples))
    except EndlessCallError:
        raise
    except BaseException as error:  # noqa: BLE001 - the fold is the user's and may raise anything
        pass_interrupt(error)
        return f"{type(error).__name__}: {error}"


@dataclass(frozen=True, slots=True)
class FoldUnderTest:
    """A fold, and the samples that it may be given.

    Attributes:
        plausible: the range of their values; None where all are.
    """

    fold: Fold
    plausible: PlausibleRange | None = None

    def accepts(self, sample: TimedValue) -> bool:
        """Return whether the fold lifts a sample; by a ValueError it may refuse one.

        Whatever else it raises breaks the law that is tried on it.
        """
        if self.plausible is not None and not self.plausible.has(sample[0]):
            return False
        try:
            self.fold.lift(*sample)
        except ValueError:
            return False
        except EndlessCallError:
            raise
        except BaseException as error:  # noqa: BLE001 - the fold may raise anything
            pass_interrupt(error)
        return True

    def nearest(self, value: int) -> int:
        """Return the plausible value that is nearest to one."""
        return value if self.plausible is None else self.plausible.nearest(value)


def smallest_broken(
    law: Law,
    fold: Fold,
    examples: int,
    random: Random,
    plausible: PlausibleRange | None = None,
) -> Broken | None:
    """Return a smallest case that breaks the law, or None where every case that was tried holds.

    `examples` cases are drawn from `random` after all small ones, all with plausible values.
    """
    tested = FoldUnderTest(fold, plausible)
    long = LONG_CASES if examples and _has_own(fold, law) else 0
    for case in _cases(len(signature(law).parameters) - 1, tested, (examples, long), random):
        broken = _tried(law, tested, case)
        if broken:
            return _shrunk(broken, tested)
    return None


def _tried(law: Law, tested: FoldUnderTest, case: Case) -> Broken | None:
    """Return the breach, if the case breaks the law."""
    sides: list[tuple[str, Any]] = []
    fold = tested.fold
    try:
        if not all(tested.accepts(sample) for samples in case for sample in {*samples}):
            return None
        for what, value in law(fold, *case):
            if sides and value != sides[0][1]:
                return Broken(law, fold, case, (sides[0], (what, value)))
            sides.append((what, value))
    except EndlessCallError:
        raise
    except BaseException as error:  # noqa: BLE001 - the fold is the user's and may raise anything
        pass_interrupt(error)
        raised = (f"{_RAISES}{type(error).__name__}", str(error))
        return Broken(law, fold, case, (*sides[:1], raised))
    return None


def _cases(
    operands: int, tested: FoldUnderTest, counts: tuple[int, int], random: Random
) -> Iterator[Case]:
    """Yield small cases, then drawn ones, then ones of many samples: `counts` of the two."""
    near = tested.nearest(0)
    small = [tuple([(near + value, at) for value, at in samples]) for samples in _SMALL]
    yield from product(small, repeat=operands)
    if operands:
        for drawn, count in zip((_drawn, _many), counts, strict=True):
            for _ in range(count):
                yield tuple(drawn(tested, random) for _ in range(operands))


def _has_own(fold: Fold, law: Law) -> bool:
    """Return whether a user wrote what a law tries: a fold's methods, or a function of results.

    The folds of which a function takes the results are tried by themselves.
    """
    own = ("combine", "retract", "lift_column")
    kinds = [type(each) for each in (fold, fold.outer) if each is not None]
    methods = [getattr(kind, name) for kind in kinds for name in own]
    is_function = isinstance(fold, CombinedFold) and law is lower_is_total
    return is_function or any(not each.__module__.startswith(_BUILT_IN) for each in methods)


def _many(tested: FoldUnderTest, random: Random) -> tuple[TimedValue, ...]:
    """Return many equal samples: what a fold does may change with their count or total."""
    ends = [tested.nearest(end) for end in (LIMIT - 1, 1 - LIMIT)]
    sample = (random.choice((*ends, ends[0], tested.nearest(_value(random)))), _time_us(random))
    return (sample,) * (random.choice(_COUNTS) if tested.accepts(sample) else 0)


def _drawn(tested: FoldUnderTest, random: Random) -> tuple[TimedValue, ...]:
    samples = []
    for _ in range(random.randint(0, _MOST_SAMPLES)):
        for _ in range(_TRIES):
            sample = (tested.nearest(_value(random)), _time_us(random))
            if tested.accepts(sample):
                samples.append(sample)
                break
    return tuple(samples)


def _value(random: Random) -> int:
    kind = random.randrange(4)
    if kind == 0:
        return random.randint(-3, 3)
    if kind == 1:
        return random.randint(-5_000, 5_000)
    if kind == 2:  # noqa: PLR2004
        return random.choice((-1, 1)) * (LIMIT - 1 - random.randrange(3))
    return random.choice((-1, 1)) * random.getrandbits(random.randint(1, 31))


def _time_us(random: Random) -> int:
    return random.choice((0, _RECENT_US)) + random.randrange(4)


def _shrunk(broken: Broken, tested: FoldUnderTest) -> Broken:
    """Return a case that breaks the law and of which no simpler one was found that does.

    After `_MOST_SHRINKING` cases it ends with the simplest so far: where two values must differ by
    little, each could be made smaller by 1, in turn, without end.
    """
    left = _MOST_SHRINKING
    while True:
        for case in _simpler(broken.case):
            left -= 1 + sum(map(len, case)) // _MANY
            smaller = _tried(broken.law, tested, case) if left > 0 else None
            if smaller:
                broken = smaller
                break
        else:
            return broken


def _simpler(case: Case) -> Iterator[Case]:
    """Yield simpler cases: with fewer samples, or as many of which some are nearer to zero."""
    for at, samples in enumerate(case):
        half = len(samples) // 2 if len(samples) > 2 * _MOST_SAMPLES else 0
        yield from (_with(case, at, each) for each in (samples[:half], samples[half:]) if half)
    for at, samples in enumerate(case):
        for index, (value, time_us) in enumerate(samples):
            before, after = samples[:index], samples[index + 1 :]
            yield _with(case, at, before + after)
            for smaller in _nearer_to_zero(value):
                yield _with(case, at, (*before, (smaller, time_us), *after))
            for smaller in _nearer_to_zero(time_us):
                yield _with(case, at, (*before, (value, smaller), *after))
    for value in sorted({value for samples in case for value, _ in samples}):
        for smaller in _nearer_to_zero(value):  # equal values may have to stay equal
            yield tuple(
                tuple((smaller if v == value else v, time_us) for v, time_us in samples)
                for samples in case
            )


def _with(case: Case, at: int, samples: tuple[TimedValue, ...]) -> Case:
    return (*case[:at], samples, *case[at + 1 :])


def _nearer_to_zero(number: int) -> Iterator[int]:
    """Yield 0, the number without its sign, and the number less each power of two below it."""
    if not number:
        return
    yield 0
    if number < 0:
        yield -number
    for power in reversed(range((abs(number) - 1).bit_length())):
        yield number - (1 << power if number > 0 else -(1 << power))
