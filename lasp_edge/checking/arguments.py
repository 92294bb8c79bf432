"""Folds and scans of a user's own with arguments that their fingerprints do not name.

Two of them are one stream: what one level has counted would be added to what another one counts.

    class Above(Fold):
        name, parts, columns = "above", ("n",), (Column("n", Op.SUM),)

        def __init__(self, level):
            self.level = level

        def lift(self, value, time_us=0):
            return (int(value > self.level),)
"""

import ast
from collections.abc import Iterator, Sequence
from inspect import getattr_static, signature
from types import FunctionType

from lasp_edge.checking.programs import folds_of
from lasp_edge.checking.scans import written
from lasp_edge.checking.texts import node_of
from lasp_edge.folds.fold import Fold
from lasp_edge.language.plan import Plan
from lasp_edge.ordered.scan import Scan

_OF_FOLDS = {"lift", "lift_column", "lift_event", "lift_fields", "combine", "retract"}
_OF_SCANS = {"step", "due", "ring", "share", "join", "depends"}
_NAMED = {"name", "version", "parameters", "columns"}
"""What fingerprints have."""


def unnamed_arguments(plan: Plan) -> list[str]:
    """Return a line for each fold and scan that depends on an argument which nothing names."""
    found = []
    for named in folds_of(plan):
        fold = named.fold
        read = () if fold.is_built_in else _read(fold, _OF_FOLDS)
        if read:
            write = f"write self.parameters = f{_text(*read)} in __init__"
            what = f"{fold.name} ({written(fold)})"
            found.append(_line(f"{named.where[0]}: fold", what, read, write))
    for name, scan in plan.functions.streams.items():
        if isinstance(scan, Scan) and type(scan).fingerprint is Scan.fingerprint:
            read = _read(scan, _OF_SCANS)
            write = f"give it a property fingerprint, {_text('name', 'version', *read)}"
            what = f"{scan.name} ({written(scan)})"
            found += [_line(f"scan {name}:", what, read, write)] if read else []
    return found


def _line(where: str, name: str, read: Sequence[str], write: str) -> str:
    return (
        f"{where} {name} depends on {' and '.join(read)}, which it does not name: what was made "
        f"with another value would be joined with it; {write}"
    )


def _text(*names: str) -> str:
    return '"' + " ".join(f"{{self.{each}}}" for each in names) + '"'


def _read(made: Fold | Scan, methods: set[str]) -> Sequence[str]:
    """Return the attributes of a user's object with arguments that some of its methods read."""
    own, kind = getattr(made, "__dict__", {}), type(made)
    if kind.__module__.startswith("lasp_edge.") or _is_named(made):
        return ()
    has_arguments = kind.__init__ is not object.__init__ and len(signature(kind).parameters) > 0
    return sorted(own.keys() & set(_names(kind, methods, set()))) if has_arguments else ()


def _is_named(made: Fold | Scan) -> bool:
    """Return whether something of a user's object that its fingerprint has can vary.

    It is computed by a property, or `__init__` makes it of what it is given.
    """
    own = {name for kind in type(made).__mro__ for name in vars(kind).keys() & _NAMED}
    if any(isinstance(getattr_static(made, name), property) for name in own):
        return True
    return bool(getattr(made, "__dict__", {}).keys() & _NAMED - _constant(type(made)))


def _constant(kind: type) -> set[str]:
    """Return the attributes to which a class's `__init__` gives a text that is always the same."""
    made = getattr_static(kind, "__init__")
    node = node_of(made) if isinstance(made, FunctionType) else None
    return {
        target.attr
        for each in (ast.walk(node) if node is not None else ())
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant)
        for target in each.targets
        if isinstance(target, ast.Attribute)
    }


def _names(kind: type, methods: set[str], seen: set[str]) -> Iterator[str]:
    """Yield the names that methods of a class use, and those methods of it that they call."""
    for name in methods - seen:
        seen.add(name)
        method = getattr_static(kind, name, None)
        if isinstance(method, FunctionType) and not method.__module__.startswith("lasp_edge."):
            yield from method.__code__.co_names
            yield from _names(kind, set(method.__code__.co_names), seen)
