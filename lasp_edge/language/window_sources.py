"""The source of a window: an event, or a stream in its place, with the fold over its outputs."""

from typing import Any

from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import Resolution
from lasp_edge.folds.revisable import revisable
from lasp_edge.language.declarations import EventType, Stream
from lasp_edge.language.draft import Draft


def window_source(
    draft: Draft, source: Any, fold: Any, window: str, value: Any
) -> tuple[EventType, tuple[str, ...]]:
    """Return the event of a window, or what stands for a stream, and the stream's fingerprint.

    Several sources, texts, and an event of which a fold takes several fields, become a stream. The
    values of a stream have to have a step, or a fold that reads them has to have `value`.

    Raises:
        ValueError: the program declares no such source, or a window cannot be made of it.
    """
    what, name = f"window {window!r}", getattr(source, "name", source)
    takes_fields = bool(getattr(fold, "takes_fields", False))
    event = draft.events.get(name) if isinstance(name, str) else None
    is_text = event is not None and event.text
    is_read = value is None and not takes_fields and bool(getattr(fold, "reads_value", True))
    if is_text and is_read:
        raise ValueError(
            f"{what}: {name!r} is a text, which the fold cannot read; write fold=folds.count(), or "
            "value=lambda event: 1"
        )
    if isinstance(source, list | tuple) or is_text or (takes_fields and event):
        from lasp_edge.language.ordering import declare_stream  # noqa: PLC0415 - of streams alone

        source = declare_stream(draft, "union", f"{window}: readings", source, None)
        name = source.name
    if isinstance(source, Stream) or (isinstance(name, str) and name in draft.streams):
        return _stream(draft, source, what, stepped=is_read)
    return draft.event(source), ()


def _stream(
    draft: Draft, stream: Any, what: str, *, stepped: bool
) -> tuple[EventType, tuple[str, ...]]:
    """Return what stands for a stream as a window's source, and the stream's fingerprint.

    `stepped`: its values have to have a step.

    Raises:
        ValueError: a window cannot be made of it.
    """
    from lasp_edge.language.ordering import known_stream  # noqa: PLC0415 - see above

    found = known_stream(draft, stream, what)
    if found.fleet:
        raise ValueError(
            f"{what}: {found.name!r} is in one order over the whole fleet, and a window is made on "
            f"devices; write program.result({found.name}), and gateways and lakes have its rows, "
            "or per_device=True in its scan, if each device has all readings of a key"
        )
    if found.resolution is None and stepped:
        raise ValueError(f"{what}: {_no_step(draft, found)}")
    units = {draft.events[event].unit for event in found.events}
    unit = units.pop() if len(units) == 1 else ""
    step, is_unstepped = found.resolution or Resolution("1"), found.resolution is None
    event = EventType(found.name, step, unit, is_unstepped=is_unstepped)
    return event, (found.fingerprint,)


def _no_step(draft: Draft, stream: Stream) -> str:
    """Return that a fold cannot read the values of a stream, and what to write."""
    if stream.operator == "union":
        of: dict[str, EventType | Stream] = {**draft.events, **draft.streams}
        steps = [(name, of[name].resolution) for name in stream.sources]
        if all(step is not None for _, step in steps):
            known = " and ".join(
                f"{name!r} in steps of {step.text}" for name, step in steps if step
            )
            return (
                f"the fold cannot read {known} as one; give all of them one resolution, or write "
                "value=lambda event: .. (a whole number)"
            )
    return (
        f"the values of {stream.name!r} have no step, so the fold cannot read them; write "
        "fold=folds.count(), or value=lambda event: .. (a whole number), or "
        f'program.map({stream.name}, lambda event: .., "name", resolution="0.01")'
    )


def over_stream(draft: Draft, source: str, fold: Fold, what: str) -> Fold:
    """Return the fold that follows a source, which may take outputs back.

    Raises:
        ValueError: none can.
    """
    stream = draft.streams.get(source)
    if stream is None or stream.stateless:
        return fold
    try:
        return revisable(fold)
    except ValueError as error:
        raise ValueError(
            f"{what}: an output of the scan behind {source!r} may be revised, and {error}"
        ) from None
