"""What a configuration file says, put together; imported only where there is a file."""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from device_agent.agent.sources.choice import SourceSpec, options
from device_agent.console.configuration.document import Document
from device_agent.console.configuration.settings_of_file import options_of, secrets_of, settings_of
from device_agent.console.configuration.source_tables import KEYS, SourceTables
from lasp_edge.tool.log_options import begin_json

_NOT_IN_FILES = ("config", "help")


class Configured(NamedTuple):
    """What a file says.

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
    """Return what a file says.

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
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    known = {n: each for n, each in options_of(parser).items() if n not in _NOT_IN_FILES}
    of_sources = {name for option in options() for name in (option.name, *option.former)}
    values = settings_of(document, known, KEYS | of_sources)
    tables = SourceTables(document)
    secrets = secrets_of(document)
    return Configured(values, tables.specs(), tables.defaults(), secrets, document.where_key)
