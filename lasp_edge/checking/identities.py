"""The identities of each window and fold of a plan: equal lines mean the same.

A stream id travels with every partial, so a store or a lake that holds partials of one program can
be used by another exactly where their lines agree.

A line also says how Spark combines: by its own operators, or in Python where a fold combines by
itself.

    >>> from lasp_edge.examples.greenhouse import program
    >>> for line in identities(program.plan()):
    ...     print(line.partition(" columns ")[0])
    window temperature_by_room: stream -3849573467664809380, span 10000000 us, by key version 1,
    fold local_average: stream -3977689350918064973, no keys,
    fold_dynamic global_average: stream -224942116168522081, no keys,
"""

from collections.abc import Iterator

from lasp_edge.folds.columns import Column
from lasp_edge.language.declarations import DynamicFold, LocalFold, Tier, Window
from lasp_edge.language.plan import Plan


def identities(plan: Plan) -> Iterator[str]:
    """Yield a line for each window, local fold and dynamic fold, in the order of declaration."""
    for window in plan.windows.values():
        yield _line("window", window, window.version, f"span {window.span_us} us, ")
    for local in plan.local_folds.values():
        yield _line("fold", local, local.source.version)
    for dynamic in plan.dynamic_folds.values():
        yield _line("fold_dynamic", dynamic, dynamic.source.source.version)


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
