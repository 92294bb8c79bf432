"""Functions that are made in a loop and name its variable: all of them see the last turn's value.

    for room in rooms:
        program.window(.., where=lambda event: event.tags["room"] == room)

Python looks a variable up when the function is called, and by then the loop is over. Each window
counts the last room. It is found in the text, of functions that are one piece of code. A global
that a module binds again behind a function is seen in the same way, and an attribute of a fold or
scan, or of its class, that it sets when a window or another scan has been made of it.
"""

import ast
import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from lasp_edge.checking.determinism import functions_of, inner_functions, names_read
from lasp_edge.checking.texts import named_values, node_of, tree_of
from lasp_edge.language.plan import Plan
from lasp_edge.reasons import shown_place

_LOOPS = (ast.For, ast.AsyncFor, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def captured(plan: Plan) -> list[str]:
    """Return a line for each function that sees the last turn of the loop that made it."""
    found: dict[CodeType, dict[int, tuple[str, FunctionType]]] = {}
    for what, given in functions_of(plan):
        function = inspect.unwrap(given)
        if isinstance(function, FunctionType):
            found.setdefault(function.__code__, {}).setdefault(id(function), (what, function))
    return [
        _line([what for what, _ in several.values()], function, name, value)
        for several in found.values()
        if len(several) > 1
        for function in [next(iter(several.values()))[1]]
        for name, value in _last_turn([each for _, each in several.values()])
    ]


def _line(titles: list[str], function: FunctionType, name: str, value: Any) -> str:
    both = " and ".join(dict.fromkeys(titles[:2]))
    code = function.__code__
    taken = ", ".join(code.co_varnames[: code.co_argcount])
    return (
        f"{both} ({shown_place(code.co_filename, code.co_firstlineno)}) are one function made in a "
        f"loop, and {name} is {value!r} in all of them; to keep the value of its turn, write "
        f"lambda {taken}, {name}={name}: .., or def with the same arguments"
    )


def rebound(plan: Plan) -> list[str]:
    """Return a line for each function that sees a name as a later line binds it again."""
    found = {
        f"{what} ({shown_place(each.__code__.co_filename, each.__code__.co_firstlineno)}) names "
        f"{name}, which line {line} binds again: all functions see it as it is at last, "
        f"{each.__globals__.get(name)!r}; give each value a name of its own": None
        for what, given in functions_of(plan)
        for each in inner_functions(given)
        for name, line in _bound_later(each)
    }
    found |= {
        f"{what} asks for {name}, which is set to {value!r} when it is in use "
        f"({shown_place(each.__code__.co_filename, line)}): what was made before has that value, "
        "too; give each value an object of its own, by __init__": None
        for what, given in functions_of(plan)
        for each in inner_functions(given)
        for name, line, value in _set_later(each)
    }
    return list(found)


def _set_later(method: FunctionType) -> Iterator[tuple[str, int, Any]]:
    """Yield the attributes that a method asks for, and that its module sets on what was in use.

    Each with the line, and the value that it has at last.
    """
    owner, tree = method.__qualname__.rpartition(".")[0], tree_of(method)
    kind = method.__globals__.get(owner)
    if tree is None or not isinstance(kind, type) or method.__name__ == "__init__":
        return
    used: set[str] = set()
    for node in _statements(tree):
        changed = dict(_changed(node))
        for of, attribute in changed.items():
            made = method.__globals__.get(of.id)
            is_of_kind = made is kind or isinstance(made, kind)
            if of.id in used and is_of_kind and attribute in method.__code__.co_names:
                yield f"{of.id}.{attribute}", node.lineno, getattr(made, attribute, None)
        names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
        used |= {each.id for each in names if each not in changed}
        used -= {each.id for each in names if isinstance(each.ctx, ast.Store)}  # another object


def _changed(node: ast.stmt) -> Iterator[tuple[ast.Name, str]]:
    """Yield the names of which a statement sets an attribute, and that."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AugAssign) else targets
    for each in targets:
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name):
            yield each.value, each.attr


def _statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements of a module in their order, without those of functions and classes."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            yield node
        yield from _statements(node)


def _bound_later(function: FunctionType) -> Iterator[tuple[str, int]]:
    """Yield the globals that are bound before and behind a function, and the line behind it."""
    node, tree = node_of(function), tree_of(function)
    if node is None or tree is None:
        return
    first, last = function.__code__.co_firstlineno, getattr(node, "end_lineno", 0)
    for name, _ in named_values(function, node):
        if name not in function.__code__.co_freevars:
            bound = [*_bound(tree, name)]
            before = {text for line, text in bound if line < first}
            behind = [line for line, text in bound if line > last and text not in before]
            if before - {"None"} and behind:
                yield name, behind[-1]


def _bound(tree: ast.AST, name: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a module that bind a global, outside of functions, and to what."""
    for node in _statements(tree):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) and node.value:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(each, ast.Name) and each.id == name for each in targets):
                yield node.lineno, ast.unparse(node.value)


def _last_turn(functions: list[FunctionType]) -> Iterator[tuple[str, Any]]:
    """Yield the names that mean the same in all of some functions, and another thing each turn."""
    first, *others = functions
    node, tree = node_of(first), tree_of(first)
    if node is None or tree is None:
        return
    turning = {name for loop in _loops_around(tree, node) for name in _turning(loop)}
    turning &= {*names_read(first.__code__)}  # and no name of its decorator or defaults
    for name, value in named_values(first, node):
        if name in turning and all(
            _place_of(each, name) is _place_of(first, name) for each in others
        ):
            yield name, value


def _place_of(function: FunctionType, name: str) -> Any:
    """Return where a function looks a name up: its own cell, or the globals of its module."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    return cells.get(name, function.__globals__)


def _loops_around(tree: ast.AST, node: ast.AST) -> Iterator[ast.AST]:
    for each in ast.walk(tree):
        if isinstance(each, _LOOPS) and _position(node) in {
            _position(inner) for inner in ast.walk(each) if type(inner) is type(node)
        }:
            yield each


def _position(node: Any) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _turning(loop: ast.AST) -> set[str]:
    """Return the names that mean another thing in each turn: its own, and those that follow."""
    targets = [loop.target] if isinstance(loop, ast.For | ast.AsyncFor) else []
    targets += [each.target for each in getattr(loop, "generators", ())]
    found = {name for target in targets for name in _names(target)}
    for each in ast.walk(loop):
        if isinstance(each, ast.Assign) and found & _names(each.value):
            found |= {name for target in each.targets for name in _names(target, bound=True)}
    return found


def _names(node: ast.AST, *, bound: bool = False) -> set[str]:
    """Return the names in a text, or those that it binds: `table[name] = ..` binds none."""
    names = (each for each in ast.walk(node) if isinstance(each, ast.Name))
    return {each.id for each in names if not bound or isinstance(each.ctx, ast.Store)}
