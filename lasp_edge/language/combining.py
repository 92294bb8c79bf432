"""Values made of values: a function of several, and a fold over the results of all devices.

Both are local folds whose partials are made of others (`lasp_edge.folds.derived`), and dynamic
folds over these. So the fleet agrees on them, sinks store them, and alerts watch them as any value.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from lasp_edge.folds.derived import CombinedFold, OfResults, PartOfCombined
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import Resolution
from lasp_edge.language.arguments import need_function, need_key
from lasp_edge.language.draft import Draft, MadeOf
from lasp_edge.variables import Variable, named


def combine_values(
    draft: Draft,
    name: str,
    function: Callable[..., Any],
    values: Sequence[Any],
    resolution: Any,
    version: int,
) -> Variable:
    """Declare a value that a function makes of others; see `Program.combine`.

    Raises:
        ValueError: something does not fit; nothing is declared then.
    """
    what = f"combine {named(name, 'value')!r}"
    need_function(function, what, "of the values")
    need_key(None, version, what)
    targets = [draft.variable(each).name for each in values]
    is_dynamic, stale_us = _common(draft, targets, what)
    locals_of = [draft.dynamic.get(each, each) for each in targets]
    _need_combinable(draft, locals_of, what)
    step, arguments = Resolution(resolution), _arguments(function, len(targets), what)
    for argument, given in zip(arguments, targets, strict=True):
        if argument != given and argument in targets:
            raise ValueError(
                f"{what}: its function calls {given!r} {argument}, which is another of the "
                f"values; they are given in the order {', '.join(targets)}"
            )

    def made(others: Sequence[_Folded], _step: Resolution) -> Fold:
        found = zip(arguments, others, strict=True)
        parts = [PartOfCombined(argument, each.fold, each.resolution) for argument, each in found]
        return CombinedFold(name if name.isidentifier() else "value", function, parts, version)

    fold = made([_Sketched(draft.local[each][1]) for each in locals_of], step)
    local = f"{name}: of each device" if is_dynamic else name
    source = draft.local[locals_of[0]][0]
    draft.check_columns(fold.checked())
    target = draft.add_target(name, fold)
    _declare(draft, local, source, fold, MadeOf(tuple(locals_of), step, made))
    if not is_dynamic:
        return target
    draft.dynamic[name] = local
    if stale_us is not None:
        draft.stale_us[name] = stale_us
    return target


def _common(draft: Draft, targets: Sequence[str], what: str) -> tuple[bool, int | None]:
    """Return whether values are of the fleet, and after which silence a device does not count.

    Raises:
        ValueError: some are not what the others are.
    """
    if not targets or not all(map(draft.is_folded, targets)):
        others = [repr(each) for each in targets if not draft.is_folded(each)]
        of = f", not {', '.join(others)}" if others else ""
        raise ValueError(f"{what}: values that fold or fold_dynamic made are needed{of}")
    dynamic = {each in draft.dynamic for each in targets}
    if len(dynamic) > 1:
        raise ValueError(f"{what}: values of the fleet, or of each device, are needed, not of both")
    stale = {draft.stale_us.get(each) for each in targets}
    if len(stale) > 1:
        raise ValueError(f"{what}: all of them need one stale_after_s=, or not one has it")
    return dynamic.pop(), stale.pop()


class _Folded(Protocol):
    """A fold, and the step of its samples."""

    @property
    def fold(self) -> Fold:
        """The fold."""

    @property
    def resolution(self) -> Resolution:
        """The step."""


class _Sketched(NamedTuple):
    """A fold before its resolution is known."""

    fold: Fold
    resolution: Resolution = Resolution("1")


def local_of_results(
    draft: Draft, source: str, fold: Fold, target: Any, part: str | None, resolution: Any
) -> tuple[Variable, str]:
    """Declare the target of a fold over one number a device, and the local fold that gives it.

    Raises:
        ValueError: something does not fit; nothing is declared then.
    """
    to = getattr(target, "name", target)
    what = f"fold_dynamic {to!r}"
    samples, inner = draft.local[source]
    _need_combinable(draft, [source], what)
    if part is None:
        if len(inner.parts) > 1:
            raise ValueError(
                f"{what}: {source!r} has the parts {', '.join(inner.parts)}; name one, such as "
                f"part={inner.parts[0]!r}"
            )
        part = inner.parts[0]
    if part not in inner.parts:
        raise ValueError(f"{what}: {source!r} has the parts {', '.join(inner.parts)}, no {part!r}")
    if any(column.by for column in fold.columns):
        raise ValueError(f"{what}: {fold!r} asks for times, and a result of a device has none")
    step = None if resolution is None else Resolution(resolution)
    chosen = part

    def made(others: Sequence[_Folded], results: Resolution) -> Fold:
        return OfResults(fold, others[0].fold, chosen, others[0].resolution, results)

    sketch = made([_Sketched(inner)], step or Resolution("1"))
    draft.check_columns(sketch.checked())
    derived, name = draft.add_target(target, fold), f"{to}: of each device"
    _declare(draft, name, samples, sketch, MadeOf((source,), step, made))
    return derived, name


def _declare(draft: Draft, name: str, source: Variable, fold: Fold, made: MadeOf) -> None:
    if name not in draft.variables:
        draft.add_target(name, fold)
    draft.local[name], draft.made_of[name] = (source, fold), made


def _need_combinable(draft: Draft, targets: Sequence[str], what: str) -> None:
    sources = [draft.local[each][0] for each in targets]
    for source in sources:
        if source.bound is not None:
            raise ValueError(
                f"{what}: the bound of {source.name!r} is a parameter: devices under another bound "
                "do not count in its value, and would in this one; write a number, as in "
                "BoundedLWWSet(bound=100)"
            )
    if len({source.keyed for source in sources}) > 1:
        raise ValueError(f"{what}: all of them need key=, or not one has it")


def _arguments(function: Callable[..., Any], count: int, what: str) -> list[str]:
    """Return the names of a function's arguments: they name columns of the lake.

    Raises:
        ValueError: it takes another number of values.
    """
    try:
        bound = inspect.signature(function).bind(*range(count))
    except TypeError as error:
        raise ValueError(f"{what}: its function is called with {count} values: {error}") from None
    except ValueError:  # some built-in functions have no signature
        bound = None
    names = list(bound.arguments) if bound is not None and not bound.kwargs else []
    return names if len(names) == count else [f"value_{n + 1}" for n in range(count)]
