"""What a command does is printed on stderr, where it takes longer than people wait in silence."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SILENT_S = 5.0
"""Seconds after which a person wonders whether a command still runs."""


@contextmanager
def announced(what: str, after_s: float = SILENT_S) -> Iterator[None]:
    """Print what is done meanwhile on stderr, once, if it takes longer than `after_s` seconds.

    >>> with announced("tries the laws of fold here"):
    ...     pass
    """
    timer = threading.Timer(after_s, lambda: print(what, file=sys.stderr, flush=True))  # noqa: T201
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
