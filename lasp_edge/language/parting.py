"""Declarations of scans with local events: which may stay on their devices, and the two halves.

A scan with local events is four streams: on each device the half that steps local events; at an
evaluator the events in order with what devices have answered, the half that joins and steps them,
and the rows of both (`lasp_edge.ordered.parted`).
"""

import json
from typing import Any, Final

from lasp_edge.language.declarations import EventType, Stream
from lasp_edge.language.draft import Draft
from lasp_edge.language.halves import leaf_of
from lasp_edge.language.ordering import (
    Made,
    ScanArguments,
    checked_scan,
    fingerprint_of,
    step_of,
)
from lasp_edge.ordered.covers import covers
from lasp_edge.ordered.synchronised import Synchronised

FORM: Final = 2
"""The form of answers and shares: a release with another one has other streams, and refuses these
as unknown ones."""


def declare_parted(draft: Draft, given: ScanArguments) -> Stream:
    """Declare a scan of which some events stay on their devices.

    Raises:
        ValueError: something does not fit; nothing is declared then.
    """
    what, name, key = given.what, given.name, given.key
    if given.uses:
        raise ValueError(f"{what}: a scan with local= asks for no parameters; leave out uses=")
    scan, found = checked_scan(draft, given)
    stays = _local_events(scan, given.local, what)
    if not all(isinstance(each, EventType) for each in found):
        raise ValueError(
            f"{what}: with local= its sources must be events, not streams: let the scan do what "
            "the stream does"
        )
    names = tuple(each.name for each in found)
    try:
        made = scan.at(step_of(found))
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None
    whole = Made("scan", name, made, made.resolution, (), given.version)
    meaning = [name, given.version, made.fingerprint, sorted(stays), key is not None]
    meaning += [fingerprint_of(draft, whole, each) for each in found]
    _add_streams(draft, whole, names, stays, meaning)
    draft.stream_functions[name] = made
    if key is not None:
        draft.keys[name] = key
    return draft.streams[name]


def _add_streams(
    draft: Draft, made: Made, names: tuple[str, ...], stays: tuple[str, ...], meaning: list[Any]
) -> None:
    """Add the streams of a scan with local events, by the names of all its events."""
    scan = made.function
    local = tuple(name for name in names if name in stays)
    leaf, gathered, root = leaf_of(made.name), f"{made.name}: gathered", f"{made.name}: root"
    for name, operator, sources, events in (
        (leaf, "leaf", local, local),
        (gathered, "gather", (*(each for each in names if each not in stays), leaf), names),
        (root, "root", (gathered,), names),
        (made.name, "scan", (root, leaf), names),
    ):
        is_whole = name == made.name
        draft.streams[name] = Stream(
            name,
            operator,
            sources,
            keyed=meaning[4],
            resolution=made.resolution if is_whole else None,
            parts=tuple(scan.parts.items()) if is_whole else (),
            stateless=False,
            events=events,
            fingerprint=json.dumps([operator, name, meaning[1], *meaning, FORM]),
            fleet=operator != "leaf",
            local=local if is_whole else (),
        )


def _local_events(scan: Any, local: Any, what: str) -> tuple[str, ...]:
    """Return the names of the events that stay on their devices.

    Raises:
        ValueError: they may not.
    """
    if not isinstance(scan, Synchronised):
        raise ValueError(
            f"{what}: local= needs a scans.Synchronised, which can join what devices made"
        )
    choices = covers(scan.depends)
    if local is True:
        return tuple(name for name in scan.tells_apart if name not in choices[0])
    several = local if isinstance(local, list | tuple) else [local]
    names = tuple(dict.fromkeys(str(getattr(each, "name", each)) for each in several))
    ordered = {name for name in scan.tells_apart if name not in names}
    if (
        not names
        or set(names) - set(scan.tells_apart)
        or not any(set(each) <= ordered for each in choices)
    ):
        known = "; or ".join(
            " and ".join(n for n in scan.tells_apart if n not in each) or "none" for each in choices
        )
        raise ValueError(
            f"{what}: {', '.join(names) or 'nothing'} cannot be local: by what depends says, these "
            f"can: {known}"
        )
    return names
