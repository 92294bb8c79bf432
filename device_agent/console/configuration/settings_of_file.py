"""The keys of a configuration file that are options of the command line, by their names."""

import argparse
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from device_agent.console.configuration.document import Document, kind_in_words
from lasp_edge.tool.broker_options import PASSWORD, USER

SECRETS: Mapping[str, str] = {"user": USER, "password": PASSWORD}
"""Keys that are no options, and the environment variables that they stand for."""


def options_of(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """Return what a parser takes, by the name without dashes."""
    # argparse tells of its options in no other way.
    actions = parser._actions  # noqa: SLF001
    named = {name.removeprefix("--"): each for each in actions for name in each.option_strings}
    named |= {each.dest: each for each in actions if not each.option_strings}
    return {name: each for name, each in named.items() if not name.startswith("-")}


def settings_of(
    document: Document, known: Mapping[str, argparse.Action], apart: set[str]
) -> dict[str, Any]:
    """Return the values of the keys at the top of a file, by the option's place in a namespace.

    Args:
        document: the file.
        known: the options of the command line.
        apart: keys that somebody else reads.

    Raises:
        UsageError: a key or a value cannot be.
    """
    found: dict[str, Any] = {}
    for key, value in document.table.items():
        if key in apart or key in SECRETS:
            continue
        if key not in known:
            raise document.unknown((key,), "the file", [*known, *apart, *SECRETS])
        found[known[key].dest] = _value(document, key, value, known[key])
    return found


def secrets_of(document: Document) -> dict[str, str]:
    """Return user and password, as the environment variables that hold them elsewhere.

    Raises:
        UsageError: the password itself stands in the file.
    """
    found = {}
    for key, variable in SECRETS.items():
        if key not in document.table:
            continue
        value = document.table[key]
        if type(value) is not str:
            raise document.mistake((key,), f"{key}: a text is needed, not {kind_in_words(value)}")
        if key == "password" and not str(document.as_written((key,))).startswith("env:"):
            raise document.mistake(
                (key,),
                'a password does not belong in this file; write password = "env:NAME" and set the '
                f"environment variable NAME, or set {PASSWORD}, or use login",
            )
        found[variable] = value
    return found


def _value(document: Document, key: str, value: Any, action: argparse.Action) -> Any:
    if type(value) is bool and action.nargs == "?" and action.const is not None:
        return action.const if value else ""  # as the option alone on the command line, or without
    needed = _needed(action, value)
    if needed:
        text = f"{key}: {needed} is needed, not {kind_in_words(value)}"
        raise document.mistake((key,), text)
    try:
        return action.type(value) if callable(action.type) else value
    except (ValueError, OverflowError) as error:
        raise document.mistake((key,), f"{key}: {error}") from None


def _needed(action: argparse.Action, value: Any) -> str:
    """Return what an option needs, where a value is not that; else an empty text."""
    if action.nargs == 0:
        return "" if type(value) is bool else "true or false"
    if action.type is float:
        is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
        return "" if is_number else "a number"
    if action.type is int:
        return "" if type(value) is int else "a whole number"
    if type(value) is int:
        return f'a text in quotation marks, "{value}",'
    if type(value) is not str:
        return "a text in quotation marks"
    fits = action.choices is None or value in action.choices
    return "" if fits else f"one of {', '.join(map(str, action.choices or ()))}"
