"""The texts of a program's Python functions, as hashes that do not depend on their layout.

A key, a handler and a user's fold give partials their meaning, and Python functions cannot be
compared. So each carries a version, and here is its text: the syntax tree without comments,
layout and docstrings, together with the functions and plain constants of the same package that it
names, and theirs. What it reaches otherwise (an attribute of a module, a file) is not seen.
"""

import ast
import inspect
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from types import CellType, FunctionType
from typing import Any

from lasp_edge.checking.programs import folds_of
from lasp_edge.folds.derived import CombinedFold, FoldOfFolds
from lasp_edge.folds.fold import Fold
from lasp_edge.language.declarations import Window
from lasp_edge.language.parameter_scan import ParameterScan
from lasp_edge.language.plan import Plan
from lasp_edge.variables import Variable

_PLAIN = (int, float, str, bytes, bool, type(None))


@dataclass(frozen=True, slots=True)
class FunctionText:
    """One function or fold of a program, with its version.

    Attributes:
        name: its kind and place, such as `window temperature_by_room, key`.
        version: it tells its meanings apart, as text.
        remedy: the number to raise where the meaning changed.
    """

    name: str
    version: str
    digest: str
    remedy: str


def texts_of(plan: Plan) -> list[FunctionText]:
    """Return the keys, handlers and own folds of a program whose text can be found."""
    found: dict[str, FunctionText] = {}
    for name, version, made, remedy in _carriers(plan):
        text = _text_of_class(type(made)) if isinstance(made, Fold) else _text(made, set())
        if text:
            numbered = name
            while numbered in found:  # two functions of one name
                numbered += "'"
            digest = sha256(text.encode()).hexdigest()[:16]
            found[numbered] = FunctionText(numbered, version, digest, remedy)
    return list(found.values())


Carrier = tuple[str, str, Any, str]
"""Name, version, the function or fold that carries it, and the remedy."""


def _carriers(plan: Plan) -> Iterator[Carrier]:
    named: list[tuple[str, Window | Variable]] = []
    named += [(f"window {window.name}", window) for window in plan.windows.values()]
    named += [(f"variable {made.name}", made) for made in plan.variables.values()]
    for name, made in named:
        if made.keyed:
            key = plan.functions.keys[made.name]
            yield f"{name}, key", str(made.version), key, f"version= of {name}"
    for (window, name), function in plan.functions.windows.items():
        text = str(plan.windows[window].version)
        yield f"window {window}, {name}", text, function, f"version= of window {window}"
    for derived, function in plan.functions.derived.items():
        version = plan.derivations[derived].version
        name = f"variable {derived}"
        yield f"{name}, function", str(version), function, f"version= of {derived}"
    yield from _of_values(plan)
    yield from _of_streams(plan)
    handlers = [(f"event {e}", h) for e, each in plan.functions.handlers.items() for h in each]
    reacting = zip(plan.reactions, plan.functions.reacting, strict=True)
    handlers += [(f"value {watched.variable}", handler) for watched, handler in reacting]
    for what, handler in handlers:
        yield from _handler(what, handler)
    for fold in [found.fold for found in folds_of(plan)]:
        if not fold.is_built_in and not isinstance(fold, FoldOfFolds):
            name = f"fold {fold.name} {fold.parameters}".strip()
            yield name, str(fold.version), fold, f"the version of class {type(fold).__name__}"


def _of_values(plan: Plan) -> Iterator[Carrier]:
    """Yield the functions of values that are made of others."""
    for name, made in plan.local_folds.items():
        if isinstance(made.fold, CombinedFold):
            number, function = str(made.fold.version), made.fold.function
            yield f"value {name}, function", number, function, f"version= of {name}"


def _of_streams(plan: Plan) -> Iterator[Carrier]:
    """Yield the functions and keys of streams."""
    for name, stream in plan.streams.items():
        title, version = f"{stream.operator} {name}", str(json.loads(stream.fingerprint)[2])
        made, key = plan.functions.streams.get(name), plan.functions.keys.get(name)
        function = made.function if isinstance(made, ParameterScan) else made
        functions: dict[str, Any] = {"function": function, "key": key}
        for what, function in functions.items():
            if function is not None and inspect.isfunction(inspect.unwrap(function)):
                yield f"{title}, {what}", version, function, f"version= of {name}"


def _handler(what: str, handler: Any) -> Iterator[Carrier]:
    """Yield a handler that feeds dynamic variables; it has their versions."""
    node = node_of(handler) if inspect.isfunction(handler) else None
    named = [] if node is None else [made for _, made in named_values(handler, node)]
    fed = [made for made in named if isinstance(made, Variable) and made.dynamic]
    versions = sorted({made.name: made.version for made in fed}.items())
    if versions:
        name = f"{what}, handler {getattr(handler, '__name__', '')}".rstrip()
        version = ", ".join(f"{variable} {number}" for variable, number in versions)
        remedy = f"version= of variable {' or '.join(variable for variable, _ in versions)}"
        yield name, version, handler, remedy


def _text(function: Any, seen: set[int]) -> str:
    """Return the normal text of a function and of what it names; empty where it has none."""
    function = inspect.unwrap(function)
    node = node_of(function) if inspect.isfunction(function) else None
    if node is None or id(function.__code__) in seen:
        return ""
    seen.add(id(function.__code__))
    parts = [_normal(node)]
    for name, value in sorted(named_values(function, node), key=lambda named: named[0]):
        if _is_plain(value):
            parts.append(f"{name} = {value!r}")
        elif isinstance(value, FunctionType) and _package(value) == _package(function):
            parts.append(_text(value, seen))
    return "\n".join(filter(None, parts))


def _text_of_class(made: type) -> str:
    """Return the normal text of a fold's class and of those classes of the user's it is made of."""
    parts = []
    seen: set[int] = set()
    for each in made.__mro__:
        if issubclass(each, Fold) and not each.__module__.startswith("lasp_edge.folds."):
            node = _class_node(each)
            parts.append(_normal(node) if node else "")
            methods = [value for value in vars(each).values() if isinstance(value, FunctionType)]
            parts += [_text(method, seen) for method in methods]
    return "\n".join(filter(None, parts))


def _is_plain(value: Any) -> bool:
    return type(value) in _PLAIN or (type(value) is tuple and all(map(_is_plain, value)))


def _package(function: Callable[..., Any]) -> str:
    return str(function.__module__).partition(".")[0]


def named_values(function: FunctionType, node: ast.AST) -> Iterator[tuple[str, Any]]:
    """Yield the globals and closed-over variables that a function's text names."""
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    closed = function.__code__.co_freevars
    for name, cell in zip(closed, function.__closure__ or (), strict=True):
        if cell != CellType():  # else not yet assigned
            yield name, cell.cell_contents
    known = names.intersection(function.__globals__).difference(closed, bound_names(node))
    for name in sorted(known):
        yield name, function.__globals__[name]


def bound_names(node: ast.AST) -> set[str]:
    """Return the names that a function gives a meaning of its own."""
    stored = (each for each in ast.walk(node) if isinstance(each, ast.Name))
    names = {each.id for each in stored if isinstance(each.ctx, ast.Store)}
    return names | {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}


def tree_of(made: Any) -> ast.Module | None:
    """Return the syntax tree of the module that defines something; None where it has no text."""
    try:
        module = inspect.getmodule(made)
        lines, _ = inspect.findsource(module if module is not None else made)
        return ast.parse("".join(lines))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None


def node_of(function: FunctionType) -> ast.AST | None:
    """Return the syntax of a function, found by the places that its code knows."""
    tree, code = tree_of(function), function.__code__
    places = {(at[0], at[2]) for at in code.co_positions() if at[0] and at[2]}
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if (node.name, first) == (code.co_name, code.co_firstlineno):
                return node
        elif isinstance(node, ast.Lambda) and code.co_name == "<lambda>":
            body = node.body
            low, high = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
            if places and all(low <= place <= high for place in places):
                return node
    return None


def _class_node(made: type) -> ast.AST | None:
    found: list[ast.AST] = [tree_of(made) or ast.Module([], [])]
    for name in made.__qualname__.split("."):
        if name != "<locals>":
            inside = [node for outer in found for node in ast.walk(outer)]
            found = [
                node
                for node in inside
                if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name
            ]
    return found[0] if found else None


def _normal(node: ast.AST) -> str:
    """Return the text of a tree as Python writes it: no comments, docstrings or layout."""
    for each in ast.walk(node):
        body = getattr(each, "body", None)
        if isinstance(body, list) and body and _is_text(body[0]):
            del body[0]
    return ast.unparse(node)


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def imported_in(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield what the text of a function imports, by name, of modules that are loaded."""
    node = node_of(function)
    for each in ast.walk(node) if node is not None else ():
        if isinstance(each, ast.Import):
            for of in each.names:
                top = of.name.partition(".")[0]
                yield of.asname or top, sys.modules.get(of.name if of.asname else top)
        elif isinstance(each, ast.ImportFrom):
            module = sys.modules.get(each.module or "")
            yield from ((of.asname or of.name, getattr(module, of.name, None)) for of in each.names)
