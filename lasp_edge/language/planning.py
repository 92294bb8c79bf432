"""From a draft to a plan: what can be checked and worked out only when all is declared."""

from collections.abc import Mapping

from crdts import BoundedLWWSet
from lasp_edge.aggregates.absence import Absent
from lasp_edge.folds.numbers import Resolution
from lasp_edge.language.acting import fold_targets_named
from lasp_edge.language.arguments import checked_key
from lasp_edge.language.declarations import DynamicFold, LocalFold
from lasp_edge.language.draft import Draft
from lasp_edge.language.meaning import Meaning
from lasp_edge.language.plan import Functions, Plan
from lasp_edge.language.updates import reaction_source, result_source
from lasp_edge.language.writes import variables_named
from lasp_edge.protocol.streams import stream_id
from lasp_edge.variables import Variable


def plan_of(draft: Draft) -> Plan:
    """Return the plan of a draft.

    Raises:
        ValueError: it cannot be run as it stands; the text says what is needed.
    """
    if not draft.events:
        raise ValueError(f"program {draft.name!r} declares no event")
    resolutions = {
        name: _resolution(draft, variable)
        for name, variable in draft.variables.items()
        if isinstance(variable.bottom, BoundedLWWSet)
    }
    for name, variables in draft.collections.items():
        for variable in variables:
            if resolutions[variable.name] != draft.events[name].resolution:
                raise ValueError(
                    f"collect: {variable.name!r} has another resolution than event {name!r}"
                )
    if draft.parameters:
        from lasp_edge.language.parameters import check_used  # noqa: PLC0415 - few programs need it

        check_used(draft)
    meanings = _meanings(draft, resolutions)
    local: dict[str, LocalFold] = {}
    for name in draft.local:  # each after those that it is made of
        local[name] = _local_fold(draft, name, resolutions, meanings, local)
    columns = {column.name: column for column in draft.columns}
    made = Plan(
        name=draft.name,
        events=dict(draft.events),
        variables=dict(draft.variables),
        resolutions=resolutions,
        meanings=meanings,
        collections={name: tuple(several) for name, several in draft.collections.items()},
        windows=dict(draft.windows),
        local_folds=local,
        dynamic_folds={
            name: _dynamic_fold(draft, name, local[source])
            for name, source in draft.dynamic.items()
        },
        derivations=dict(draft.derivations),
        awaited=tuple(draft.awaited),
        reactions=tuple(draft.reactions),
        alerts=dict(draft.alerts),
        reads=_reads(draft),
        streams=dict(draft.streams),
        stream_results=dict(draft.stream_results),
        columns={name: columns[name] for name in sorted(columns)},
        functions=Functions(
            program=draft.name,
            keys={
                name: checked_key(key, f"{_kind(draft, name)} {name!r}")
                for name, key in draft.keys.items()
            },
            handlers={name: tuple(several) for name, several in draft.handlers.items()},
            derived=dict(draft.derived),
            reached=tuple(draft.reached),
            reacting=tuple(draft.reacting),
            streams=dict(draft.stream_functions),
            results={name: tuple(several) for name, several in draft.result_handlers.items()},
            windows=dict(draft.window_functions),
        ),
        parameters=dict(draft.parameters),
        shown=dict(draft.shown),
    )
    if any(people.device_class for people in draft.shown.values()):
        from lasp_edge.language.device_classes import check_shown  # noqa: PLC0415 - rarely stated

        check_shown(made)
    return made


def _kind(draft: Draft, name: str) -> str:
    if name in draft.windows:
        return "window"
    return "scan" if name in draft.streams else "variable"


def _local_fold(
    draft: Draft,
    name: str,
    resolutions: Mapping[str, Resolution],
    meanings: Mapping[str, Meaning],
    known: Mapping[str, LocalFold],
) -> LocalFold:
    source, fold = draft.local[name]
    if name in draft.made_of:
        targets, step, made = draft.made_of[name]
        others = tuple(known[each] for each in targets)
        resolution = step or others[0].resolution
        fold = made(others, resolution)
        streams = [each.stream for each in others]
        stream = stream_id(
            draft.name, "fold of folds", name, fold.fingerprint(resolution), *streams
        )
        return LocalFold(name, source, fold, resolution, stream, others)
    resolution = resolutions[source.name]
    fold = fold.at(resolution)
    # Its words are part of the stream id, and so of every store and lake: they never change.
    words = (name, source.name, meanings[source.name].text, fold.fingerprint(resolution))
    return LocalFold(name, source, fold, resolution, stream_id(draft.name, "fold", *words))


def _dynamic_fold(draft: Draft, name: str, local: LocalFold) -> DynamicFold:
    words: tuple[str | int, ...] = (name, local.stream)
    stale_us = draft.stale_us.get(name)
    if stale_us is None:
        return DynamicFold(name, local, stream_id(draft.name, "fold_dynamic", *words))
    notes = f"{local.name}: silent for {stale_us / 1_000_000:g} s"
    if notes in draft.variables:
        raise ValueError(f"variable {notes!r}: the name is taken by the notes on silent devices")
    source = Variable(notes, None, dynamic=True, keyed=True)
    stream = stream_id(draft.name, "absence", local.stream, stale_us)
    absence = LocalFold(notes, source, Absent(), Resolution("1"), stream)
    words = (*words, stale_us)
    return DynamicFold(
        name, local, stream_id(draft.name, "fold_dynamic", *words), absence, stale_us
    )


def _meanings(draft: Draft, resolutions: Mapping[str, Resolution]) -> dict[str, Meaning]:
    """Return what the values of each variable with a state mean."""
    writers = _writers(draft)
    return {
        name: Meaning.of(variable, tuple(sorted(writers[name])), resolutions.get(name))
        for name, variable in draft.variables.items()
        if variable.bottom is not None
    }


def _writers(draft: Draft) -> dict[str, set[str]]:
    """Return which events write each variable: they collect into it, or their handlers name it.

    A handler whose code names no variable may write every one.
    """
    found: dict[str, set[str]] = {name: set() for name in draft.variables}
    for event, collected in draft.collections.items():
        for variable in collected:
            found[variable.name].add(event)
    waiting = [f"{awaited.variable} (on_threshold)" for awaited in draft.awaited]
    handlers = [
        (event, handler) for event, several in draft.handlers.items() for handler in several
    ]
    for event, handler in [*handlers, *zip(waiting, draft.reached, strict=True)]:
        named = [v for v in variables_named(handler) if draft.variables.get(v.name) is v]
        named += draft.writes.get(event, ())
        for name in [variable.name for variable in named] or found:
            found[name].add(event)
    reacting = [
        (reaction_source(watched.variable), handler)
        for watched, handler in zip(draft.reactions, draft.reacting, strict=True)
    ]
    reacting += [
        (result_source(result), handler)
        for result, several in draft.result_handlers.items()
        for handler in several
    ]
    for source, handler in reacting:
        for variable in variables_named(handler):
            if draft.variables.get(variable.name) is variable:
                found[variable.name].add(source)
    return found


def _reads(draft: Draft) -> dict[str, tuple[str, ...]]:
    """Return event -> the folds' targets that its handlers name, which they can only read."""
    targets = {name: made for name, made in draft.variables.items() if draft.is_folded(name)}
    found = {
        event: [v for handler in handlers for v in variables_named(handler)]
        for event, handlers in draft.handlers.items()
    }
    reads = {event: fold_targets_named(named, targets) for event, named in found.items()}
    return {event: tuple(dict.fromkeys(names)) for event, names in reads.items() if names}


def _resolution(draft: Draft, variable: Variable) -> Resolution:
    """Return the resolution of a variable's values.

    It is that of the event that it `measures`, else of the events that it collects, else of the
    program's events.
    """
    if variable.measures is not None:
        return draft.events[variable.measures].resolution
    collected = [name for name, several in draft.collections.items() if variable in several]
    names = sorted(collected or draft.events)
    found = {draft.events[name].resolution for name in names}
    if len(found) != 1:
        steps = ", ".join(f"{name} {draft.events[name].resolution.text}" for name in names)
        raise ValueError(
            f"variable {variable.name!r}: which event does it measure? The events have different "
            f"resolutions ({steps}); write declare_dynamic(..., {variable.name!r}, "
            f"measures={names[0]!r}), or whichever event it is"
        )
    return found.pop()
