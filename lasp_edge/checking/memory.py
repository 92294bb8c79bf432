"""What a program's functions change outside of their arguments: a memory that no other run has.

An agent calls a function again for a late reading, after a restart, and on other machines. What an
earlier call left in a global, a closed-over variable or an attribute of `self` is another thing
there, so the function gives something else. It is found in the text, whether made-up readings reach
it or not.

    >>> seen = []
    >>> def where(event):
    ...     seen.append(event.value)
    ...     return len(seen) < 10_000
    >>> [each.text for each in memories(where)]  # doctests have no file, so no text either
    []
"""

import ast
from collections import deque
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any, Final, NamedTuple

from lasp_edge.checking.determinism import ACTING, functions_of, inner_functions
from lasp_edge.checking.texts import bound_names, named_values, node_of
from lasp_edge.language.plan import Plan
from lasp_edge.reasons import shown_place

_GROWING = ("add", "append", "appendleft", "extend", "extendleft", "insert", "setdefault", "update")
_TAKING = ("clear", "discard", "pop", "popitem", "popleft", "remove", "subtract")
_CHANGING: Final = frozenset((*_GROWING, *_TAKING, "reverse", "sort"))
"""Methods that change a list, a set, a dict or a deque in place."""
_CHANGEABLE: Final = (list, dict, set, bytearray, deque)
_MAKING: Final = frozenset({"__init__", "__new__", "__post_init__", "__init_subclass__"})
"""Methods that make an object: what they set is its configuration."""
_REMEDY = (
    "it is called again for late readings, after a restart and on other machines, where nothing is "
    "remembered: keep what must be remembered in a variable, or in the state of a scan"
)
_MEMO = (
    "that is sound only where what is stored follows from its key alone; functools.cache makes "
    "such a memo without this warning"
)


class Memory(NamedTuple):
    """A place at which a function changes something that outlives the call.

    Attributes:
        text: the statement.
        place: file and line.
        is_certain: another call gives something else for it; a memo may be sound.
    """

    text: str
    place: str
    is_certain: bool


def memories_of(plan: Plan) -> tuple[list[str], list[str]]:
    """Return a line for each memory of a program's functions: certain ones, and possible ones."""
    certain: dict[str, None] = {}
    possible: dict[str, None] = {}
    for what, function in functions_of(plan):
        for memory in memories(function) if what != ACTING else ():
            line = f"{what} remembers: {memory.text} ({memory.place}); "
            if memory.is_certain:
                certain[line + _REMEDY] = None
            else:
                possible[line + _MEMO] = None
    return list(certain), list(possible)


def memories(function: Callable[..., Any]) -> Iterator[Memory]:
    """Yield what a function, and those of its package that it names, change outside of the call."""
    for each in inner_functions(function):
        node = node_of(each) if each.__name__ not in _MAKING else None
        if node is not None:
            yield from _Outer(each, node).changes()


class _Outer:
    """The names of a function that mean something outside of its call."""

    def __init__(self, function: FunctionType, node: ast.AST) -> None:
        self._node, self._file = node, function.__code__.co_filename
        declared = {name for each in ast.walk(node) for name in _declared(each)}
        closed = frozenset(function.__code__.co_freevars)
        self._values = {**function.__globals__, **dict(named_values(function, node))}
        self._inside = (bound_names(node) - declared) | (declared - closed - self._globals())
        self._inside -= closed
        for name, default in _defaults(function):  # a list as a default is one list for all calls
            if isinstance(default, _CHANGEABLE):
                self._inside.discard(name)
                self._values[name] = default
        self._self = _name_of_self(function)

    def changes(self) -> Iterator[Memory]:
        """Yield what is changed."""
        for node in ast.walk(self._node):
            if isinstance(node, ast.AugAssign) and self._is_outer(node.target):
                yield self._memory(node, is_certain=True)
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                flat = [each for target in targets for each in _parts(target)]
                outer = [target for target in flat if self._is_outer(target)]
                if outer:
                    sure = any(not self._is_memo(each, node.value) for each in outer)
                    yield self._memory(node, is_certain=sure)
            elif isinstance(node, ast.Delete) and any(map(self._is_outer, node.targets)):
                yield self._memory(node, is_certain=True)
            elif isinstance(node, ast.Call):
                yield from self._calls(node)

    def _calls(self, node: ast.Call) -> Iterator[Memory]:
        called = node.func
        if isinstance(called, ast.Attribute) and called.attr in _CHANGING:
            root = _root(called.value)
            known = self._value(called.value)
            if root == self._self or (self._is_name(root) and isinstance(known, _CHANGEABLE)):
                sure = called.attr != "setdefault" and isinstance(known, _CHANGEABLE)
                yield self._memory(node, is_certain=sure)
        if isinstance(called, ast.Name) and called.id == "next" and node.args:
            known, root = self._value(node.args[0]), _root(node.args[0])
            is_own = root == self._self and isinstance(node.args[0], ast.Attribute)
            if is_own or (self._is_name(root) and hasattr(known, "__next__")):
                yield self._memory(node, is_certain=True)

    def _globals(self) -> set[str]:
        walked = [each for each in ast.walk(self._node) if isinstance(each, ast.Global)]
        return {name for each in walked for name in each.names}

    def _is_outer(self, target: ast.AST) -> bool:
        """Return whether a target of an assignment outlives the call."""
        if isinstance(target, ast.Name):
            return target.id in self._globals() or (
                target.id in self._values and target.id not in self._inside
            )
        root = _root(target)
        return bool(root) and (root == self._self or self._is_name(root))

    def _is_name(self, root: str) -> bool:
        return root in self._values and root not in self._inside

    def _is_memo(self, target: ast.AST, value: ast.AST) -> bool:
        """Return whether a value is stored by a key, or once, without what was there before."""
        used = {each.id for each in ast.walk(value) if isinstance(each, ast.Name)}
        if isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Constant):
            return _root(target) not in used - {self._self}
        return not used & (self._inside | {self._self, _root(target)})

    def _value(self, node: ast.AST) -> Any:
        """Return what a name, or an attribute of one, is now; None where that is unknown."""
        if isinstance(node, ast.Name):
            return self._values.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self._value(node.value)
            known = vars(owner) if isinstance(owner, ModuleType | type) else {}
            return known.get(node.attr, getattr(owner, "__dict__", {}).get(node.attr))
        return None

    def _memory(self, node: ast.AST, *, is_certain: bool) -> Memory:
        place = shown_place(self._file, getattr(node, "lineno", 0))
        return Memory(ast.unparse(node), place, is_certain)


def _declared(node: ast.AST) -> list[str]:
    return node.names if isinstance(node, ast.Global | ast.Nonlocal) else []


def _defaults(function: FunctionType) -> Iterator[tuple[str, Any]]:
    code, given = function.__code__, function.__defaults__ or ()
    yield from zip(code.co_varnames[code.co_argcount - len(given) :], given, strict=False)
    yield from (function.__kwdefaults__ or {}).items()


def _name_of_self(function: FunctionType) -> str:
    """Return the name of a method's own object; empty text for a function that is no method."""
    owner = function.__qualname__.rpartition(".")[0]
    is_method = owner and not owner.endswith("<locals>") and function.__code__.co_argcount
    return function.__code__.co_varnames[0] if is_method else ""


def _root(node: ast.AST) -> str:
    """Return the name that `name.attribute[item]` begins with; "" where it begins otherwise.

    What `type(name)` has belongs to the name, too.
    """
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type":
        return _root(node.args[0]) if node.args else ""
    return node.id if isinstance(node, ast.Name) else ""


def _parts(target: ast.AST) -> Iterator[ast.AST]:
    """Yield the targets of an assignment, those inside of a tuple each by itself."""
    if isinstance(target, ast.Tuple | ast.List):
        for each in target.elts:
            yield from _parts(each)
    else:
        yield target
