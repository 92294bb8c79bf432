"""Folds of a user's own that raise something in a gateway: counted by reason, and nothing ends."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from lasp_edge.errors import pass_interrupt
from lasp_edge.reasons import reason_of

MOST_FAILURES: Final = 100
"""Reasons that are counted apart, at most; a fold of the user's own may raise a new text each
time."""


@contextmanager
def count_failure(failed: Counter[str], window: str) -> Iterator[None]:
    """Count what a fold of a user's own raises while a window's rows are made."""
    try:
        yield
    except BaseException as error:  # noqa: BLE001 - a user's fold may raise anything
        pass_interrupt(error)
        reason = f"{window}: {reason_of(error)}"
        if reason in failed or len(failed) < MOST_FAILURES:
            failed[reason] += 1
