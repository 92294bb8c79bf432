"""Did you mean ...? The nearest of the words that are known."""

from collections.abc import Iterable

MOST_LISTED = 12
"""Known words that are listed, at most, where none of them is near."""
_LEAST_BEGINNING = 2
"""Letters of which a word must have more, to be taken for the beginning of another one."""


def hint(word: str, known: Iterable[str]) -> str:
    """Return the hint in a message about an unknown name: the nearest name, or all that there are.

    >>> hint("temprature", ["temperature", "humidity"])
    'did you mean "temperature"?'
    >>> hint("zz", ["temperature", "humidity"])
    'there are "temperature", "humidity"'
    >>> hint("zz", [])
    'there are no others'
    """
    words = list(known)
    near = nearest(word, words)
    if near:
        return f'did you mean "{near}"?'
    if not words:
        return "there are no others"
    more = ", ..." if len(words) > MOST_LISTED else ""
    return f"there are {quoted(words[:MOST_LISTED])}{more}"


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word that is most like this one, or that it begins; "" if none is.

    >>> nearest("temp", ["humidity", "temperature"]), nearest("zz", ["humidity"])
    ('temperature', '')
    """
    from difflib import get_close_matches  # noqa: PLC0415 - only after a mistake

    folded = {each.lower().replace("_", "-"): each for each in reversed(list(known))}
    asked = word.lower().replace("_", "-")
    near = get_close_matches(asked, folded, n=1)
    if len(asked) > _LEAST_BEGINNING:
        near += sorted(each for each in folded if each.startswith(asked))
    return folded[near[0]] if near else ""


def quoted(words: Iterable[str]) -> str:
    """Return words in quotation marks, with commas between them.

    >>> print(quoted(["ts", "v"]))
    "ts", "v"
    """
    return ", ".join(f'"{word}"' for word in words)
