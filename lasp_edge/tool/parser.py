"""The parser of every command: its help states defaults, its errors the nearest option."""

import argparse
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from lasp_edge.errors import UsageError

_LEFT_OUT = (None, False, "", argparse.SUPPRESS)
"""Defaults that mean "left out", which the help does not name."""

_NO_WIDTH = 80
"""Columns of help that is never printed."""


class CommandParser(argparse.ArgumentParser):
    """Parses a command's words.

    Args:
        name: the command, such as "agent".
        description: the beginning of `--help`.

    Attributes:
        advice: a text that a command adds to each mistake.
    """

    def __init__(self, name: str, description: str | None) -> None:
        # A formatter that knows its width asks no module of bz2 and lzma for the terminal's, and
        # one is made for each option, to try its metavar.
        narrow = partial(_DefaultsInHelp, width=_NO_WIDTH)
        super().__init__(f"lasp-edge {name}", description=description, formatter_class=narrow)
        self._words: list[str] = []
        self.advice = ""

    def format_help(self) -> str:
        self.formatter_class = _DefaultsInHelp
        return super().format_help()

    def format_usage(self) -> str:
        self.formatter_class = _DefaultsInHelp
        return super().format_usage()

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> Any:
        self._words = list(args or ())
        found, left = self.parse_known_args(args, namespace)
        if any(word.startswith("-") for word in left):
            return super().parse_args(args, namespace)
        # argparse takes a second word that is no option only right behind the first.
        return self.parse_intermixed_args(args, namespace) if left else found

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        self._words = self._words or list(args or ())  # a sub-parser is given its own alone
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> Any:
        """Say on one line what is wrong, and which options are nearest to unknown ones.

        Raises:
            UsageError: always.
        """
        from lasp_edge.tool.mistakes import in_words  # noqa: PLC0415 - only after a mistake

        given = [*self._nearest(), *self._unrepeated(message)]
        texts = [in_words(message), *given, *([self.advice] if self.advice else [])]
        raise UsageError("; ".join([*texts, f"`{self.prog} --help` says more"]))

    def _unrepeated(self, message: str) -> list[str]:
        """Return what to type where one option was given several NAME=VALUE."""
        unknown = message.removeprefix("unrecognized arguments: ").split()
        before, found = "", []
        for word in self._words:
            if word.startswith("-"):
                before = word
            elif before and "=" in word and word in unknown:
                found.append(f"{before} is needed before each: {before} {word}")
        return found

    def _nearest(self) -> list[str]:
        known = list(self._option_string_actions)
        typed = [word.partition("=")[0] for word in self._words if word.startswith("--")]
        wrong = [word for word in typed if not any(name.startswith(word) for name in known)]
        from difflib import get_close_matches  # noqa: PLC0415 - only after a mistake

        names = {name.lstrip("-"): name for name in known}
        near = [
            (word, [*_swapped(word[2:], names), *get_close_matches(word[2:], names, 1)])
            for word in dict.fromkeys(wrong)
        ]
        return [f"did you mean {names[found[0]]} by {word}?" for word, found in near if found]


def _swapped(word: str, names: Iterable[str]) -> list[str]:
    """Return the names of the same letters in another order."""
    return [name for name in names if sorted(name) == sorted(word)]


class _DefaultsInHelp(argparse.RawDescriptionHelpFormatter):
    """Adds each option's default to its help, where the help does not state it itself."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        text = action.help or ""
        is_stated = "default" in text or not action.option_strings or action.nargs == 0
        if is_stated or any(action.default is each for each in _LEFT_OUT) or action.default == []:
            return text
        return f"{text} (default: %(default)s)"
