"""Following rows as they come: each that is new or has changed since the last look is printed.

All rows since a time are read again at each look, so a late revision is seen whenever it comes. A
look that takes long is followed by a longer pause, so that it never takes more than a tenth of the
time.
"""

import argparse
import sys
import time
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from typing import Any, Final, NoReturn

from lasp_edge.errors import CommandError, Exit, NotFound, UsageError
from lasp_edge.tool.printing import FoundRows, RowPrinter, RowsWanted, rows_wanted
from lasp_edge.units import SECOND_US

Find = Callable[[RowsWanted], FoundRows]
LOOK_S: Final = 2.0
"""Seconds between two looks, at least."""
SHARE: Final = 10
"""A pause is this many times as long as the look before it, at least."""
BACK_US: Final = 3_600 * SECOND_US
"""Microseconds before the newest row from which on rows are followed, unless a time is given."""
MOST_KEYS: Final = 12
"""Keys that are named where none is near, at most."""
_TIMES: Final = ("start_us", "time_us")


def show(find: Find, arguments: argparse.Namespace, *, takes_back: bool = False) -> Exit:
    """Print rows that were chosen (`lasp_edge.tool.printing.add_choice`), or follow them.

    Args:
        find: reads them.
        arguments: of the command.
        takes_back: a row may be taken back, which only its revisions show.

    Raises:
        CommandError: they cannot be read.
    """
    wanted, follows = rows_wanted(arguments), arguments.follow
    if follows and wanted.as_of_us is not None:
        raise UsageError("--follow prints what comes, and --as-of what was known: give one of them")
    if follows and takes_back:
        wanted = wanted._replace(all_revisions=True)
    printer = RowPrinter(as_csv=arguments.csv, as_json=arguments.json, goes_on=follows)
    if follows:
        follow(find, wanted, printer)
    found = find(wanted)
    rows = list(found.rows)
    if not rows and wanted.key is not None:
        _need_key(find(wanted._replace(key=None)), wanted.key)
    printer.show(found._replace(rows=rows))
    return Exit.FINE


def _need_key(found: FoundRows, key: str) -> None:
    """Check that a key without rows is not one that was mistyped.

    Raises:
        NotFound: there are; the text names the key that is nearest.
    """
    at = list(found.columns).index("key")
    known = sorted({row[at] for row in found.rows})
    if known:
        near = get_close_matches(key, known, 1)
        shown = [each or "rows without a key" for each in known[:MOST_KEYS]]
        meant = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(shown)}"
        raise NotFound(f"--key: no row has the key {key!r}; {meant}")


def follow(find: Find, wanted: RowsWanted, printer: RowPrinter) -> NoReturn:
    """Print rows, and then each that is new or has changed, until somebody stops it.

    Raises:
        CommandError: they cannot be read at the first look. Later looks are tried again.
    """
    printed: set[tuple[Any, ...]] = set()
    look = find
    while True:
        began_s = time.monotonic()  # noqa: TID251 - a command waits in real time
        found = look(wanted)
        look = partial(_found_again, find)
        rows = [tuple(row) for row in found.rows]
        at = next(place for place, name in enumerate(found.columns) if name in _TIMES)
        if rows and wanted.since_us is None:
            wanted = wanted._replace(since_us=max(row[at] for row in rows) - BACK_US)
        since_us = wanted.since_us
        new = [
            row for row in rows if row not in printed and (since_us is None or row[at] >= since_us)
        ]
        printer.show(found._replace(rows=sorted(new, key=lambda row: row[at])))
        printed = set(rows)
        took_s = time.monotonic() - began_s  # noqa: TID251 - the same
        time.sleep(max(LOOK_S, SHARE * took_s))


def _found_again(find: Find, wanted: RowsWanted) -> FoundRows:
    """Read rows, again and again until they can be read; each reason is printed once."""
    reason = ""
    while True:
        try:
            return find(wanted)
        except CommandError as error:
            if str(error) != reason:
                print(f"{error}; the next look is in {LOOK_S:g} s", file=sys.stderr, flush=True)  # noqa: T201
            reason = str(error)
            time.sleep(LOOK_S)
