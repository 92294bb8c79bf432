"""Did you mean ...? The nearest of the words that are known."""

from collections.abc import Iterable

MOST_LISTED = 12
"""Known words that are listed, at most, where none of them is near."""


def hint(word: str, known: Iterable[str]) -> str:
    """Return what to add to a message about an unknown word: the nearest one, or what there is.

    >>> hint("temprature", ["temperature", "humidity"])
    'did you mean "temperature"?'
    >>> hint("zz", ["temperature", "humidity"])
    'there are "temperature", "humidity"'
    >>> hint("zz", [])
    'there are no others'
    """
    from difflib import get_close_matches  # noqa: PLC0415 - only after a mistake

    words = list(known)
    folded = {each.lower().replace("_", "-"): each for each in reversed(words)}
    near = get_close_matches(word.lower().replace("_", "-"), folded, n=1)
    if near:
        return f'did you mean "{folded[near[0]]}"?'
    if not words:
        return "there are no others"
    more = ", ..." if len(words) > MOST_LISTED else ""
    return f"there are {quoted(words[:MOST_LISTED])}{more}"


def quoted(words: Iterable[str]) -> str:
    """Return words in quotation marks, with commas between them.

    >>> print(quoted(["ts", "v"]))
    "ts", "v"
    """
    return ", ".join(f'"{word}"' for word in words)
