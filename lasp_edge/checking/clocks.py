"""Functions of the module `time`: which ask for now, which for the machine's zone, and which not.

>>> import time
>>> list(clock_risks("time.gmtime", "gmtime")), [*clock_risks("time.time", "time")][0][:33]
([], 'time.time: what is made of a read')
>>> call = ast.parse("time.gmtime()", mode="eval").body
>>> asks_for_now(call, {"time": time}), asks_for_now(call, {"time": 5})
(True, False)
"""

import ast
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
