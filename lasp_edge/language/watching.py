"""What a program watches: the values of folds, for its handlers and alerts. See `acting`."""

from typing import Any

from lasp_edge.language.acting import Watched
from lasp_edge.language.arguments import need_function
from lasp_edge.language.declarations import TEXT, UserHandler
from lasp_edge.language.draft import Draft
from lasp_edge.language.levels import declared_levels
from lasp_edge.language.triggers import Trigger, microseconds
from lasp_edge.variables import named


def watch_value(
    draft: Draft, variable: Any, part: str | None, levels: dict[str, Any], every_s: float | None
) -> Watched:
    """Return what a handler of `on_value` watches, still without the handler's name.

    Args:
        draft: of the program.
        variable: a fold's target, or its name.
        part: see `Program.on_value`.
        levels: the arguments above, below and for_s.
        every_s: see `Program.on_value`.

    Raises:
        ValueError: something does not fit.
    """
    name = variable if isinstance(variable, str) else draft.variable(variable).name
    if not draft.is_folded(name):
        raise ValueError(
            f"on_value: a value that fold or fold_dynamic makes is needed, not {name!r}"
        )
    what = f"on_value of {name!r}"
    trigger: Trigger | None = None
    given: tuple[tuple[str, Any], ...] = ()
    if levels["above"] is not None or levels["below"] is not None:
        trigger, given = declared_levels(draft, what, levels)
    elif levels["for_s"]:
        raise ValueError(f"{what}: for_s needs above= or below=")
    part = _part(draft.fold_of(name).parts, part, what, needed=trigger is not None)
    every_us = None if every_s is None else microseconds(every_s, f"{what}: every_s")
    return Watched("", name, part, trigger, every_us, given)


def react(draft: Draft, watched: Watched, handler: UserHandler) -> None:
    """Let a handler run for what is watched.

    Raises:
        ValueError: it is no function.
    """
    need_function(handler, "on_value", "(value, update)")
    made = watched._replace(name=getattr(handler, "__name__", type(handler).__name__))
    while made.identity in {known.identity for known in draft.reactions}:
        made = made._replace(name=made.name + "'")  # two handlers of one name
    draft.reactions.append(made)
    draft.reacting.append(handler)


def declare_alert(
    draft: Draft, name: str, variable: Any, part: str | None, levels: dict[str, Any]
) -> None:
    """Declare an alert; `levels` are its arguments above, below, hysteresis and for_s.

    Raises:
        ValueError: the name is taken, or something does not fit.
    """
    what = f"alert {named(name, 'alert')!r}"
    if name in draft.alerts:
        raise ValueError(f"{what}: the name is taken")
    watched, parts = _target(draft, variable, what)
    trigger, given = declared_levels(draft, what, levels)
    part = _part(parts, part, what, needed=True)
    draft.alerts[name] = Watched(name, watched, part, trigger, None, given)


def _target(draft: Draft, watched: Any, what: str) -> tuple[str, tuple[str, ...]]:
    """Return name and parts of a fold's target, window or result, given itself or its name."""
    name = watched if isinstance(watched, str) else getattr(watched, "name", None)
    if name in draft.windows and watched in {name, draft.windows[name]}:
        return str(name), draft.windows[name].fold.parts
    if name in draft.streams and watched in {name, draft.streams[name]}:
        return str(name), _parts_of_rows(draft, str(name), what)
    if not isinstance(watched, str):
        name = draft.variable(watched).name
    if not draft.is_folded(str(name)):
        raise ValueError(
            f"{what}: a value that fold or fold_dynamic makes, a window or a result is needed, "
            f"not {name!r}"
        )
    return str(name), draft.fold_of(str(name)).parts


def _parts_of_rows(draft: Draft, name: str, what: str) -> tuple[str, ...]:
    """Return the parts of a result that are numbers."""
    result = draft.stream_results.get(name)
    if result is None:
        raise ValueError(f"{what}: {name!r} has no rows to watch; write program.result({name})")
    parts = [each for each, step in result.parts if step != TEXT and each not in result.times]
    if not parts:
        raise ValueError(
            f"{what}: a number is compared, and the rows of {name!r} have none; give them one, "
            f'such as ones = program.map({name}, lambda event: 1, "ones", resolution="1"), and '
            "watch program.result(ones)"
        )
    return tuple(parts)


def _part(parts: tuple[str, ...], part: str | None, what: str, *, needed: bool) -> str:
    """Return the part that is watched; "" where none is, and none is needed."""
    if part is None:
        if len(parts) > 1 and needed:
            raise ValueError(
                f"{what}: the value has the parts {', '.join(parts)}; say which one, such as "
                f"part={parts[0]!r}"
            )
        return parts[0] if len(parts) == 1 else ""
    if part not in parts:
        raise ValueError(f"{what}: the value has the parts {', '.join(parts)}, and no {part!r}")
    return part
