"""Arguments of a program's methods: each function checks one, and its error names the valid ones.

>>> size_and_slide("window 'minute'", 60, 10)
(60000000, 10000000)
"""

import inspect
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from functools import wraps
from typing import Any

from lasp_edge.errors import WrongAnswer, pass_interrupt
from lasp_edge.event import Event, key_text
from lasp_edge.folds.fold import Fold, as_fold
from lasp_edge.language.declarations import Key, Shown
from lasp_edge.language.row_limits import TEXT_BYTES
from lasp_edge.protocol.shards import KEY_BYTES
from lasp_edge.variables import named

SPAN_LIMIT_US = 2**53
"""A window is shorter than this, in microseconds: about 285 years, exact as a double."""
WINDOWS_PER_INSTANT = 10_000
"""At most this many windows of one definition hold one instant: size / slide."""

_KEY_PARTS = frozenset({str, int})

_NO_PLAIN_FUNCTION = 0x20 | 0x80 | 0x200
"""`CO_GENERATOR`, `CO_COROUTINE` and `CO_ASYNC_GENERATOR` of `inspect`, a module of 1 MiB."""


def need_function(given: Any, what: str, takes: str) -> None:
    """Check that something can be called, and is done when it returns.

    Args:
        given: what stands for a function.
        what: whose it is.
        takes: its arguments, for people.

    Raises:
        ValueError: it cannot be called, or calling it would run nothing of it.
    """
    if not callable(given):
        raise ValueError(f"{what}: a function {takes} is needed, not {given!r}")
    code = getattr(given, "__code__", None)
    if code is not None and code.co_flags & _NO_PLAIN_FUNCTION:
        raise ValueError(
            f"{what}: {given.__name__} would never run: write it without async and yield"
        )


def need_key(key: Any, version: Any, what: str) -> None:
    """Check a `key=` and its `version=`.

    Raises:
        ValueError: one of them cannot be used.
    """
    if key is not None and not callable(key):
        raise ValueError(f"{what}: key must be a function of the event, not {key!r}")
    if key is not None:
        need_function(key, f"{what}: key", "(event)")
    if type(version) is not int or version < 1:
        raise ValueError(f"{what}: version must be a whole number from 1, not {version!r}")


def of_event_and_parameters(function: Any) -> Any:
    """Return a `value=` or `where=` as it is called: with the event and the parameters.

    It may leave out the parameters, as in `where=lambda event: event.value > 0`. What has a default
    is its own, as in `where=lambda event, room=room: event.key == room`, unless it is called `at`.
    """
    if takes_parameters(function):
        return function

    @wraps(function)
    def of_both(event: Event[Any], at: Any) -> Any:  # noqa: ARG001 - it was left out
        return function(event)

    return of_both


def several(given: Any, what: str) -> tuple[Any, ...]:
    """Return what was given as several things: a tuple, a list or the like.

    >>> several("day", "choices=")
    Traceback (most recent call last):
        ...
    ValueError: choices=: a tuple is needed, with a comma even for one: choices=('day',)

    Raises:
        ValueError: it is one thing, or a text.
    """
    if isinstance(given, str) or not isinstance(given, Iterable):
        shown_one = repr(given) if isinstance(given, str) else getattr(given, "name", repr(given))
        raise ValueError(
            f"{what}: a tuple is needed, with a comma even for one: {what.rsplit(maxsplit=1)[-1]}"
            f"({shown_one},)"
        )
    return tuple(given)


def takes_parameters(function: Any) -> bool:
    """Return whether a `value=` or `where=` is called with the parameters, too."""
    try:
        signature = inspect.signature(function)
        signature.bind(None)
    except (TypeError, ValueError):
        return True
    takes_all = any(each.kind is each.VAR_POSITIONAL for each in signature.parameters.values())
    return takes_all or [*signature.parameters][1:2] == ["at"]


def checked_condition(condition: Any, what: str) -> Any:
    """Return a `where=`, or the function of a filter, that gives True or False alone.

    What equals them is them: 1, 0, and the bool of numpy. A text or None is neither: a text of
    "false" would count, and None is what a function gives that forgets to return.

    Args:
        condition: the user's function; what it raises is passed on.
        what: says in an error what it is, such as "where= of window 'by_room'".
    """

    @wraps(condition)
    def checked(*given: Any) -> bool:
        counts = condition(*given)
        if counts is True or counts is False:
            return counts
        if counts == 1:
            return True
        if counts == 0:
            return False
        kind = None if counts is None else f"a {type(counts).__name__}"
        raise WrongAnswer(
            f"{what} must give True or False, not {kind}: compare it, or write bool(..)", condition
        )

    return checked


def checked_whole(value: Any, what: str, source: str) -> Any:
    """Return a `value=` of texts, pairs and other values without a step: it gives whole numbers.

    Args:
        value: the user's function; what it raises is passed on.
        what: says in an error what it is, such as "value= of window 'by_room'".
        source: the stream that the values are of.

    Raises:
        WrongAnswer: (when it is called) the number is not whole; it is not rounded in silence.
    """

    @wraps(value)
    def checked(event: Event[Any], at: Any) -> Any:
        number = value(event, at)
        if isinstance(number, float | Decimal | Fraction) and number % 1:
            raise WrongAnswer(
                f"{what} must give a whole number, as {source!r} has no single step: count cents, "
                "not euros",
                value,
            )
        return number

    return checked


LONGEST_LEAVE_S = 3_600
"""Seconds that readings wait on their device for others, at most: until then no row is final."""


def checked_key(key: Key, whose: str) -> Callable[[Event[Any]], str]:
    """Return a key function that raises ValueError where the user's gives no valid key.

    Args:
        key: the user's function; what it raises is passed on.
        whose: says in an error whose key it is, such as "window 'by_room'".
    """

    @wraps(key)
    def checked(event: Event[Any]) -> str:
        given: Any = key(event)
        if type(given) is str and given.isprintable() and len(given) <= KEY_BYTES // 4:
            return given  # nearly all are
        if type(given) is tuple and given and {*map(type, given)} <= _KEY_PARTS:
            given = key_text(given)
        if not isinstance(given, str) or len(given.encode()) > KEY_BYTES:
            raise WrongAnswer(
                f"the key of {whose} must be text of at most {KEY_BYTES} B, or a tuple of texts "
                f"and whole numbers, not {given!r:.60}",
                key,
            )
        if not given.isprintable() and any(character < " " for character in given):
            raise WrongAnswer(f"the key of {whose} must not hold control characters", key)
        return str(given)

    return checked


def leaving_us(what: str, leave_s: Any) -> int:
    """Return in microseconds how soon readings leave.

    >>> leaving_us("event 'door'", 0.5)
    500000

    Raises:
        ValueError: it is no such time.
    """
    is_number = isinstance(leave_s, int | float) and not isinstance(leave_s, bool)
    if not is_number or not 0.1 <= leave_s <= LONGEST_LEAVE_S:  # noqa: PLR2004 - a tick of an agent
        raise ValueError(
            f"{what}: leave_s must be seconds from 0.1 to {LONGEST_LEAVE_S}, not {leave_s!r}"
        )
    span_us: int = round(leave_s * 1_000_000)
    return span_us


def need_examples(what: str, examples: Iterable[Any], is_text: bool) -> tuple[str, ...]:  # noqa: FBT001
    """Return the texts that come.

    Raises:
        ValueError: they are no texts, or too long, or the readings are numbers.
    """
    if isinstance(examples, str):
        raise ValueError(f"{what}: examples={[examples]!r} is needed, not {examples!r}")
    texts = tuple(examples)
    if texts and not is_text:
        raise ValueError(f"{what}: examples are of texts: write text=True")
    for text in texts:
        if not isinstance(text, str) or len(text.encode()) > TEXT_BYTES:
            raise ValueError(
                f'{what}: examples: texts are needed, such as "on", of at most {TEXT_BYTES:,} '
                f"bytes, not {text!r}"
            )
    return texts


def shown(what: str, title: Any, device_class: Any, unit: str | None = None) -> Shown:
    """Return how people are shown something; None for a unit that is not known yet.

    Raises:
        ValueError: the title is no printable text, or Home Assistant has no such class and unit.
    """
    if title:
        named(title, f"{what}: title")
    if device_class:
        from lasp_edge.language.device_classes import check_class  # noqa: PLC0415 - rarely stated

        check_class(what, device_class, unit)
    return Shown(title, device_class)


def size_and_slide(window: str, size_s: float, slide_s: float) -> tuple[int, int]:
    """Return a window's size and slide in microseconds.

    Raises:
        ValueError: they cannot be used, or do not fit each other.
    """
    size_us, slide_us = _microseconds(size_s, window), _microseconds(slide_s, window)
    if slide_us > size_us or size_us > slide_us * WINDOWS_PER_INSTANT:
        raise ValueError(
            f"{window}: a slide from size / {WINDOWS_PER_INSTANT} to the size "
            f"({size_s} s) is needed, not {slide_s} s"
        )
    return size_us, slide_us


def fold_at(function: Any, window: str, at: Any) -> Fold:
    """Return the fold that a fold's function gives for some values of parameters.

    Raises:
        ValueError: it gives no fold, or raises something itself.
    """
    try:
        return as_fold(function(at), of_events=True)
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


def _microseconds(seconds: Any, what: str) -> int:
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not 0 < seconds < SPAN_LIMIT_US / 1_000_000:
        raise ValueError(f"{what}: a size and slide in seconds above 0 are needed, not {seconds!r}")
    span_us: int = round(seconds * 1_000_000)
    if not span_us:
        raise ValueError(f"{what}: a microsecond is the least size and slide, not {seconds!r} s")
    return span_us
