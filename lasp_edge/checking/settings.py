"""Settings of a whole process that a module changes, and the results of its functions then.

The precision of `Decimal` and the locale are settings of a thread or a process: another machine, or
another thread of a gateway, has its own.
"""

import ast
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from types import FunctionType
from typing import Any, Final

from lasp_edge.checking.texts import node_of, tree_of

_CONTEXT = (
    "the precision of Decimal is set for one thread alone; write `with localcontext(prec=..):` in "
    "the function that needs it"
)
_CONTEXTS: Final = re.compile(r"(decimal\.)?(setcontext\(|getcontext\(\)\.\w+ = )")
_LOCALE = (
    "each machine has a locale of its own; leave it out, and write names of days and numbers "
    "without it"
)
_LOCALES: Final = re.compile(r"(locale\.)?setlocale\(.*''\)")
_BY_LOCALE: Final = re.compile(r"strftime\(|:n\}|format\(.*'n'\)")


def settings_of(function: FunctionType, values: dict[str, Any]) -> Iterator[str]:
    """Yield the statements of a function's module that set how it computes, each with why.

    Args:
        function: the function.
        values: those that it names.
    """
    if any(each is Decimal for each in values.values()):
        yield from _statements(function, _CONTEXTS.match, _CONTEXT)
    node = node_of(function)
    if node is not None and _BY_LOCALE.search(ast.unparse(node)):
        yield from _statements(function, _LOCALES.match, _LOCALE)


def _statements(function: FunctionType, is_meant: Callable[[str], Any], why: str) -> Iterator[str]:
    """Yield the statements of a function's module that are meant, each with why."""
    for node in getattr(tree_of(function), "body", ()):
        text = ast.unparse(node) if isinstance(node, ast.Assign | ast.Expr) else ""
        if is_meant(text):
            yield f"{text}: {why}"
