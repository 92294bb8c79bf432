"""Where a function goes by the order of a set, which differs from process to process.

A set whose elements are counted, sorted, added up or looked for has no order that matters. It is
found in the text; what a run under other hash seeds finds besides depends on its readings.

    >>> orders = lambda text: [*set_orders(ast.parse(text), {})]
    >>> [line] = orders("''.join(set(word))")
    >>> print(line)
    set(word): the order of a set differs from process to process; write sorted(set(word))
    >>> orders("sorted(set(word))"), orders("any(each in word for each in {'hot', 'cold'})")
    ([], [])
"""

import ast
from collections.abc import Iterator, Mapping
from typing import Any, Final

_WHY: Final = "the order of a set differs from process to process"
_MADE: Final = frozenset({"set", "frozenset"})
_ORDERED: Final = frozenset(
    (
        "list",
        "tuple",
        "enumerate",
        "iter",
        "next",
        "join",
        "zip",
        "map",
        "filter",
        "reversed",
        "reduce",
    )
)
"""What gives, or goes through, its elements in their order."""
_BY_KEY: Final = frozenset({"max", "min", "nlargest", "nsmallest"})
"""What gives the first of several that are equal by their `key=`."""
_LISTS: Final = (ast.ListComp, ast.GeneratorExp)
_SETS: Final = (ast.Set, ast.SetComp)


def set_orders(node: ast.AST, known: Mapping[str, Any]) -> Iterator[str]:
    """Yield each set whose order a piece of code goes by; `known`: what names mean there."""
    parents = {child: each for each in ast.walk(node) for child in ast.iter_child_nodes(each)}
    names = _names_of_sets(node, known)
    for each in ast.walk(node):
        if _is_set(each, names) and _goes_by_order(each, parents):
            yield f"{ast.unparse(each)}: {_WHY}; write sorted({ast.unparse(each)})"


def _names_of_sets(node: ast.AST, known: Mapping[str, Any]) -> set[str]:
    """Return the names that mean a set."""
    names = {name for name, value in known.items() if isinstance(value, set | frozenset)}
    for each in ast.walk(node):
        if isinstance(each, ast.Assign) and len(each.targets) == 1:
            (target,) = each.targets
            if isinstance(target, ast.Name):
                (names.add if _is_set(each.value, names) else names.discard)(target.id)
    return names


def _is_set(node: ast.AST, names: set[str]) -> bool:
    """Return whether an expression surely is a set."""
    if isinstance(node, ast.Name):
        return isinstance(node.ctx, ast.Load) and node.id in names
    if isinstance(node, ast.BinOp):
        is_algebra = isinstance(node.op, ast.BitOr | ast.BitAnd | ast.Sub | ast.BitXor)
        return is_algebra and (_is_set(node.left, names) or _is_set(node.right, names))
    is_made = isinstance(node, ast.Call) and ast.unparse(node.func) in _MADE and bool(node.args)
    return is_made or isinstance(node, _SETS)


def _goes_by_order(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Return whether the order in which something gives its elements shows in a result."""
    user = parents.get(node)
    if isinstance(user, ast.Call) and node in user.args:
        name = ast.unparse(user.func).rpartition(".")[2]
        if name in _BY_KEY:
            return any(each.arg == "key" for each in user.keywords)
        return name in _ORDERED and _shows(user, parents)
    if isinstance(user, ast.comprehension):
        made = parents[user]
        return isinstance(made, _LISTS) and user.iter is node and _shows(made, parents)
    if isinstance(user, ast.For):
        return user.iter is node and _gives(user)
    return isinstance(user, ast.Starred) and _shows(parents[user], parents)


def _shows(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Return whether the order of a list, or of what comes one by one, shows in a result."""
    user = parents.get(node)
    is_argument = isinstance(user, ast.Call) and node in user.args
    return _goes_by_order(node, parents) if is_argument else not isinstance(user, ast.Compare)


def _gives(loop: ast.For) -> bool:
    """Return whether a loop gives its elements one by one, or the first that fits."""
    turning = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
    given = (
        each
        for each in (inner for line in loop.body for inner in ast.walk(line))
        if isinstance(each, ast.Return | ast.Yield)
        or (isinstance(each, ast.Call) and ast.unparse(each.func).endswith(".append"))
    )
    return any(
        isinstance(name, ast.Name) and name.id in turning
        for each in given
        for name in ast.walk(each)
    )
