"""What a window is made of: an event, or what stands for a stream, and the fold that follows it."""

from typing import Any

from lasp_edge.folds.fold import Fold
from lasp_edge.folds.revisable import revisable
from lasp_edge.language.declarations import EventType, Stream
from lasp_edge.language.draft import Draft


def window_source(
    draft: Draft, source: Any, fold: Any, window: str, value: Any
) -> tuple[EventType, tuple[str, ...]]:
    """Return the event of a window, or what stands for a stream, and the stream's fingerprint.

    Several sources, texts, and an event of which a fold takes several fields, become a stream.

    Raises:
        ValueError: the program declares no such source, or a window cannot be made of it.
    """
    what, name = f"window {window!r}", getattr(source, "name", source)
    takes_fields = bool(getattr(fold, "takes_fields", False))
    event = draft.events.get(name) if isinstance(name, str) else None
    is_text = event is not None and event.text
    if is_text and value is None and not takes_fields:
        raise ValueError(f"{what}: {name!r} is a text; to count: value=lambda event: 1")
    if isinstance(source, list | tuple) or is_text or (takes_fields and event):
        from lasp_edge.language.ordering import declare_stream  # noqa: PLC0415 - of streams alone

        source = declare_stream(draft, "union", f"{window}: readings", source, None)
        name = source.name
    if isinstance(source, Stream) or (isinstance(name, str) and name in draft.streams):
        from lasp_edge.language.ordering import source_of_window  # noqa: PLC0415 - see above

        return source_of_window(draft, source, what, stepped=not (takes_fields or is_text))
    return draft.event(source), ()


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
