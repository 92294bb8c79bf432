"""The action of `lasp-edge lake` on a new version of a program: what it changes."""

import argparse

from cloud_tier.lake.planned import window_changes
from cloud_tier.lake.tables import LakeTables
from lasp_edge.errors import UsageError
from lasp_edge.language.plan import Plan
from lasp_edge.tool.loading import load_plan
from lasp_edge.tool.screen import aligned


def add_plan_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what `plan` takes."""
    group = parser.add_argument_group("plan")
    group.add_argument("--program", metavar="MODULE:PROGRAM", help="its new version")


def show_plan(arguments: argparse.Namespace) -> str:
    """Return what a program changes in a lake, a line for each window."""
    plan, tables = _given(arguments)
    return "\n".join(
        aligned([(each.window, each.text) for each in window_changes(plan, tables)], left=(0, 1))
    )


def _given(arguments: argparse.Namespace) -> tuple[Plan, LakeTables]:
    if arguments.program is None:
        raise UsageError("lake plan: --program MODULE:PROGRAM is needed")
    tables = LakeTables(arguments.lake)
    tables.table(tables.landing)
    return load_plan(arguments.program), tables
