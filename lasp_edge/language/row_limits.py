"""What surely fits into a row of results, by a short look."""

from functools import lru_cache
from typing import Any

from lasp_edge.language.declarations import TEXT, StreamResult

TEXT_BYTES = 1_024
"""Bytes of a text in a row of results, at most: as of a reading that is a text."""
PART_LIMIT = 2**63
"""Steps of a number in a row of results are less than these: a BIGINT."""


def surely_fits(result: StreamResult, value: Any) -> bool:
    """Return whether a value has the parts of a result, by a short look; False: `parts_of` tells.

    >>> result = StreamResult("counts", (("word", "text"), ("share", "0.01")), 0)
    >>> surely_fits(result, ("dog", 0.125)), surely_fits(result, ("dog", 1e300))
    (True, False)
    """
    values, most = value if type(value) is tuple else (value,), _most(result.parts)
    if len(values) != len(most):
        return False
    for part, limit in zip(values, most, strict=True):
        kind = type(part)
        if kind is str:
            if limit or len(part) > TEXT_BYTES // 4:
                return False
        elif (kind is not float and kind is not int) or not -limit < part < limit:
            return False
    return True


@lru_cache(maxsize=256)
def _most(parts: tuple[tuple[str, str], ...]) -> tuple[float, ...]:
    """Return below what a number surely fits, of each part; 0 of a text."""
    return tuple(0.0 if step == TEXT else float(step) * PART_LIMIT / 2 for _, step in parts)
