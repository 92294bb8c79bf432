"""Windows, as they are declared: the arguments become a `Window` with its stream's id.

Parameters may give size and slide, and functions that see parameters may give the fold, or say what
a reading counts as. All of it is tried here with the parameters' defaults, so that a mistake is an
error at once: the fold's function is called, and with each choice of each parameter alone. Other
values may not fit (a slide beyond the size, a fold with other columns): those do not count where
the values are read (`lasp_edge.language.forms`), and `lasp-edge set` refuses them.
"""

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from math import gcd
from typing import Any, NamedTuple

from lasp_edge.folds.fold import Fold, as_fold
from lasp_edge.language.arguments import (
    checked_condition,
    checked_whole,
    fold_at,
    need_function,
    need_key,
    need_same_columns,
    of_event_and_parameters,
    size_and_slide,
    takes_parameters,
)
from lasp_edge.language.declarations import EventType, Key, Parameter, Window, WindowControls
from lasp_edge.language.draft import Draft
from lasp_edge.language.parameters import ParameterValues, canonical, plain
from lasp_edge.protocol.streams import stream_id


class WindowArguments(NamedTuple):
    """The arguments of `Program.window`, as they were given.

    Attributes:
        event: its event, or what stands for its stream.
        of_stream: the fingerprint of that stream; empty of an event.
        tentative_after_us: for how long it waits for devices; None for the X of its sinks.
    """

    name: str
    event: EventType
    of_stream: tuple[str, ...]
    fold: Any
    size_s: Any
    slide_s: Any
    key: Key | None
    version: int
    uses: tuple[Any, ...] = ()
    value: Any = None
    where: Any = None
    tentative_after_us: int | None = None

    @property
    def what(self) -> str:
        """The window, as an error names it."""
        return f"window {self.name!r}"


def declare_window(
    draft: Draft, given: WindowArguments, over_stream: Callable[[Fold, str], Fold]
) -> Window:
    """Declare a window.

    Raises:
        ValueError: something does not fit; nothing is declared then.
    """
    what, functions = given.what, _functions(draft, given)
    controls = _controls(draft, given, functions)
    functions |= {
        name: of_event_and_parameters(functions[name]) for name in functions.keys() - {"fold"}
    }
    if "where" in functions:
        functions["where"] = checked_condition(functions["where"], f"where= of {what}")
    if "value" in functions and given.of_stream and given.event.is_unstepped:
        functions["value"] = checked_whole(
            functions["value"],
            f"value= of {what}",
            given.event.name.removeprefix(f"{given.name}: "),
        )
    need_key(given.key, given.version, what)
    defaults = {each.name: each.default for each in controls.parameters}
    size_us, slide_us = _sizes(given, defaults)
    made = _fold(given, controls, defaults)
    for values in _choices(controls, defaults) if controls.fold else ():
        need_same_columns(made, _fold(given, controls, values), what)
    made = over_stream(made, what)
    draft.check_columns(made)
    window = Window(
        given.name,
        given.event,
        made,
        size_us,
        slide_us,
        given.key is not None,
        given.version,
        stream_id(draft.name, "window", *_hashed(given, controls, made, gcd(size_us, slide_us))),
        given.tentative_after_us,
        controls,
    )
    draft.windows[window.name] = window
    draft.window_functions |= {(given.name, at): each for at, each in functions.items()}
    if given.key is not None:
        draft.keys[window.name] = given.key
    return window


def _functions(draft: Draft, given: WindowArguments) -> dict[str, Any]:
    """Return the functions that may see parameters, by "value", "where" or "fold"."""
    sees = draft.parameters or given.uses or given.value or given.where
    fold = given.fold if sees and _is_function_of_parameters(given.fold) else None
    every = {"value": given.value, "where": given.where, "fold": fold}
    return {name: each for name, each in every.items() if each is not None}


def _controls(draft: Draft, given: WindowArguments, functions: Mapping[str, Any]) -> WindowControls:
    """Return which parts of a window parameters change.

    Raises:
        ValueError: something does not fit.
    """
    what, uses = given.what, given.uses
    for name in sorted(functions.keys() - {"fold"}):
        need_function(functions[name], f"{what}: {name}", "(event) or (event, at)")
    if uses and not functions:
        raise ValueError(
            f"{what}: uses= names what value=, where= or the fold's function asks for, and it has "
            "none of these"
        )
    asking = [each for at, each in functions.items() if at == "fold" or takes_parameters(each)]
    if uses and not asking:
        raise ValueError(
            f"{what}: uses= names what its functions ask for, and none of them takes at; write "
            "lambda event, at: .., in which at[..] is a parameter's value, or leave out uses="
        )
    known = {each.name: each for each in (known_parameter(draft, one, what) for one in uses)}
    size, slide = (_of_size(draft, each, what) for each in (given.size_s, given.slide_s))
    return WindowControls(
        tuple(known[name] for name in sorted(known)),
        size,
        slide,
        slides_by_size=size is not None and given.slide_s is None,
        fold="fold" in functions,
        value="value" in functions,
        where="where" in functions,
    )


def _sizes(given: WindowArguments, values: Mapping[str, str]) -> tuple[int, int]:
    """Return size and slide in microseconds, given as numbers or parameters.

    Raises:
        ValueError: they do not fit each other.
    """
    slide_s = given.size_s if given.slide_s is None else given.slide_s
    found = [
        plain(each, values[each.name]) if isinstance(each, Parameter) else each
        for each in (given.size_s, slide_s)
    ]
    return size_and_slide(given.what, *found)


def _fold(given: WindowArguments, controls: WindowControls, values: Mapping[str, str]) -> Fold:
    made = given.fold
    if controls.fold:
        seen = {each.name: plain(each, values[each.name]) for each in controls.uses}
        made = fold_at(given.fold, given.name, ParameterValues(seen))
    return as_fold(made, of_events=True).at(given.event.resolution)


def _choices(controls: WindowControls, defaults: dict[str, str]) -> Iterator[dict[str, str]]:
    """Yield the values in which one parameter has another of its choices."""
    for each in controls.uses:
        for choice in each.choices:
            yield defaults | {each.name: choice}


def _hashed(
    given: WindowArguments, controls: WindowControls, fold: Fold, span_us: int
) -> Iterator[object]:
    """Yield what a window's stream id is a hash of: it is in every store and lake for ever."""
    fingerprint = fold.fingerprint(given.event.resolution)
    yield from (given.name, given.event.name, span_us, given.version, fingerprint)
    yield from given.of_stream
    if controls != WindowControls():
        shape = [getattr(each, "name", each) for each in (given.size_s, given.slide_s)]
        defaults = [(each.name, canonical(each, each.default)) for each in controls.parameters]
        yield json.dumps([defaults, shape, controls.fold, controls.value, controls.where])


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


def known_parameter(draft: Draft, given: Any, what: str) -> Parameter:
    """Return a parameter of the program, given itself or by its name.

    Raises:
        ValueError: the program has no such parameter.
    """
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
    known = known_parameter(draft, given, what)
    if known.resolution is None:
        raise ValueError(f"{what}: {known.name!r} is a text; a size or slide is a number")
    return known
