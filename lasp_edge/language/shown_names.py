"""The names that people read above columns: a time without its `_us`, and no name twice.

A table keeps times as integers, in columns such as `start_us` and `last_us`; shown as times they
are `start` and `last`. A part of a fold may have just that name: then the time is `last_time`. A
part that a program names `least_us` is no time, and keeps its name.
"""

from collections.abc import Collection, Iterable, Sequence

from lasp_edge.folds.numbers import Resolution
from lasp_edge.language.declarations import TEXT
from lasp_edge.language.described import ResultDefinition

_TIME_US = "_us"


def shown_names(columns: Sequence[str], meaning: ResultDefinition | None = None) -> dict[str, str]:
    """Return column -> the name that it is shown under, which no other column has, in any case.

    Args:
        columns: all that the rows have, also those that are not shown: a name does not depend on
            what else is asked for.
        meaning: of the rows; None where every column `*_us` is a time.

    >>> shown_names(["start_us", "last", "last_us"])
    {'start_us': 'start', 'last': 'last', 'last_us': 'last_time'}
    """
    times = shown_times(columns, meaning)
    found = {name: name for name in columns}
    taken = [name for name in columns if name not in times]
    for column in columns:
        if column in times:
            found[column] = free_name(column.removesuffix(_TIME_US), taken, "_time")
            taken.append(found[column])
    return found


def shown_times(columns: Iterable[str], meaning: ResultDefinition | None = None) -> set[str]:
    """Return the columns that hold a time, in microseconds.

    >>> sorted(shown_times(["start_us", "last_us", "last"]))
    ['last_us', 'start_us']
    """
    return {
        name
        for name in columns
        if name.endswith(_TIME_US) and (meaning is None or not _is_value(name, meaning))
    }


def free_name(name: str, taken: Collection[str], more: str) -> str:
    """Return a name, with as many `more` behind it as no taken name has, in any case.

    >>> free_name("day", ["Day", "mean"], "_utc"), free_name("day", ["mean"], "_utc")
    ('day_utc', 'day')
    """
    others = {each.casefold() for each in taken}
    while name.casefold() in others:
        name += more
    return name


def _is_value(name: str, meaning: ResultDefinition) -> bool:
    """Return whether a column is a part, and not a stored integer, nor a row's whole number."""
    if name not in meaning.parts or name in meaning.columns:
        return False
    step = dict(zip(meaning.parts, meaning.steps, strict=False)).get(name, TEXT)
    return step == TEXT or Resolution(step).denominator != 1
