"""Where rows of windows and results are kept: a lake, a gateway's directory, or an agent's.

Each tier reads its own. A Pi need not have Arrow, and whoever has a lake need no agent, so only the
place that was named is imported: a gateway and an agent by the entry points `lasp_edge.windows`,
`lasp_edge.results` and `lasp_edge.items`.
"""

import argparse
from collections.abc import Iterable, Sequence

from lasp_edge.language.plan import Plan
from lasp_edge.ordered.cells import CellId
from lasp_edge.ordered.inputs import InputCell
from lasp_edge.tool.printing import FoundRows, RowsWanted

_LAKE, _GATEWAY, _DEVICE = "lake", "gateway", "data_dir"
_HELP = {
    _LAKE: "the lake",
    _GATEWAY: "the --data-dir of a gateway",
    _DEVICE: "the --data-dir of an agent: only this device's own; with --program",
}
WINDOWS, RESULTS, ITEMS = "windows", "results", "items"
PLACES = {
    WINDOWS: (_LAKE, _GATEWAY, _DEVICE),
    RESULTS: (_LAKE, _GATEWAY, _DEVICE),
    ITEMS: (_LAKE, _GATEWAY),
}
"""What is kept where."""


def add_place(parser: argparse.ArgumentParser, kind: str) -> None:
    """Declare where rows of a kind, `WINDOWS` or `RESULTS`, are kept."""
    where = parser.add_mutually_exclusive_group(required=True)
    for place in PLACES[kind]:
        where.add_argument(f"--{place.replace('_', '-')}", metavar="DIR", help=_HELP[place])
    program = "--data-dir: the agent's program"
    parser.add_argument("--program", metavar="MODULE:PROGRAM", help=program)


def add_kept(parser: argparse.ArgumentParser) -> None:
    """Declare where the items of a fleet are kept, and rows of results beside them."""
    where = parser.add_mutually_exclusive_group(required=True)
    for place in PLACES[ITEMS]:
        where.add_argument(f"--{place}", metavar="DIR", help=_HELP[place])
    parser.set_defaults(**{_DEVICE: None})


def cells(
    arguments: argparse.Namespace, plan: Plan, event: str, until_us: int
) -> Iterable[tuple[CellId, InputCell]]:
    """Return the cells of an event that begin before a time, of all devices.

    Raises:
        NotFound: the place that was named is not there.
    """
    place, directory = _named(PLACES[ITEMS], arguments)
    if place == _LAKE:
        from cloud_tier.lake.items import stored_cells  # noqa: PLC0415 - a Pi need not have Arrow
        from cloud_tier.lake.tables import LakeTables  # noqa: PLC0415

        return stored_cells(LakeTables(directory), plan, event, until_us)
    from importlib.metadata import entry_points  # noqa: PLC0415 - rarely needed

    (point,) = entry_points(group=f"lasp_edge.{ITEMS}", name=place)
    found: Iterable[tuple[CellId, InputCell]] = point.load()(directory, plan, event, until_us)
    return found


def find(kind: str, arguments: argparse.Namespace, wanted: RowsWanted) -> FoundRows:
    """Return the rows that are wanted from the place that was named.

    Raises:
        CommandError: there is no such place or name, or it does not keep what is wanted.
    """
    place, directory = _named(PLACES[kind], arguments)
    if place == _LAKE:
        from cloud_tier.command import table  # noqa: PLC0415 - a Pi need not have Arrow
        from cloud_tier.lake.lake import Lake  # noqa: PLC0415

        table.leave_pandas_out()
        lake = Lake(directory)
        rows = lake.windows(wanted.name) if kind == WINDOWS else lake.results(wanted.name)
        return table.chosen(rows, wanted)
    from importlib.metadata import entry_points  # noqa: PLC0415 - rarely needed

    (point,) = entry_points(group=f"lasp_edge.{kind}", name=place)
    found: FoundRows = point.load()(directory, wanted)
    return found


def _named(places: Sequence[str], arguments: argparse.Namespace) -> tuple[str, str]:
    """Return the place that was named, and its directory: the parser wants one of them."""
    ((place, directory),) = [
        (place, found) for place in places if (found := getattr(arguments, place)) is not None
    ]
    return place, directory
