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


def _why(node: ast.AST, known: Mapping[str, Any]) -> str:
    """Return why a node cuts a number wrongly; empty text where it does not."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv | ast.Mod):
        return _divided(node.left, node.right, known)
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


def _divided(what: ast.expr, by: ast.expr, known: Mapping[str, Any]) -> str:
    """Return why a whole quotient or a rest is off; empty text where it is not."""
    number = by.value if isinstance(by, ast.Constant) else known.get(ast.unparse(by))
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
