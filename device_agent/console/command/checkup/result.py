"""The results of checks, and the agent that they look at."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from device_agent.console.command.checkup.contact import BrokerContact, contact_with
from device_agent.console.configuration.arguments import AgentRequest
from lasp_edge.errors import CommandError
from lasp_edge.language.plan import Plan
from lasp_edge.tool.loading import load_plan


class Level(StrEnum):
    """Grades of results."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"
    SKIPPED = "skipped"


class CheckResult(NamedTuple):
    """The result of a check.

    Attributes:
        level: its grade.
        says: one sentence.
        type: a command line that helps; empty if none does, or `says` names an option.
    """

    level: Level
    says: str
    type: str = ""


@dataclass
class Subject:
    """An agent as it is asked for, on this machine.

    Attributes:
        wanted: the agent's options and sources; all may be missing.
        unit: the name of its unit for systemd.
        root: the directory in place of `/`.
    """

    wanted: AgentRequest
    unit: str = "lasp-edge"
    root: Path = Path("/")

    def __post_init__(self) -> None:
        self.plan: Plan | None = None
        self.plan_trouble = ""
        if self.wanted.arguments.program:
            try:
                self.plan = load_plan(self.wanted.arguments.program)
            except CommandError as error:
                self.plan_trouble = str(error)

    @property
    def data_dir(self) -> Path | None:
        """Where the agent keeps its state; None where it is not given."""
        directory: Path | None = self.wanted.arguments.data_dir
        return directory

    @cached_property
    def contact(self) -> BrokerContact:
        """The outcome of a short connection to the broker; without a broker nothing."""
        arguments = self.wanted.arguments
        if not arguments.broker:
            return BrokerContact("")
        return contact_with(self.wanted, arguments.fleet or (self.plan.name if self.plan else ""))


Check = Callable[[Subject], Iterator[CheckResult]]
"""Yields its results; none where there is nothing to report."""


def skipped(lacks: str) -> CheckResult:
    """Return that a check was not made, and which words it lacks."""
    return CheckResult(Level.SKIPPED, f"not looked at: give {lacks}, or --config FILE")
