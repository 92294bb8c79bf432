"""Rows and columns: how a device's partials by key are held, and how they travel.

>>> columns_of(rows_of(("attic", "cellar"), (7, 3), ((2, 1), (50, 30))))
(('attic', 'cellar'), (7, 3), ((2, 1), (50, 30)))
"""

from collections.abc import Iterable, Sequence
from sys import intern
from typing import Any

from lasp_edge.folds.columns import Partial

VersionedPartial = tuple[str, int, Partial]
"""A row of an entry: a key, the seq at which its device last changed it, and its partial."""
EntryRows = tuple[VersionedPartial, ...]
"""The payload of an entry, in the order of the keys."""


def rows_of(
    keys: Sequence[str], seqs: Iterable[int], columns: Iterable[Sequence[Any]]
) -> EntryRows:
    """Return rows from columns: the keys, their seqs, and a column for each part of the partial."""
    partials = zip(*columns, strict=True) if keys else ()
    return tuple(zip(map(intern, keys), seqs, partials, strict=True))


def columns_of(
    rows: EntryRows,
) -> tuple[tuple[str, ...], tuple[int, ...], tuple[tuple[Any, ...], ...]]:
    """Return what `rows_of` was given; no rows have no columns."""
    if not rows:
        return (), (), ()
    keys, seqs, partials = zip(*rows, strict=True)
    return keys, seqs, tuple(zip(*partials, strict=True))
