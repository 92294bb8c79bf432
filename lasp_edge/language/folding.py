"""Folds over all devices, as they are declared: of their partials, or of their results."""

from typing import Any

from lasp_edge.folds.fold import as_fold
from lasp_edge.folds.numbers import Resolution
from lasp_edge.language.draft import Draft
from lasp_edge.language.triggers import stale_time
from lasp_edge.variables import Variable

_ONE = Resolution("1")


def declare_dynamic_fold(
    draft: Draft,
    source: Variable,
    fold: Any,
    target: Any,
    part: str | None,
    resolution: str | None,
    stale_after_s: float | None,
) -> Variable:
    """Declare a fold over all devices; its arguments are those of `Program.fold_dynamic`.

    Raises:
        ValueError: something does not fit; nothing is declared then.
    """
    if target is None:
        fold, target = None, fold
    local = draft.variable(source).name
    if local not in draft.local:
        raise ValueError(f"fold_dynamic: {local!r} must be the target of a fold")
    if not isinstance(target, Variable | str):
        raise ValueError(
            "fold_dynamic: write fold_dynamic(local, target) or fold_dynamic(local, fold, "
            f"target); the target is a name or a declared variable, not {target!r}"
        )
    folded, made = draft.local[local]
    given = made if fold is None else draft.fold_over(folded, as_fold(fold))
    is_other = given.fingerprint(_ONE) != made.fingerprint(_ONE)
    name = target if isinstance(target, str) else target.name
    stale_us = None if stale_after_s is None else stale_time(stale_after_s, name)
    if is_other or part is not None or resolution is not None:
        from lasp_edge.language.combining import local_of_results  # noqa: PLC0415 - few use it

        derived, local = local_of_results(draft, local, given, target, part, resolution)
    else:
        derived = draft.add_target(target, made)
    draft.dynamic[derived.name] = local
    if stale_us is not None:
        draft.stale_us[derived.name] = stale_us
    return derived
