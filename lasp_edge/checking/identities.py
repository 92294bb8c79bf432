"""The identities of each window and fold of a plan: equal lines mean the same.

A stream id travels with every partial, so a store or a lake that holds partials of one program can
be used by another exactly where their lines agree.

The last line says what becomes of the windows whose lines differ: devices make their panes again.

A line also says how Spark combines: by its own operators, or in Python where a fold combines by
itself.

    >>> from lasp_edge.examples.greenhouse import program
    >>> for line in identities(program.plan()):
    ...     print(line.partition(" columns ")[0])  # doctest: +ELLIPSIS
    window temperature_by_room: stream -3849573467664809380, span 10000000 us, by key version 1,
    fold local_average: stream -3977689350918064973, no keys,
    fold_dynamic global_average: stream -224942116168522081, no keys,
    A window whose size alone changes keeps its panes, and its rows are made again. ...
"""

from collections.abc import Iterator
from typing import Final

from lasp_edge.folds.columns import Column
from lasp_edge.language.declarations import DynamicFold, LocalFold, Tier, Window
from lasp_edge.language.plan import Plan

CHANGED: Final = (
    "A window whose size alone changes keeps its panes, and its rows are made again. Where the "
    "stream changes, also back to a former one, each device makes the panes again of the readings "
    "with own times that it keeps. Readings that get their time on arrival are not kept: a device "
    "that has such counts from its restart on, and rows of windows that begin before name it in "
    "`excluded`."
)
"""What becomes of a window that is changed."""


def identities(plan: Plan) -> Iterator[str]:
    """Yield a line for each window, local fold and dynamic fold, as declared; then what follows."""
    for window in plan.windows.values():
        yield _line("window", window, window.version, f"span {window.span_us} us, ")
    for local in plan.local_folds.values():
        yield _line("fold", local, local.source.version)
    for dynamic in plan.dynamic_folds.values():
        yield _line("fold_dynamic", dynamic, dynamic.source.source.version)
    if plan.windows:
        yield CHANGED


def _line(kind: str, entry: Window | LocalFold | DynamicFold, version: int, span: str = "") -> str:
    keys = f"by key version {version}" if entry.keyed else "no keys"
    columns = ", ".join(map(_in_words, entry.fold.columns))
    tiers = " and ".join(entry.runs_on)
    if Tier.CLOUD in entry.runs_on:
        tiers += " (python, Arrow batches)" if entry.fold.combines_itself else " (spark operators)"
    return (
        f"{kind} {entry.name}: stream {entry.stream}, {span}{keys}, columns {columns}, "
        f"on {tiers}, fingerprint {entry.fold.fingerprint(entry.resolution)}"
    )


def _in_words(column: Column) -> str:
    by = f" by {column.by}" if column.by else ""
    return f"{column.name} {column.op}{by}" + (f" of {column.size}" if column.size else "")
