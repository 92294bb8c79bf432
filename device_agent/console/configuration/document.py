"""A TOML file whose mistakes are reported with their line.

The line of a key is the one on which its statement begins. It is found by parsing longer and longer
beginnings of the file: so the parser itself decides where a statement ends, whatever TOML allows.
A text such as "env:NAME" stands for an environment variable, so that no secret is in the file.
"""

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from device_agent.agent.sources.nearest import hint
from lasp_edge.errors import NotFound, UsageError

ENVIRONMENT = "env:"
Place = Sequence[str | int]
"""Keys, and places in arrays, from the top of the file: ("source", 1, "topic")."""


class Document:
    """A configuration file.

    Args:
        path: the file.
        environment: in which "env:NAME" is looked up.

    Attributes:
        table: its content; numbers with a point are exact.

    Raises:
        NotFound: there is no such file.
        UsageError: it is not TOML, or names a variable that is not set.
    """

    def __init__(self, path: Path, environment: Mapping[str, str]) -> None:
        self.path = path
        try:
            self._text = path.read_text(encoding="utf-8-sig")
        except OSError as error:
            raise NotFound(f"--config {path}: {error.strerror}") from None
        except ValueError:
            raise UsageError(f"--config {path}: it is not a text in UTF-8") from None
        try:
            self._plain = tomllib.loads(self._text, parse_float=Decimal)
        except ValueError as error:
            raise UsageError(f"{path}{_in_words(str(error))}{self._curly()}") from None
        self._environment = environment
        self.table: dict[str, Any] = self._filled(self._plain, ())

    def _curly(self) -> str:
        curly = set("\u201c\u201d\u201e\u2018\u2019") & set(self._text)
        return f"; this one is not straight: {min(curly)}" if curly else ""

    def where(self, place: Place) -> str:
        """Return the file and the line where something stands."""
        line = self._line(place)
        return f"{self.path} line {line}" if line else str(self.path)

    def where_key(self, key: str) -> str:
        """Return the file and the line of a key at the top; empty where there is no such key."""
        return self.where((key,)) if key in self.table else ""

    def mistake(self, place: Place, text: str) -> UsageError:
        """Return the error that something in the file is not right."""
        return UsageError(f"{self.where(place)}: {text}")

    def read(
        self, place: Place, read: Callable[[Any], Any], value: Any, option: str | None = None
    ) -> Any:
        """Return a value as `read` reads it, which raises ValueError where it cannot.

        Args:
            place: of the value.
            read: of an option.
            value: as written.
            option: its name, if the last key is a former one.

        Raises:
            UsageError: it cannot be read.
        """
        key = option or str(place[-1])
        try:
            return read(value)
        except (ValueError, OverflowError) as error:
            text = str(error).removeprefix("--")
            text = text if text.startswith(key) else f"{key}: {text}"
            raise self.mistake(place, text) from None

    def unknown(self, place: Place, what: str, known: Iterable[str]) -> UsageError:
        """Return the error that the last key of `place` is not known."""
        key = str(place[-1])
        return self.mistake(place, f'{what} has no key "{key}"; {hint(key, known)}')

    def _line(self, place: Place) -> int | None:
        lines = self._text.splitlines(keepends=True)
        begins = 1  # where the statement begins that is not whole yet
        for count in range(1, len(lines) + 1):
            try:
                so_far = tomllib.loads("".join(lines[:count]))
            except ValueError:
                continue
            if _is_in(so_far, place):
                return begins + _blank(lines[begins - 1 : count])
            begins = count + 1
        return None

    def _filled(self, value: Any, place: Place) -> Any:
        if isinstance(value, dict):
            return {key: self._filled(below, (*place, key)) for key, below in value.items()}
        if isinstance(value, list):
            return [self._filled(below, (*place, at)) for at, below in enumerate(value)]
        if not isinstance(value, str) or not value.startswith(ENVIRONMENT):
            return value
        name = value.removeprefix(ENVIRONMENT)
        if name not in self._environment:
            raise self.mistake(place, f"the environment variable {name} is not set")
        return self._environment[name]

    def as_written(self, place: Place) -> Any:
        """Return the value at a place, before any variable was put in."""
        found: Any = self._plain
        for step in place:
            found = found[step]
        return found


_IN_WORDS = {
    "Cannot overwrite a value": "this key stands above already",
    "Invalid value": "a value is needed here, and a text needs quotation marks",
    "Expected '=' after a key in a key/value pair": "KEY = VALUE is needed here",
    "Invalid statement": "KEY = VALUE or [TABLE] is needed here",
}
"""Frequent mistakes: the parser's message, and ours."""


def _is_in(table: Any, place: Place) -> bool:
    for step in place:
        if isinstance(step, int):
            if not isinstance(table, list) or step >= len(table):
                return False
        elif not isinstance(table, dict) or step not in table:
            return False
        table = table[step]
    return True


def _blank(lines: Sequence[str]) -> int:
    """Return how many lines at the beginning are blank or comments."""
    return next((at for at, line in enumerate(lines) if line.strip()[:1] not in {"", "#"}), 0)


def _in_words(error: str) -> str:
    """Return the parser's message with the line first, to follow the file's name.

    >>> _in_words("Cannot overwrite a value (at line 3, column 12)")
    ' line 3, column 12: this key stands above already'
    """
    text, at, place = error.rpartition(" (at ")
    text = _IN_WORDS.get(text, text)
    return f" {place.removesuffix(')')}: {text}" if at else f": {error}"


def kind_in_words(value: Any) -> str:
    """Return a value as a mistake names it.

    >>> kind_in_words(True), kind_in_words("x"), kind_in_words([1])
    ('true', '"x"', 'a list')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return "a list"
    return "a table" if isinstance(value, dict) else str(value)
