"""Comments on the columns of a lake's tables, which any reader of Delta shows.

What a fold's columns mean, and in which unit, is in the table `programs`: it differs by window.
"""

import re
from typing import Final

from lasp_edge.folds.structs import Struct
from lasp_edge.language.described import ResultDefinition
from lasp_edge.protocol.window_rows import COUNTED, COVERED, FIELDS

_US: Final = "microseconds since 1970, UTC"
_OF_RESULTS: Final = {
    **{each.column or name: each.text for name, each in FIELDS.items()},
    "window": "name of the window in the program",
    "name": "name of the value in the program",
    "result": "name of the stream in the program",
    "key": "what rows are kept by; empty without a key",
    "device": "the device whose readings the row was made from; empty: made of readings of all",
    "start_us": f"start of the window, {_US}",
    "end_us": f"end of the window, not included, {_US}",
    "time_us": f"time of the row, {_US}",
    "place": "where the row stands in the order of its device: texts are ordered as rows are",
    "present": "false: the row was taken back",
    COUNTED[0]: "devices that a tentative row waits for",
    COUNTED[1]: "devices that a row is made without, which is not tentative",
    COVERED: "false: it begins before the lake had the definition, and may lack readings",
    "inputs": "digest of the entries it was made from: equal ones give equal values on devices",
    "description": "JSON: fold, resolution, unit, size and slide",
    "since_us": f"since when the lake has the definition, {_US}; null: from the begin",
}
_OF_PROGRAMS: Final = {
    "kind": "window, fold (a value), result, shared (a variable), or program",
    "name": "its name in the program",
    "revision": "0, 1, 2, ...: how often its meaning had changed; the greatest is current",
}
_OF_FOLDS: Final = {
    "count": "how many readings",
    "sum": "the sum of the readings",
    "mean": "the mean of the readings",
    "variance": "the variance of the readings",
    "stddev": "the standard deviation of the readings",
    "min": "the least reading",
    "max": "the greatest reading",
    "first": "the earliest reading",
    "last": "the latest reading",
    "distinct": "about how many different readings",
    "any": "whether a reading is not 0",
    "all": "whether no reading is 0",
}
_WITHOUT_UNIT: Final = {"count", "distinct", "variance", "any", "all"}
_QUANTILE: Final = re.compile(r"p(\d+)(?:_(\d+))?$")
_RANK: Final = re.compile(r"top_(\d+)$")
_SESSION: Final = {
    "start_us": "of a session, the time of its first reading",
    "end_us": "of a session, the time of its last reading",
}
_COUNT: Final = "a number of readings"
_STEPS: Final = "exact, in steps of the event's resolution (table programs)"
_READ: Final = 'In Python, `from cloud_tier import Lake; Lake("lake").'
TABLES: Final = {
    "windows": "every revision of every row; of each window, key and start_us the one with the "
    f'greatest revision is current. {_READ}windows("NAME").to_pandas()` gives these in the unit.',
    "globals": "every revision of every value of the fleet; of each name and key the one with the "
    f'greatest revision is current. {_READ}values("NAME").current()` gives these in the unit.',
    "results": "every revision of every row; of each result, device and place the one with the "
    f'greatest revision is current. {_READ}results("NAME").to_pandas()` gives these in the unit.',
    "lattice": "the fleet's merged state as the job keeps it; rows may repeat, and none is for "
    "people: results are in windows, globals and results.",
    "shared": "pieces of variables that all devices share; rows may repeat. "
    f'{_READ}shared("NAME").value` joins them.',
    "rejects": "frames that were not taken: their topics, reasons and beginnings.",
    "programs": "what windows, values and results mean: fold, resolution, unit; of each kind and "
    "name the greatest revision is current.",
}
"""What a table holds, in its description; that of `landing` is the format of the lake alone."""


def comment(column: str, *, is_binary: bool = False, table: str = "") -> str:
    """Return the comment of a column of results.

    >>> comment("status")
    'tentative, final, or revised after it was final'
    >>> comment("total_q")
    "exact, in steps of the event's resolution (table programs)"
    """
    if table == "programs" and column in _OF_PROGRAMS:
        return _OF_PROGRAMS[column]
    if column in _OF_RESULTS:
        return _OF_RESULTS[column]
    if is_binary:
        return "a sketch, as bytes that other tools can join"
    return _STEPS if column.endswith("_q") else _COUNT if column.endswith("count") else ""


def part_comment(part: str, meaning: ResultDefinition) -> str:
    """Return the comment of a value that a fold or a scan gives.

    >>> from lasp_edge import Resolution, folds
    >>> fold = folds.struct(n=folds.count(), q=folds.quantile(0.5, 0.999))
    >>> made = ("window", "rooms", 1, (), frozenset(), fold.parts, fold, Resolution("0.1"), 1, 1)
    >>> meaning = ResultDefinition(*made, unit="°C")
    >>> part_comment("n", meaning)
    'how many readings'
    >>> part_comment("q_p99_9", meaning)
    'the 99.9 % quantile of the readings, in °C'
    """
    is_session = meaning.steps and meaning.parts[: len(_SESSION)] == tuple(_SESSION)
    if is_session and part in _SESSION:
        return _SESSION[part]
    name, inner, fold = "", part, meaning.fold
    if fold is not None:
        giver = fold.givers.get(part, fold) if isinstance(fold, Struct) else fold
        name, inner = giver.name, giver.parts[0] if len(giver.parts) == 1 else part
    elif is_session:
        name = part
    text = _OF_FOLDS.get(name) or _of_several(name, inner)
    if not text:
        text = "a part of the fold's value" + (", of readings" if meaning.unit else "")
    return f"{text}, in {meaning.unit}" if meaning.unit and name not in _WITHOUT_UNIT else text


def _of_several(name: str, part: str) -> str:
    """Return what a part of a fold is whose parts are numbered; empty of another fold."""
    if name == "quantile" and (found := _QUANTILE.search(part)):
        return f"the {'.'.join(filter(None, found.groups()))} % quantile of the readings"
    if name == "top" and (found := _RANK.search(part)):
        return f"reading number {found[1]}, counted from the greatest"
    return ""
