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
    "devices_in": "devices whose readings are in it, of its key; 0: nobody has any",
    "devices_expected": "devices of the whole fleet that counted when the row was made, whether "
    "they have readings of its key or not",
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
_OF_PROGRAMS: Final = {
    "kind": "window, fold (a value), result, shared (a variable), or program",
    "name": "its name in the program",
    "revision": "0, 1, 2, ...: how often its meaning had changed; the greatest is current",
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
