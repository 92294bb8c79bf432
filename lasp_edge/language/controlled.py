"""Windows that parameters change, as they are declared.

Everything is tried here with the defaults, so that a mistake is an error at once: the fold's
function is called, and with each choice of each parameter alone. What only other values show (a
slide beyond the size, a fold with other columns) is kept from counting where the values are read
(`lasp_edge.language.regimes`), and refused by `lasp-edge set`.
"""

import inspect
import json
from collections.abc import Iterator
from typing import Any

from lasp_edge.errors import pass_interrupt
from lasp_edge.folds.fold import Fold, as_fold
from lasp_edge.language.arguments import need_function, need_key, size_and_slide
from lasp_edge.language.declarations import Parameter, Window, WindowControls
from lasp_edge.language.draft import Draft
from lasp_edge.language.parameters import At, meaning, plain
from lasp_edge.language.windowing import WindowArguments, add_window, words_of
from lasp_edge.protocol.streams import stream_id


def declare_controlled(
    draft: Draft, given: WindowArguments, uses: tuple[Any, ...], value: Any, where: Any
) -> Window | None:
    """Declare a window that parameters change; None where it has nothing to do with them.

    Raises:
        ValueError: something does not fit; nothing is declared then.
    """
    functions = {"value": value, "where": where}
    functions["fold"] = given.fold if _is_function_of_parameters(given.fold) else None
    functions = {name: each for name, each in functions.items() if each is not None}
    sizes = [each for each in (given.size_s, given.slide_s) if isinstance(each, Parameter)]
    if not (uses or sizes or functions):
        return None
    what, controls = given.what, _controls(draft, given, uses, functions)
    need_key(given.key, given.version, what)
    defaults = {each.name: each.default for each in controls.parameters}
    size_us, slide_us = sizes_of(what, given.size_s, given.slide_s, defaults)
    made = _fold_of(given, controls, defaults)
    for values in _choices(controls, defaults) if controls.fold else ():
        need_same_columns(made, _fold_of(given, controls, values), what)
    draft.check_columns(made)
    words = words_of(given, made, size_us, slide_us)
    stream = stream_id(draft.name, "window", *words, json.dumps(_plain(controls, given)))
    at = (given.name, given.event, made, size_us, slide_us, given.key is not None, given.version)
    draft.controlled |= {(given.name, name): each for name, each in functions.items()}
    return add_window(draft, given.key, Window(*at, stream, given.tentative_after_us, controls))


def _controls(
    draft: Draft, given: WindowArguments, uses: tuple[Any, ...], functions: dict[str, Any]
) -> WindowControls:
    """Return what parameters change of a window.

    Raises:
        ValueError: something does not fit.
    """
    what = given.what
    if given.of_stream:
        raise ValueError(f"{what}: parameters are for windows over events, not over streams")
    for name in ("value", "where"):
        if name in functions:
            need_function(functions[name], f"{what}: {name}", "(event, at)")
    if uses and not functions:
        raise ValueError(
            f"{what}: uses= names what value=, where= or the fold's function asks for, and it has "
            "none of these"
        )
    known = {each.name: each for each in (_known(draft, one, what) for one in uses)}
    return WindowControls(
        tuple(known[name] for name in sorted(known)),
        _of_size(draft, given.size_s, what),
        _of_size(draft, given.slide_s, what),
        slides_by_size=given.slide_s is None,
        fold="fold" in functions,
        value="value" in functions,
        where="where" in functions,
    )


def sizes_of(what: str, size_s: Any, slide_s: Any, values: dict[str, str]) -> tuple[int, int]:
    """Return size and slide in microseconds, given as numbers or parameters.

    Raises:
        ValueError: they do not fit each other.
    """
    found = [
        plain(each, values[each.name]) if isinstance(each, Parameter) else each
        for each in (size_s, size_s if slide_s is None else slide_s)
    ]
    return size_and_slide(what, *found)


def fold_at(function: Any, window: str, at: At) -> Fold:
    """Return what a fold's function gives for some values.

    Raises:
        ValueError: it gives no fold, or raises something itself.
    """
    try:
        return as_fold(function(at))
    except BaseException as error:
        pass_interrupt(error)
        raise ValueError(f"window {window!r}: its fold cannot be made: {error}") from error


def need_same_columns(first: Fold, other: Fold, what: str) -> None:
    """Check that two folds of one window have the same columns and parts.

    Raises:
        ValueError: they differ.
    """
    if (first.columns, first.parts) != (other.columns, other.parts):
        raise ValueError(
            f"{what}: the columns and parts of its fold must not depend on parameters: "
            f"{first!r} has {first.columns_named}, {other!r} has {other.columns_named}"
        )


def check_used(draft: Draft) -> None:
    """Check that something uses each parameter.

    Raises:
        ValueError: nothing does.
    """
    used = {each.name for window in draft.windows.values() for each in window.controls.parameters}
    used |= {variable.bound for variable in draft.variables.values() if variable.bound}
    for name in draft.parameters:
        if name not in used:
            raise ValueError(
                f"parameter {name!r}: nothing uses it; name it in uses=(...) of a window, or give "
                "it as its size or slide, or as the bound of a BoundedLWWSet"
            )


def _is_function_of_parameters(fold: Any) -> bool:
    """Return whether something gives a fold of `at`, and is neither a fold nor a factory."""
    if isinstance(fold, Fold | type) or not callable(fold):
        return False
    try:
        inspect.signature(fold).bind(None)
    except (TypeError, ValueError):
        return False
    try:
        inspect.signature(fold).bind()
    except TypeError:
        return True
    return False


def _known(draft: Draft, given: Any, what: str) -> Parameter:
    name = getattr(given, "name", given)
    known = draft.parameters.get(name) if isinstance(name, str) else None
    if known is None or (isinstance(given, Parameter) and given != known):
        raise ValueError(
            f"{what}: {given!r} is not a parameter of program {draft.name!r}; "
            "write above = program.parameter(...), and uses=(above,)"
        )
    return known


def _of_size(draft: Draft, given: Any, what: str) -> Parameter | None:
    if not isinstance(given, Parameter):
        return None
    known = _known(draft, given, what)
    if known.resolution is None:
        raise ValueError(f"{what}: {known.name!r} is a text; a size or slide is a number")
    return known


def _fold_of(given: WindowArguments, controls: WindowControls, values: dict[str, str]) -> Fold:
    if not controls.fold:
        return as_fold(given.fold).at(given.event.resolution)
    at = At({each.name: plain(each, values[each.name]) for each in controls.uses})
    return fold_at(given.fold, given.name, at).at(given.event.resolution)


def _choices(controls: WindowControls, defaults: dict[str, str]) -> Iterator[dict[str, str]]:
    """Yield the values in which one parameter has another of its choices."""
    for each in controls.uses:
        for choice in each.choices:
            yield defaults | {each.name: choice}


def _plain(controls: WindowControls, given: WindowArguments) -> list[Any]:
    """Return what tells a window with parameters from others, for its stream's id."""
    shape = [
        each.name if isinstance(each, Parameter) else each for each in (given.size_s, given.slide_s)
    ]
    defaults = [(each.name, meaning(each, each.default)) for each in controls.parameters]
    return [defaults, shape, controls.fold, controls.value, controls.where]
