"""Comments on the columns of a lake's tables, which any reader of Delta shows.

What a fold's columns mean, and in which unit, is in the table `programs`: it differs by window.
"""

from typing import Final

from lasp_edge.protocol.window_rows import COUNTED, COVERED

_US: Final = "microseconds since 1970, UTC"
_REVISION: Final = "0, 1, 2, ...: how often the row had changed; the greatest is current"
_STREAM: Final = "of the definition; rows of a former one of this name have another"
_OF_RESULTS: Final = {
    "window": "name of the window in the program",
    "name": "name of the value in the program",
    "result": "name of the stream in the program",
    "key": "what rows are kept by; empty without a key",
    "device": "the device whose readings the row was made from",
    "start_us": f"start of the window, {_US}",
    "end_us": f"end of the window, not included, {_US}",
    "time_us": f"time of the row, {_US}",
    "place": "where the row stands in the order of its device: texts are ordered as rows are",
    "present": "false: the row was taken back",
    "devices_in": "devices whose readings are in it; 0: nobody has any",
    "devices_expected": "devices that counted when the row was made",
    "excluded": "the first 8 devices that are missing, with commas between",
    COUNTED[0]: "devices that a tentative row waits for",
    COUNTED[1]: "devices that a row is made without, which is not tentative",
    COVERED: "false: it begins before the lake had the definition, and may lack readings",
    "status": "tentative, final, or revised after it was final",
    "revision": _REVISION,
    "frontier": f"up to here results were final when the row was written, {_US}",
    "inputs": "digest of the entries it was made from: equal ones give equal values on devices",
    "stream": _STREAM,
    "description": "JSON: fold, resolution, unit, size and slide",
    "since_us": f"since when the lake has the definition, {_US}; null: from the begin",
}
_COUNT: Final = "a number of readings"
_STEPS: Final = "exact, in steps of the event's resolution (table programs)"


def comment(column: str, *, is_binary: bool = False) -> str:
    """Return the comment of a column of results.

    >>> comment("status")
    'tentative, final, or revised after it was final'
    >>> comment("total_q")
    "exact, in steps of the event's resolution (table programs)"
    """
    if column in _OF_RESULTS:
        return _OF_RESULTS[column]
    if is_binary:
        return "a sketch, as bytes that other tools can join"
    return _STEPS if column.endswith("_q") else _COUNT if column.endswith("count") else ""
