"""What a function's code can name: so a program learns which handler feeds which variable."""

from collections.abc import Callable
from types import CellType, CodeType
from typing import Any


def mentioned(function: Callable[..., Any]) -> list[Any]:
    """Return what the function's code can name: globals and closed-over variables it uses."""
    code = getattr(function, "__code__", None)
    if code is None:
        return []
    cells = getattr(function, "__closure__", None) or ()
    closed = [cell.cell_contents for cell in cells if cell != CellType()]  # else not yet assigned
    names = _names(code)
    return closed + [value for name, value in function.__globals__.items() if name in names]


def _names(code: CodeType) -> set[str]:
    inner = [_names(const) for const in code.co_consts if isinstance(const, CodeType)]
    return set(code.co_names).union(*inner)
