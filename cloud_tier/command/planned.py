"""The actions of `lasp-edge lake` on a new version of a program: what it changes, and history."""

import argparse

from cloud_tier.command.deletion import no_job
from cloud_tier.job.opened import OpenTables
from cloud_tier.lake.backfill import let_count
from cloud_tier.lake.deletion import ask_recompute
from cloud_tier.lake.planned import window_changes
from cloud_tier.lake.tables import LakeTables
from lasp_edge.errors import UsageError
from lasp_edge.language.plan import Plan
from lasp_edge.tool.loading import load_plan
from lasp_edge.tool.screen import aligned


def add_plan_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what `plan` and `backfill` take."""
    group = parser.add_argument_group("plan, backfill")
    group.add_argument("--program", metavar="MODULE:PROGRAM", help="its new version")
    former = "the window whose panes count for NAME, too (backfill)"
    group.add_argument("--from", dest="former", metavar="NAME", help=former)


def show_plan(arguments: argparse.Namespace) -> str:
    """Return what a program changes in a lake, a line for each window."""
    plan, tables = _given(arguments)
    return "\n".join(
        aligned([(each.window, each.text) for each in window_changes(plan, tables)], left=(0, 1))
    )


def backfill_window(arguments: argparse.Namespace) -> str:
    """Let panes of a former window count for a new one; return what is printed.

    Raises:
        UsageError: a name is missing, a job runs on this machine, or the panes cannot count.
    """
    if arguments.name is None or arguments.former is None:
        raise UsageError("lake backfill: NAME and --from NAME are needed, and --program")
    plan, tables = _given(arguments)
    with no_job(tables):
        made = let_count(plan, tables, arguments.name, arguments.former)
        OpenTables(tables).claim()  # a job on another machine ends
        ask_recompute(tables)
    return (
        f"panes of {made.former!r} count for {made.window!r}, those that landed and those to come; "
        "it is right if both have the same event, key and functions. Start `lasp-edge cloud` with "
        "the new program, and landers again: the job makes the windows"
    )


def _given(arguments: argparse.Namespace) -> tuple[Plan, LakeTables]:
    if arguments.program is None:
        raise UsageError(f"lake {arguments.action}: --program MODULE:PROGRAM is needed")
    tables = LakeTables(arguments.lake)
    tables.table(tables.landing)
    return load_plan(arguments.program), tables
