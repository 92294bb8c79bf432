"""Where a function cuts a number that no double is: 0.29 * 100 is a little less than 29.

>>> for text in ("int(x * 100)", "x // 0.1", "x // 0.5", "x % 60", "round(x * 100)"):
...     for line in cuts_in(ast.parse(text), {}):
...         print(line)
int(x * 100): int() cuts, and 0.29 * 100 is 28.999999999999996; write round(...)
x // 0.1: 0.3 // 0.1 is 2, as 0.1 is no double; count steps, as in round(x / 0.01) // 10
"""

import ast
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

_CUTTING: Final = {
    "int": "0.29 * 100 is 28.999999999999996",
    "floor": "0.29 * 100 is 28.999999999999996",
    "trunc": "0.29 * 100 is 28.999999999999996",
    "ceil": "0.07 * 100 is 7.000000000000001",
}
"""What cuts a number -> an example of one that it cuts wrongly."""
_EXACT: Final = frozenset({"Fraction", "int", "len"})
_MINUTE, _SECOND_US = 60, 1_000_000
_MULTIPLES: Final = 200
"""Multiples of a number that are tried: one of the first few is off, if any is."""
_FINER: Final = 10


def cuts_in(node: ast.AST, known: Mapping[str, Any]) -> Iterator[str]:
    """Yield the cuts in a piece of code, each with why; `known`: what names mean there."""
    for each in ast.walk(node):
        why = _why(each, known)
        if why:
            yield f"{ast.unparse(each)}: {why}"


def is_decimal(node: ast.expr) -> bool:
    """Return whether a side of an operator is a Decimal, or arithmetic with one."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).rpartition(".")[2] == Decimal.__name__
    sides = [node.left, node.right] if isinstance(node, ast.BinOp) else []
    return any(map(is_decimal, sides))


def is_exact_power(node: ast.BinOp) -> bool:
    """Return whether a power is rounded alike on all machines: of decimals, or of whole numbers.

    >>> powers = ("10 ** 3", "Fraction(x) ** 2", "round(x) ** n", "x ** 2", "10 ** -1")
    >>> [is_exact_power(ast.parse(text, mode="eval").body) for text in powers]
    [True, True, False, False, False]
    """
    if is_decimal(node.left) or is_decimal(node.right):
        return True
    return _is_whole(node.right) and (_is_whole(node.left) or _is_exact(node.left))


def _is_whole(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def _is_exact(node: ast.expr) -> bool:
    """Return whether an expression surely is a Fraction or a whole number."""
    if not isinstance(node, ast.Call):
        return False
    name = ast.unparse(node.func).rpartition(".")[2]
    return name in _EXACT or (name == round.__name__ and len(node.args) == 1)


def _why(node: ast.AST, known: Mapping[str, Any]) -> str:
    """Return why a node cuts a number wrongly; empty text where it does not."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv | ast.Mod):
        return _of_seconds(node, known) or _divided(node.left, node.right, known)
    if not isinstance(node, ast.Call):
        return ""
    name = ast.unparse(node.func).rpartition(".")[2]
    if name == divmod.__name__ and len(node.args) == 2:  # noqa: PLR2004 - it and by what
        return _divided(node.args[0], node.args[1], known)
    inside = node.args[0] if len(node.args) == 1 else None
    if name not in _CUTTING or not isinstance(inside, ast.BinOp) or is_decimal(inside):
        return ""
    if isinstance(inside.op, ast.Mult):
        does = "goes up" if name == "ceil" else "cuts"
        return f"{name}() {does}, and {_CUTTING[name]}; write round(...)"
    return _divided(inside.left, inside.right, known) if isinstance(inside.op, ast.Div) else ""


def _of_seconds(node: ast.BinOp, known: Mapping[str, Any]) -> str:
    """Return why a time in microseconds is taken for one in seconds or milliseconds, or ""."""
    is_time = ast.unparse(node.left).rpartition(".")[2] == "time_us"
    number = _number(node.right, known) if is_time else None
    if not isinstance(number, int) or number <= 0 or number % _MINUTE:
        return ""
    is_milli = number % (1_000 * _MINUTE) == 0
    if number > _SECOND_US and (not is_milli or number % _SECOND_US == 0):
        return ""
    seconds = number // 1_000 if is_milli else number
    are = f"{number / _SECOND_US:g} seconds" if number > _SECOND_US else "no second"
    return f"a time is in microseconds, and {number} of them are {are}; write {seconds}_000_000"


def _number(node: ast.expr, known: Mapping[str, Any]) -> Any:
    """Return a number, or a product of numbers; None where it is not known."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        one, other = _number(node.left, known), _number(node.right, known)
        return one * other if isinstance(one, int) and isinstance(other, int) else None
    return known.get(ast.unparse(node))


def _divided(what: ast.expr, by: ast.expr, known: Mapping[str, Any]) -> str:
    """Return why a whole quotient or a rest is off; empty text where it is not."""
    number = _number(by, known)
    is_text = isinstance(what, ast.JoinedStr | ast.Constant)
    if is_text or is_decimal(what) or not isinstance(number, float) or number <= 0:
        return ""
    step = Decimal(repr(number))
    for count in range(1, _MULTIPLES):
        multiple = float(step * count)
        if multiple // number != count:
            finer = f"{float(step / _FINER):g}"
            return (
                f"{multiple:g} // {number:g} is {multiple // number:g}, as {number:g} is no "
                f"double; count steps, as in round(x / {finer}) // {_FINER}"
            )
    return ""
