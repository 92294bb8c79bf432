"""The folds of a program, and for each law whether they keep it."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from lasp_edge.checking.laws import (
    LAWS,
    Law,
    combine_follows_the_columns,
    retract_undoes_combine,
    sliding_equals_recomputation,
    statement,
)
from lasp_edge.checking.search import Broken, accepts, smallest_broken
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.structs import Struct
from lasp_edge.language.plan import Plan

EXAMPLES = 200
"""Cases drawn at random for each law, after all small ones."""

_TYPICAL = [(value, 0) for value in (0, 1, -1, 20, 2_000, -2_000, 10**6, -(10**6))]


@dataclass(frozen=True, slots=True)
class NamedFold:
    """A fold of a program, at the resolution of its samples.

    Attributes:
        where: where it stands, such as `window temperature_by_room`; several where it is one fold.
    """

    where: tuple[str, ...]
    fold: Fold


@dataclass(frozen=True, slots=True)
class LawVerdict:
    """Whether a fold keeps a law.

    Attributes:
        broken: the smallest case that breaks it; None where every case that was tried holds.
        skipped: why it was not tried; empty where it was.
    """

    law: Law
    broken: Broken | None = None
    skipped: str = ""

    def lines(self) -> list[str]:
        """Return one line, and a counter-example where there is one."""
        law = statement(self.law)
        if self.broken is not None:
            return [f"FAIL  {law}", *(f"        {line}" for line in self.broken.lines())]
        return [f"SKIP  {law}: {self.skipped}" if self.skipped else f"PASS  {law}"]


def folds_of(plan: Plan) -> list[NamedFold]:
    """Return the folds of a program's windows and local folds, and those inside of structs."""
    found = [(f"window {window.name}", window.fold) for window in plan.windows.values()]
    found += [(f"fold {fold.name}", fold.fold) for fold in plan.local_folds.values()]
    known: dict[tuple[type[Fold], int, str], tuple[list[str], Fold]] = {}
    for where, outer in found:
        for inside, fold in _nested(where, outer):
            same = (type(fold), fold.version, f"{fold.parameters} {fold.columns} {fold.parts}")
            known.setdefault(same, ([], fold))[0].append(inside)
    return [NamedFold(tuple(where), fold) for where, fold in known.values()]


def _nested(where: str, fold: Fold) -> Iterator[tuple[str, Fold]]:
    yield where, fold
    if isinstance(fold, Struct):
        for part, inner in fold.inner.items():
            yield from _nested(f"{where}, part {part}", inner)


def verdicts(fold: Fold, *, examples: int = EXAMPLES, seed: int = 0) -> list[LawVerdict]:
    """Return whether a fold keeps each law.

    For each law, `examples` cases are drawn after all small ones.

    Raises:
        ValueError: the fold refuses all samples that were tried.
    """
    if not any(accepts(fold, sample) for sample in _TYPICAL):
        raise ValueError(f"{fold!r} lifts none of the samples {[v for v, _ in _TYPICAL]}")
    found: list[LawVerdict] = []
    for law in LAWS:
        skipped = _reason_to_skip(law, fold, found)
        broken = None if skipped else smallest_broken(law, fold, examples, Random(seed))
        found.append(LawVerdict(law, broken, skipped))
    return found


def _reason_to_skip(law: Law, fold: Fold, found: list[LawVerdict]) -> str:
    if law is retract_undoes_combine and not fold.invertible:
        return "the fold has no inverse and needs none"
    if law is combine_follows_the_columns and fold.combines_itself:
        return "the fold combines by itself, in Spark in Python"
    if law is sliding_equals_recomputation and any(verdict.broken for verdict in found):
        return "it follows from laws that are broken"
    return ""
