"""What was raised, and where, as one short line: an error of a user's function, for people.

A tag that an event lacks is named with the event, and with what to write.

>>> try:
...     1 // 0
... except ZeroDivisionError as error:
...     print(reason_of(error).partition(" (")[0])
ZeroDivisionError: integer division or modulo by zero
"""

import inspect
import os
import sys
import traceback
from pathlib import Path
from types import FrameType

from lasp_edge.errors import WrongAnswer, pass_interrupt
from lasp_edge.event import Event

_TEXT = 110
"""Characters of an error's own text, at most: with its place it stays within a counted name."""
_PLACE = 60
"""Characters of a place, at most: the end of a long path tells more than its beginning."""
_INSTALLED = str(Path(__file__).resolve().parent.parent)
_OURS = tuple(f"{_INSTALLED}/{package}/" for package in ("crdts", "device_agent", "lasp_edge"))
_PACKAGES = ("site-packages", "dist-packages")
_LIBRARIES = (
    str(Path(os.__file__).parent),
    *(place for place in sys.path if place.endswith(_PACKAGES)),
)


def is_ours(file: str) -> bool:
    """Return whether a file of code is part of this project."""
    return file.startswith(_OURS)


def is_users(file: str) -> bool:
    """Return whether a file of code is neither ours nor a library's."""
    return not file.startswith((*_OURS, *_LIBRARIES, "<frozen"))


def reason_of(error: BaseException) -> str:
    """Return an error's type, its text, and where it was raised, as one short line.

    The place is the innermost line of the user's, or ours where none of the user's is in it.
    """
    kind, place = type(error).__name__, place_of(error)
    try:
        text = str(error)
    except BaseException as worse:  # noqa: BLE001 - a user's exception may raise when it is printed
        pass_interrupt(worse)
        text = ""
    words = f"{kind}: {_short(text)}" if text else kind
    if type(error) is KeyError:
        words += _without_tag(error)
    elif isinstance(error, TypeError):
        words += _without_replica(text)
    return f"{words} ({place})" if place else words


def _without_replica(text: str) -> str:
    """Return what to write in place of a mutator that was called without its state and writer."""
    called, lacks, names = text.partition("() missing ")
    if not (lacks and "replica'" in names):
        return ""
    return f": let update call it, as in update(VARIABLE, {called}, ..)"


def _without_tag(error: KeyError) -> str:
    """Return which event lacks the tag that a function asked for, and what to write.

    The functions that raised it tell: one has the event, and that or one it called names the tag.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    tag = error.args[0] if error.args else None
    if not isinstance(tag, str):
        return ""
    event, named = None, False
    for frame in frames:
        found = (each for each in frame.f_locals.values() if isinstance(each, Event))
        event = next(found, event)
        is_theirs = event is not None and is_users(frame.f_code.co_filename)
        named = named or (is_theirs and _names(frame, tag))
    if event is None or not named or tag in event.tags:
        return ""
    other = "event.key" if event.key else f"--with-tag {tag}=TEXT"
    return f": {event.name} has no such tag; use {other} or tags.get({tag!r}, '')"


def _names(frame: FrameType, tag: str) -> bool:
    """Return whether a function has the tag's name in its text, or in a global that it uses."""
    code = frame.f_code
    used = (frame.f_globals.get(name) for name in code.co_names)
    return tag in code.co_consts or any(type(each) is str and each == tag for each in used)


def place_of(error: BaseException) -> str:
    """Return the file and line that raised an error; empty text where that is unknown."""
    if isinstance(error, WrongAnswer):  # the function has returned, and is in no frame
        code = getattr(inspect.unwrap(error.function), "__code__", None)
        return shown_place(code.co_filename, code.co_firstlineno) if code else ""
    found = ""
    users = False
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        theirs = is_users(file)
        if theirs or not users:
            found, users = shown_place(file, line), users or theirs
    return found


def shown_place(file: str, line: int) -> str:
    """Return a file and line as one short text: of a long path, its end."""
    found = f"{file}:{line}"
    return found if len(found) <= _PLACE else f"..{found[2 - _PLACE :]}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TEXT else f"{line[: _TEXT - 2]}.."
