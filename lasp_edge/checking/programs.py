"""The folds of a program, and for each law whether they keep it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from lasp_edge.checking.laws import (
    LAWS,
    Law,
    combine_follows_the_columns,
    retract_undoes_combine,
    sliding_equals_recomputation,
    statement,
)
from lasp_edge.checking.search import Broken, FoldUnderTest, smallest_broken
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import LIMIT, PlausibleRange
from lasp_edge.folds.structs import Struct
from lasp_edge.language.declarations import EventType, LocalFold, Window
from lasp_edge.language.plan import Plan

EXAMPLES = 200
"""Cases drawn at random for each law, after all small ones."""

_TYPICAL = (0, 1, -1, 20, 2_000, -2_000, 10**6, -(10**6))


@dataclass(frozen=True, slots=True)
class NamedFold:
    """A fold of a program, at the resolution of its samples.

    Attributes:
        where: where it stands, such as `window temperature_by_room`; several where it is one fold.
        plausible: the values that it is given, of a fold of the user's own; None where all can be.
    """

    where: tuple[str, ...]
    fold: Fold
    plausible: PlausibleRange | None = None


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
    found = [
        (f"window {each.name}", each.fold, _plausible_in(plan, each))
        for each in plan.windows.values()
    ]
    found += [
        (f"fold {each.name}", each.fold, _plausible_of(plan, each))
        for each in plan.local_folds.values()
    ]
    known: dict[tuple[type[Fold], int, str], tuple[list[str], NamedFold]] = {}
    for where, outer, readings in found:
        for inside, fold in nested_folds(where, outer):
            plausible = None if fold.is_built_in else readings
            text = f"{fold.parameters} {fold.columns} {fold.parts} {plausible and plausible.span}"
            named = NamedFold((), fold, plausible)
            known.setdefault((type(fold), fold.version, text), ([], named))[0].append(inside)
    return [replace(named, where=tuple(where)) for where, named in known.values()]


def _plausible_in(plan: Plan, window: Window) -> PlausibleRange | None:
    """Return the range of the readings that a window counts as they are."""
    event = None if window.controls.value else plan.events.get(window.source.name)
    return None if event is None else event.plausible


def _plausible_of(plan: Plan, made: LocalFold) -> PlausibleRange | None:
    """Return the range of the readings that a fold is given, where nothing else is.

    Of a value of several others it is the narrowest range of theirs: they are tried on equal ones.
    """
    events = [collected_event(plan, name) for name in sorted(made.sources)]
    ranges = [each.plausible for each in events if each is not None and each.plausible is not None]
    if len(ranges) < len(events):
        return None
    return min(ranges, key=lambda each: each.nearest(LIMIT) - each.nearest(-LIMIT))


def collected_event(plan: Plan, variable: str) -> EventType | None:
    """Return the event that a variable collects, where nothing else writes the variable."""
    collected = [
        plan.events[event]
        for event, several in plan.collections.items()
        if any(each.name == variable for each in several)
    ]
    is_alone = len(collected) == 1 and not any(plan.functions.handlers.values())
    return collected[0] if is_alone else None


def nested_folds(where: str, fold: Fold) -> Iterator[tuple[str, Fold]]:
    """Yield a fold, and those inside of it, each with where it stands."""
    yield where, fold
    if isinstance(fold, Struct):
        for part, inner in fold.inner.items():
            yield from nested_folds(f"{where}, part {part}", inner)


def verdicts(
    fold: Fold,
    *,
    examples: int = EXAMPLES,
    seed: int = 0,
    plausible: PlausibleRange | None = None,
) -> list[LawVerdict]:
    """Return whether a fold keeps each law.

    For each law, `examples` cases of plausible values are drawn after all small ones.

    Raises:
        ValueError: the fold refuses all samples that were tried.
    """
    tested = FoldUnderTest(fold, plausible)
    typical = list(dict.fromkeys(map(tested.nearest, _TYPICAL)))
    if not any(tested.accepts((value, 0)) for value in typical):
        raise ValueError(f"{fold!r} lifts none of the samples {typical}")
    found: list[LawVerdict] = []
    for law in LAWS:
        skipped = _reason_to_skip(law, fold, found)
        given = (law, fold, examples, Random(seed), plausible)
        broken = None if skipped else smallest_broken(*given)
        if broken and broken.error and broken.error in [v.broken.error for v in found if v.broken]:
            broken, skipped = None, "the fold raises the same error there"
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
