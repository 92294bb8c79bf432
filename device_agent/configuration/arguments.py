"""The configuration file and the command line together: the command line wins.

A value comes from the command line, else from the file, else it is the default. `--source` on the
command line stands for all sources of the file; an option of sources on the command line comes
before what the file says of any source.
"""

import argparse
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from device_agent.configuration.document import Document
from device_agent.configuration.settings_of_file import options_of, secrets_of, settings_of
from device_agent.configuration.source_tables import KEYS, SourceTables
from device_agent.sources.choice import SourceSpec, options, source_options, spec_of
from lasp_edge.errors import UsageError

_NOT_IN_FILES = ("config", "help")


class AgentRequest(NamedTuple):
    """What a person asked for.

    Attributes:
        arguments: the options of the agent, each with its value.
        specs: its sources, each with its options.
        environment: the environment, with user and password of the file.
    """

    arguments: argparse.Namespace
    specs: list[SourceSpec]
    environment: Mapping[str, str]


def asked(
    given: argparse.Namespace,
    add_arguments: Callable[[argparse.ArgumentParser], None],
    defaults: Mapping[str, Any],
    environment: Mapping[str, str] = os.environ,
) -> AgentRequest:
    """Return what is asked for.

    Args:
        given: the command line; what is None was not given.
        add_arguments: declares its options.
        defaults: the values of options that nobody gave.
        environment: for the variables that a file names.

    Raises:
        NotFound: there is no such file.
        UsageError: the file cannot work.
    """
    try:
        from_words = source_options(given)
    except ValueError as error:
        raise UsageError(str(error)) from None
    specs = [spec_of(text) for text in dict.fromkeys(given.source or ())]
    told: dict[str, Any] = {}
    if given.config is not None:
        document = Document(given.config, environment)
        told, tables = _settings(document, add_arguments), SourceTables(document)
        below = tables.defaults()
        specs = specs or tables.specs()
        specs = [spec._replace(options={**below, **spec.options}) for spec in specs]
        environment = {**environment, **secrets_of(document)}
    specs = [spec._replace(options={**spec.options, **from_words}) for spec in specs]
    values = {**defaults, **told, **{k: v for k, v in vars(given).items() if v is not None}}
    return AgentRequest(argparse.Namespace(**{**vars(given), **values}), specs, environment)


def _settings(
    document: Document, add_arguments: Callable[[argparse.ArgumentParser], None]
) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    known = {n: each for n, each in options_of(parser).items() if n not in _NOT_IN_FILES}
    of_sources = {name for option in options() for name in (option.name, *option.former)}
    return settings_of(document, known, KEYS | of_sources)
