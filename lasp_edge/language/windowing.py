"""Windows, as they are declared: what is given becomes a `Window` with its stream's id."""

from collections.abc import Callable
from math import gcd
from typing import Any, NamedTuple

from lasp_edge.folds.fold import Fold, as_fold
from lasp_edge.language.arguments import need_key, size_and_slide
from lasp_edge.language.declarations import EventType, Key, Window
from lasp_edge.language.draft import Draft
from lasp_edge.protocol.streams import stream_id


class WindowArguments(NamedTuple):
    """What a program says of a window.

    Attributes:
        event: its event, or what stands for its stream.
        of_stream: the fingerprint of that stream; empty of an event.
        fold, size_s, slide_s: as they were given.
        tentative_after_us: for how long it waits for devices; None for what its sinks are told.
    """

    name: str
    event: EventType
    of_stream: tuple[str, ...]
    fold: Any
    size_s: Any
    slide_s: Any
    key: Key | None
    version: int
    tentative_after_us: int | None = None

    @property
    def what(self) -> str:
        """Whose an error is."""
        return f"window {self.name!r}"


def declare_window(
    draft: Draft, given: WindowArguments, check_over_stream: Callable[[Fold, str], None]
) -> Window:
    """Declare a window of which operators can change nothing.

    Raises:
        ValueError: something does not fit; nothing is declared then.
    """
    event, what = given.event, given.what
    made = as_fold(given.fold).at(event.resolution)
    slide_s = given.size_s if given.slide_s is None else given.slide_s
    size_us, slide_us = size_and_slide(what, given.size_s, slide_s)
    need_key(given.key, given.version, what)
    draft.check_columns(made)
    check_over_stream(made, what)
    words = words_of(given, made, size_us, slide_us)
    return add_window(
        draft,
        given.key,
        Window(
            given.name,
            event,
            made,
            size_us,
            slide_us,
            given.key is not None,
            given.version,
            stream_id(draft.name, "window", *words),
            given.tentative_after_us,
        ),
    )


def words_of(given: WindowArguments, fold: Fold, size_us: int, slide_us: int) -> tuple[object, ...]:
    """Return what a window's stream id is made of: in every store and lake, so it never changes."""
    fingerprint = fold.fingerprint(given.event.resolution)
    span_us = gcd(size_us, slide_us)
    return (given.name, given.event.name, span_us, given.version, fingerprint, *given.of_stream)


def add_window(draft: Draft, key: Key | None, window: Window) -> Window:
    """Add a window to the draft, and return it."""
    draft.windows[window.name] = window
    if key is not None:
        draft.keys[window.name] = key
    return window
