"""A configuration file as the options that it stands for; imported only where there is a file.

Each option of the command line is a key of the file: its name without dashes, its type and its
choices are those that `argparse` has of it. Other keys are those of sources, and the secrets.
"""

import argparse
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from device_agent.agent.sources.choice import SourceSpec, options
from device_agent.console.configuration.document import Document, kind_in_words
from device_agent.console.configuration.source_tables import KEYS, SourceTables
from lasp_edge.tool.broker_options import PASSWORD, USER
from lasp_edge.tool.log_options import begin_json

SECRETS: Mapping[str, str] = {"user": USER, "password": PASSWORD}
"""Keys that are no options, and the environment variables that they stand for."""
_NOT_IN_FILES = ("config", "help")


class Configured(NamedTuple):
    """The content of a file.

    Attributes:
        values: options of the agent, by their place in a namespace.
        specs: its sources.
        for_all: options of all sources.
        secrets: user and password, as the environment variables that hold them elsewhere.
        where: returns the file and line of a key at its top; empty for a key that it lacks.
    """

    values: dict[str, Any]
    specs: list[SourceSpec]
    for_all: dict[str, Any]
    secrets: dict[str, str]
    where: Callable[[str], str]


def configured(
    path: Path,
    add_arguments: Callable[[argparse.ArgumentParser], None],
    environment: Mapping[str, str],
) -> Configured:
    """Return the content of a file.

    Args:
        path: the file.
        add_arguments: declares the options that it may hold.
        environment: for the variables that it names.

    Raises:
        NotFound: there is no such file.
        UsageError: it cannot work.
    """
    document = Document(path, environment)
    if document.table.get("log-format") == "json":
        begin_json({})  # its mistakes are lines of the log, too
    known = _options(add_arguments)
    apart = {*KEYS, *SECRETS, *(n for each in options() for n in (each.name, *each.former))}
    values: dict[str, Any] = {}
    for key, value in document.table.items():
        if key not in known and key not in apart:
            raise document.unknown((key,), "the file", [*known, *apart])
        if key not in apart:
            values[known[key].dest] = document.read((key,), partial(_value, known[key]), value)
    tables = SourceTables(document)
    specs, for_all = tables.specs(), tables.defaults()
    secrets = {
        variable: document.read((key,), partial(_secret, document, key), document.table[key])
        for key, variable in SECRETS.items()
        if key in document.table
    }
    return Configured(values, specs, for_all, secrets, document.where_key)


def _options(
    add_arguments: Callable[[argparse.ArgumentParser], None],
) -> dict[str, argparse.Action]:
    """Return the options of a command, by the name without dashes."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    actions = parser._actions  # noqa: SLF001 - argparse has no other list of its options
    named = {name: each for each in actions for name in each.option_strings or [each.dest]}
    found = {name.removeprefix("--"): each for name, each in named.items()}
    return {n: a for n, a in found.items() if not n.startswith("-") and n not in _NOT_IN_FILES}


def _secret(document: Document, key: str, value: Any) -> str:
    if type(value) is not str:
        raise ValueError(f"a text is needed, not {kind_in_words(value)}")
    if key == "password" and not str(document.as_written((key,))).startswith("env:"):
        raise document.mistake(
            (key,),
            'a password does not belong in this file; write password = "env:NAME" and set the '
            f"environment variable NAME, or set {PASSWORD}, or use login",
        )
    return value


def _value(action: argparse.Action, value: Any) -> Any:
    """Return the value of an option as the command line would have it.

    Raises:
        ValueError: it is not a value; the text names what is needed.
    """
    if type(value) is bool and action.nargs == "?" and action.const is not None:
        return action.const if value else ""  # as the option alone on the command line, or without
    if type(value) is int and "PORT" in str(action.metavar):
        value = str(value)
    needed = _needed(action, value)
    if needed:
        raise ValueError(f"{needed} is needed, not {kind_in_words(value)}")
    return action.type(value) if callable(action.type) else value


def _needed(action: argparse.Action, value: Any) -> str:
    """Return the need of an option that a value does not meet; an empty text if it does."""
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
