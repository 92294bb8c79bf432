"""A mistake that argparse found, in words that name what is needed.

>>> in_words("argument --port: invalid int value: 'http'")
"--port: a whole number is needed, not 'http'"
>>> in_words("argument action: invalid choice: 'stats' (choose from 'status', 'shared')")
"one of status, shared is needed, not 'stats'; did you mean status?"
>>> in_words("argument action: invalid choice: 'start' (choose from 'install')")
"install is needed, not 'start'"
"""

import re
from difflib import get_close_matches
from typing import Final

_VALUE = re.compile(r"argument (?P<name>\S+): invalid (?P<kind>int|float) value: (?P<given>.*)")
_CHOICE = re.compile(
    r"argument (?P<name>\S+): invalid choice: (?P<given>.*) \(choose from (?P<known>.*)\)"
)
_KINDS: Final = {"int": "a whole number", "float": "a number"}


def in_words(message: str) -> str:
    """Return a message of argparse as a person would say it; an unknown one as it is."""
    found = _VALUE.fullmatch(message)
    if found:
        return f"{_option(found['name'])}{_KINDS[found['kind']]} is needed, not {found['given']}"
    found = _CHOICE.fullmatch(message)
    if not found:
        return message
    known = [each.strip(" '") for each in found["known"].split(",")]
    near = get_close_matches(found["given"].strip("'"), known, 1) if len(known) > 1 else []
    meant = f"; did you mean {near[0]}?" if near else ""
    needed = known[0] if len(known) == 1 else f"one of {', '.join(known)}"
    return f"{_option(found['name'])}{needed} is needed, not {found['given']}{meant}"


def _option(name: str) -> str:
    """Return an option as the beginning of a sentence; a word without a dash has no name there."""
    return f"{name}: " if name.startswith("-") else ""
