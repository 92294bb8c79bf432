"""Functions of the module `time`: which ask for now, which for the machine's zone, and which not.

>>> import time
>>> list(clock_risks("time.gmtime", "gmtime")), [*clock_risks("time.time", "time")][0][:33]
([], 'time.time: what is made of a read')
>>> call = ast.parse("time.gmtime()", mode="eval").body
>>> asks_for_now(call, {"time": time}), asks_for_now(call, {"time": 5})
(True, False)
"""

import ast
import re
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, Final

MODULE: Final = "time"
"""Its name: nothing of this package imports it."""
OF_NO_READING: Final = "what is made of a reading must follow from it alone"
"""The risk of a function that asks for the time, or for chance."""
OF_NO_TIME: Final = f"{OF_NO_READING}, and its time is event.time_us"
_NEEDED: Final = {"gmtime": 1, "strftime": 2, "strptime": 2, "struct_time": 1}
"""Functions that are about a time which they are given -> how many arguments they have then."""
_ZONED: Final = {"fromtimestamp": 2, "astimezone": 1}
"""Method -> its arguments where a time zone is given."""
_ALL_OF_DATETIME: Final = 8
"""Arguments of a datetime, of which the last one is its zone."""
_OFFSET: Final = re.compile(r"(Z|[+-]\d\d:?\d\d)$")
_LOCAL: Final = {"localtime": "time.gmtime", "ctime": "time.gmtime", "mktime": "calendar.timegm"}
"""Functions that are about the machine's zone -> what is about UTC."""


def clock_risks(name: str, called: str) -> Iterator[str]:
    """Yield the risk of a function of `time`, whatever it is given."""
    if called in _LOCAL:
        yield f"{name}: it is in the machine's own time zone; {_LOCAL[called]} is in UTC"
    elif called not in _NEEDED:
        yield f"{name}: {OF_NO_TIME}"


def asks_for_now(call: ast.Call, known: Mapping[str, Any]) -> bool:
    """Return whether it is a function of `time` that is not given a time; `known`: of its names."""
    called = call.func
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
        value, name = known.get(called.value.id), called.attr
        is_of_time = isinstance(value, ModuleType) and value.__name__ == MODULE
    else:
        value = known.get(called.id) if isinstance(called, ast.Name) else None
        is_of_time = getattr(value, "__module__", "") == MODULE
        name = getattr(value, "__name__", "")
    return is_of_time and len(call.args) < _NEEDED.get(name, 0)


def lacks_zone(call: ast.Call) -> bool:
    """Return whether a call turns a time without a zone into one, or the other way round.

    >>> calls = ["datetime(2025, 11, 25)", "datetime(2025, 11, 25, tzinfo=UTC)"]
    >>> calls += [f"datetime.fromisoformat('2025-11-25T00{zone}')" for zone in ("", "Z", "+01:00")]
    >>> [lacks_zone(ast.parse(f"{made}.timestamp()", mode="eval").body) for made in calls]
    [True, False, True, False, False]
    >>> lacks_zone(ast.parse("datetime.fromtimestamp(5)", mode="eval").body)
    True
    """
    if not isinstance(call.func, ast.Attribute):
        return False
    name, given = call.func.attr, len(call.args) + len(call.keywords)
    return given < _ZONED.get(name, 0) or (name == "timestamp" and _is_naive(call.func.value))


def _is_naive(node: ast.expr) -> bool:
    """Return whether an expression surely is a datetime without a zone."""
    if not isinstance(node, ast.Call) or any(each.arg == "tzinfo" for each in node.keywords):
        return False
    name = ast.unparse(node.func).rpartition(".")[2]
    constants = [each.value for each in node.args if isinstance(each, ast.Constant)]
    text = str(constants[-1]) if constants else ""
    if name == "fromisoformat":
        return bool(text) and not _OFFSET.search(text)
    if name == "strptime":
        return bool(text) and "%z" not in text
    return name == "datetime" and len(node.args) < _ALL_OF_DATETIME
