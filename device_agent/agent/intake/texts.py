"""Readings that are texts: for streams alone, and known again by a number, as all readings are.

>>> text_number("dog cat"), text_number("dog cat ")
(1325867814, 458507137)
>>> text_number(5)
Traceback (most recent call last):
    ...
lasp_edge.folds.numbers.Refused: not a text
"""

from hashlib import sha256
from typing import Any

from lasp_edge.folds.numbers import LIMIT, Refused

TEXT_BYTES = 1_024
"""Bytes of one reading, at most: an item of a stream stays small."""


def text_number(value: Any) -> int:
    """Return a number for a text, in the range of quantised readings.

    Of one time and set of tags, two texts have one number once in 2**31.

    Raises:
        Refused: it is no text, or a long one.
    """
    if type(value) is not str:
        raise Refused("missing value" if value is None else "not a text")
    encoded = value.encode(errors="replace")
    if len(encoded) > TEXT_BYTES:
        raise Refused(f"a text of more than {TEXT_BYTES} bytes")
    return int.from_bytes(sha256(encoded).digest()[:4], "big") % LIMIT
