"""The configuration file and the command line together: the command line wins.

A value comes from the command line, else from the file, else it is the default. `--source` on the
command line stands for all sources of the file; an option of sources on the command line comes
before those of the file.
"""

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any, NamedTuple

from device_agent.agent.sources.choice import (
    BrokenSourceError,
    SourceSpec,
    kind_of,
    source_options,
    spec_of,
)
from device_agent.agent.sources.mapping_options import WITH_TAG
from device_agent.agent.sources.source import SourceContext
from device_agent.agent.sources.times import FIRST_US
from lasp_edge.errors import UsageError
from lasp_edge.language.plan import Plan
from lasp_edge.link import BrokerUrl

AREA_TAGS = ("area", "room")
"""Fixed tags that name the area of a device in Home Assistant; the first of them counts."""


class AgentRequest(NamedTuple):
    """An agent as a person asked for it.

    Attributes:
        arguments: the options of the agent, each with its value.
        specs: its sources, each with its options.
        environment: the environment, with user and password of the file.
        where: returns the file and line of an option of the file; empty for others.
    """

    arguments: argparse.Namespace
    specs: list[SourceSpec]
    environment: Mapping[str, str]
    where: Callable[[str], str] = lambda _option: ""

    def context(
        self, spec: SourceSpec, plan: Plan | None, broker: BrokerUrl | None, jitter: Random
    ) -> SourceContext:
        """Return the facts about the agent for one of its sources."""
        return SourceContext(
            events=() if plan is None else tuple(plan.events),
            device=self.arguments.device or "device",
            jitter=jitter,
            broker=broker,
            options=spec.options,
            texts=() if plan is None else tuple(plan.text_events),
            first_us=FIRST_US,
            fleet=vars(self.arguments).get("fleet") or ("" if plan is None else plan.name),
        )

    @property
    def area(self) -> str:
        """The room or area that all sources have as their fixed tag; "" where they do not."""
        tags = [spec.options.get(WITH_TAG.name, {}) for spec in self.specs]
        for name in AREA_TAGS:
            found = {given.get(name, "") for given in tags}
            if len(found) == 1 and "" not in found:
                return str(found.pop())
        return ""

    def placed(self, error: str) -> str:
        """Return an error's text; with file and line where it begins with an option of the file."""
        option, colon, _ = error.partition(":")
        where = self.where(option.removeprefix("--")) if colon else ""
        return f"{where}: {error.removeprefix('--')}" if where else error


def asked(
    given: argparse.Namespace,
    add_arguments: Callable[[argparse.ArgumentParser], None],
    defaults: Mapping[str, Any],
    environment: Mapping[str, str] = os.environ,
) -> AgentRequest:
    """Return the agent that is asked for.

    Args:
        given: the command line; None stands for an option that was not given.
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
    from_file: dict[str, Any] = {}
    where: Callable[[str], str] = lambda _option: ""  # noqa: E731 - there is no file
    if given.config is not None:
        from device_agent.console.configuration.configured import configured  # noqa: PLC0415 - 0.5 MiB

        file = configured(given.config, add_arguments, environment)
        from_file, environment = file.values, {**environment, **file.secrets}
        overruled = {name.replace("_", "-") for name, value in vars(given).items() if value}
        where = partial(_place, file.where, overruled)
        specs = [
            spec._replace(options={**file.for_all, **spec.options}) for spec in specs or file.specs
        ]
    _need_takers(from_words, specs)
    specs = [spec._replace(options={**spec.options, **from_words}) for spec in specs]
    values = {**defaults, **from_file, **{k: v for k, v in vars(given).items() if v is not None}}
    return AgentRequest(argparse.Namespace(**{**vars(given), **values}), specs, environment, where)


def _need_takers(from_words: Mapping[str, Any], specs: Sequence[SourceSpec]) -> None:
    """Check that each option of sources that was typed is one of some source.

    Raises:
        UsageError: no source would look at it.
    """
    try:
        kinds = [kind_of(spec.kind) for spec in specs]
    except BrokenSourceError:  # its error is raised where the source is made
        return
    taken = {option.name for kind in kinds if kind is not None for option in kind.options}
    unused = [name for name in from_words if name not in taken]
    if specs and None not in kinds and unused:
        asked_for = ", ".join(spec.name for spec in specs)
        raise UsageError(f"--{unused[0]} means nothing to the source {asked_for}; leave it out")


def _place(where: Callable[[str], str], overruled: set[str], option: str) -> str:
    return "" if option in overruled else where(option)
