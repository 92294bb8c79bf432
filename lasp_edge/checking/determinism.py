"""What in a function does not follow from its arguments, or is rounded by the machine.

A program's functions are called again when something comes late, after a restart, and on other
machines: each time they must give the same. Whether they do cannot be proved; what is known to
break it can be found by name, in a function and in those of its package that it names.

    >>> import math
    >>> risks(lambda event: math.log(event.value) + math.sqrt(event.value))
    ['math.log: it is rounded differently from machine to machine; Decimal has one that is not']
    >>> risks(lambda event: event.value ** 2)
    ['**: it is rounded differently from machine to machine; x * x and Decimal(x) ** y are not']
"""

import ast
import builtins
import cmath
import datetime as dt
import dis
import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, Final

from lasp_edge.checking.clocks import (
    MODULE,
    OF_NO_READING,
    OF_NO_TIME,
    asks_for_now,
    clock_risks,
    lacks_zone,
)
from lasp_edge.checking.cuts import cuts_in, is_exact_power
from lasp_edge.checking.rounding import rounded
from lasp_edge.checking.set_orders import set_orders
from lasp_edge.checking.settings import settings_of
from lasp_edge.checking.texts import imported_in, node_of, tree_of
from lasp_edge.language.declarations import Parameter
from lasp_edge.language.plan import Plan
from lasp_edge.ordered.scan import Scan

_OF_MACHINES: Final = frozenset(
    ("getpass", "locale", "platform", "socket", "subprocess", "tempfile")
)
"""Modules whose functions give something else on each machine."""
_OF_SYS = ("argv", "byteorder", "executable", "getsizeof", "hash_info", "implementation", "maxsize")
_OF_OS = ("cpu_count", "environ", "getcwd", "getenv", "getlogin", "getpid", "listdir", "uname")
_OF_USERS = ("expanduser", "expandvars", "getegid", "geteuid", "getgid", "getppid", "getuid")
_PARTLY: Final = {
    "sys": frozenset((*_OF_SYS, "path", "platform", "version", "version_info")),
    "os": frozenset((*_OF_OS, *_OF_USERS, "name", "urandom")),
    "pathlib": frozenset(("cwd", "home")),
}
"""Module -> what of it is another thing on each machine."""
_EACH_TIME: Final = frozenset({"random", "secrets", "uuid", "_random"})
"""Modules whose functions give something else each time."""
_LATER: Final = {
    "asyncio": frozenset(("create_task", "ensure_future", "run_coroutine_threadsafe")),
    "concurrent": frozenset(("ProcessPoolExecutor", "ThreadPoolExecutor")),
    "multiprocessing": frozenset(("Pool", "Process")),
    "threading": frozenset(("Thread", "Timer")),
}
"""Module -> what of it goes on when a function has returned."""
ACTING = "handler of a result, a value or a threshold"
"""What acts on a result, a value or a threshold: it makes nothing that is computed again."""
_OF_INTEGERS: Final = frozenset({"lift", "combine", "retract"})
_READING: Final = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_ATTRIBUTES: Final = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_NOW: Final = frozenset({"now", "utcnow", "today"})
_MACHINE = "it is another one on each machine, so the fleet's devices give different things"
_FILE = (
    "a file may be another one elsewhere, and changes: look at it once, where the program is "
    "declared, and bring it to all machines with the program"
)
_ZONE = "without a time zone it is the machine's own; write tz=UTC, or tz=ZoneInfo(...)"
_LOOKING: Final = ("exists", "is_dir", "is_file", "iterdir", "lstat", "stat", "getmtime", "getsize")
_READING_FILES: Final = frozenset(("read_text", "read_bytes", *_LOOKING))
_POWER = "**: it is rounded differently from machine to machine; x * x and Decimal(x) ** y are not"
_AFTER = (
    "what it starts goes on when the function has returned, and what it changes then is lost; do "
    "it in the function itself"
)


def risks(function: Callable[..., Any], *, of_integers: bool = False) -> list[str]:
    """Return what in a function may give something else elsewhere or next time.

    Args:
        function: the function.
        of_integers: it computes with integers, of which a power is exact.
    """
    found: dict[str, None] = {}
    for each, code in inner_codes(function):
        named = (
            risk for risk in _named(each, code) if not (of_integers and risk.startswith("pow"))
        )
        found.update(dict.fromkeys(named))
        if not of_integers and any(_powers(each, code)):
            found[_POWER] = None
    for each in inner_functions(function):
        found.update(dict.fromkeys(_in_text(each)))
    return list(found)


def _powers(function: FunctionType, code: CodeType) -> Iterator[bool]:
    """Yield of each power in a code whether it may be one of floats."""
    for step in dis.get_instructions(code):
        if step.opname == "BINARY_OP" and step.argrepr in {"**", "**="}:
            yield not any(
                is_exact_power(node)
                for node in ast.walk(tree_of(function) or ast.Module([], []))
                if isinstance(node, ast.BinOp) and _place_of(node) == step.positions
            )


def _place_of(node: ast.expr) -> tuple[int | None, ...]:
    """Return where an expression stands, as the steps of a code name it."""
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def risks_of(plan: Plan) -> list[str]:
    """Return a line for each risk in what a program makes of readings."""
    found = {
        f"{what} names {risk}": None
        for what, function in functions_of(plan)
        if what != ACTING
        for risk in risks(function, of_integers=getattr(function, "__name__", "") in _OF_INTEGERS)
    }
    return list(found)


def makes_sets(plan: Plan) -> bool:
    """Return whether some function makes a set, whose order another hash seed changes."""
    codes = [code for _, function in functions_of(plan) for _, code in inner_codes(function)]
    named = any({"set", "frozenset"}.intersection(code.co_names) for code in codes)
    steps = (step.opname for code in codes for step in dis.get_instructions(code))
    return named or any(step in {"BUILD_SET", "SET_ADD"} for step in steps)


def functions_of(plan: Plan) -> Iterator[tuple[str, Any]]:
    """Yield all functions of the user's in a program, each with what it is for."""
    functions = plan.functions
    for name, key in functions.keys.items():
        yield f"key of {_kind(plan, name)} {name}", key
    for (window, kind), function in functions.windows.items():
        yield f"{kind} of window {window}", function
    for event, handlers in functions.handlers.items():
        yield from ((f"handler of event {event}", each) for each in handlers)
    for name, function in functions.derived.items():
        yield f"function of {name}", function
    yield from _methods(plan)
    acting = [each for several in functions.results.values() for each in several]
    acting += [*functions.reacting, *functions.reached]
    yield from ((ACTING, each) for each in acting)


def _methods(plan: Plan) -> Iterator[tuple[str, Any]]:
    """Yield the functions of streams, and the methods of scans and folds."""
    for name, made in plan.functions.streams.items():
        title = f"{plan.streams[name].operator} {name}"
        functions = methods_of(made) if isinstance(made, Scan) else [made]
        yield from ((title, each) for each in functions)
    folds = [(f"fold of window {each.name}", each.fold) for each in plan.windows.values()]
    folds += [(f"fold {each.name}", each.fold) for each in plan.local_folds.values()]
    for what, fold in folds:
        yield from ((what, each) for each in methods_of(fold))


def _kind(plan: Plan, name: str) -> str:
    if name in plan.windows:
        return "window"
    return f"{plan.streams[name].operator}" if name in plan.streams else "variable"


def methods_of(made: Any) -> Iterator[FunctionType]:
    """Yield the methods of a user's scan or fold, and the functions that it was given."""
    for kind in type(made).__mro__:
        if not kind.__module__.startswith(("lasp_edge.", "builtins", "abc", "typing")):
            yield from (of for of in vars(kind).values() if isinstance(of, FunctionType))
    for value in getattr(made, "__dict__", {}).values():
        several = value if isinstance(value, list | tuple) else [value]
        yield from (of for of in several if isinstance(of, FunctionType))


def inner_codes(function: Any) -> Iterator[tuple[FunctionType, CodeType]]:
    """Yield the code of a function, of those in it, and of those of its package that it names."""
    for each in inner_functions(function):
        for code in _codes(each.__code__):
            yield each, code


def inner_functions(function: Any) -> Iterator[FunctionType]:
    """Yield a function, and those of its package that it names, each once."""
    yield from _functions(inspect.unwrap(function), set())


def _functions(function: Any, seen: set[int]) -> Iterator[FunctionType]:
    """Yield a function, and those of its package that it names."""
    function = _without_arguments(function)
    if not isinstance(function, FunctionType):  # an object that is called, but no class
        function = vars(type(function)).get("__call__")
    if not isinstance(function, FunctionType) or id(function) in seen:
        return
    seen.add(id(function))
    yield function
    package, names = _package_of(function), {*names_read(function.__code__)}
    attributes = {name for code in _codes(function.__code__) for name in code.co_names}
    for value in [value for name, value in _outer_values(function) if name in names]:
        named = inspect.unwrap(value) if callable(value) else value
        if isinstance(named, FunctionType) and _package_of(named) == package:
            yield from _functions(named, seen)
        elif not isinstance(value, type) and _package_of(type(value)) == package:
            for name, method in vars(type(value)).items():
                if name in attributes or name == "__call__":
                    yield from _functions(method, seen)


def _without_arguments(function: Any) -> Any:
    """Return the function of a method, or of what `functools.partial` made."""
    while isinstance(function, partial):
        function = function.func
    return getattr(function, "__func__", function)


def names_read(code: CodeType) -> Iterator[str]:
    """Yield the globals and closed-over variables that a code reads, but no attributes."""
    for each in _codes(code):
        yield from each.co_freevars
        yield from (s.argval for s in dis.get_instructions(each) if s.opname in _READING)


def _outer_values(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the globals of a function, what it closes over, and what it imports itself."""
    yield from list(function.__globals__.items())
    yield from closed_values(function)
    yield from imported_in(function)


def closed_values(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield what a function closes over, by name."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if cell != CellType():  # else not yet assigned
            yield name, cell.cell_contents


def _package_of(function: Any) -> str:
    """Return the outermost package of a function; empty text where it has no module."""
    return (function.__module__ or "").partition(".")[0]


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a function's code, and that of the functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _named(function: FunctionType, code: CodeType) -> Iterator[str]:
    known = dict(vars(builtins)) | dict(_outer_values(function))
    for name, attributes in _chains(code, {name for name, _ in imported_in(function)}):
        if name in known:
            yield from _risks_of(name, known[name], attributes)
    yield from (f"{name}: {_FILE}" for name in sorted(_READING_FILES.intersection(code.co_names)))


def _chains(code: CodeType, imported: set[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each global, closed-over variable or import that is read, and the attributes behind."""
    name, attributes = "", set[str]()
    for step in dis.get_instructions(code):
        if name and step.opname in _ATTRIBUTES:
            attributes.add(step.argval)
            continue
        if name:
            yield name, frozenset(attributes)
        is_local = step.opname.startswith("LOAD_FAST") and step.argval in imported
        is_read = is_local or step.opname in _READING or step.argval in code.co_freevars
        name, attributes = (step.argval if is_read else ""), set()


def _risks_of(name: str, value: Any, names: frozenset[str]) -> Iterator[str]:
    """Yield the risks of a value that a code names, beside other names."""
    owner = getattr(value, "__module__", None) or type(getattr(value, "__self__", None)).__module__
    if isinstance(value, ModuleType):
        yield from _risks_of_module(name, value, names)
    elif callable(value):
        yield from _risks_of_function(name, value, owner)
    if callable(value) and getattr(value, "__name__", "") in _of_package(_LATER, owner):
        yield f"{name}: {_AFTER}"
    if isinstance(value, type):
        machines = names & _PARTLY.get(owner.partition(".")[0], names - names)
        yield from (f"{name}.{each}: {_MACHINE}" for each in sorted(machines))
    if value in (dt, dt.datetime, dt.date) and names & _NOW:
        yield f"{name}.{min(names & _NOW)}: {OF_NO_TIME}"
    if isinstance(value, Parameter) and "default" in names:
        yield f"{name}.default: what operators set never reaches it; write at[{name}]"


def _risks_of_module(name: str, module: ModuleType, names: frozenset[str]) -> Iterator[str]:
    if module.__name__ == MODULE:
        for each in sorted(names or [""]):
            yield from clock_risks(f"{name}.{each}".rstrip("."), each)
    elif module.__name__ in _EACH_TIME:
        yield f"{name}: {OF_NO_READING}"
    elif module.__name__ in _OF_MACHINES:
        yield f"{name}: {_MACHINE}"
    elif module is cmath:
        yield f"{name}: {rounded(module.__name__, '')}"
    machines = _PARTLY.get(module.__name__, frozenset()) & names
    yield from (f"{name}.{each}: {_MACHINE}" for each in sorted(machines))
    later = _of_package(_LATER, module.__name__) & names
    yield from (f"{name}.{each}: {_AFTER}" for each in sorted(later))
    whys = ((each, rounded(module.__name__, each)) for each in sorted(names))
    yield from (f"{name}.{each}: {why}" for each, why in whys if why and module is not cmath)


def _of_package(known: Mapping[str, frozenset[str]], module: str) -> frozenset[str]:
    return known.get(module.partition(".")[0], frozenset())


def _risks_of_function(name: str, value: Any, owner: str) -> Iterator[str]:
    called = getattr(value, "__name__", "")
    owner = "operator" if owner == "_operator" else "os" if owner in {"posix", "nt"} else owner
    if owner == MODULE:
        yield from clock_risks(name, called)
    elif owner in _EACH_TIME:
        yield f"{name}: {OF_NO_READING}"
    elif why := rounded(*("math", "pow") if value is pow else (owner, called)):
        yield f"{name}: {why}"
    elif owner in _OF_MACHINES or called in _PARTLY.get(owner, ()):
        yield f"{name}: {_MACHINE}"
    elif value is builtins.hash or value is builtins.id:
        yield f"{name}: it differs from process to process"
    elif value is builtins.open:
        yield f"{name}: {_FILE}"


def _in_text(function: FunctionType) -> Iterator[str]:
    """Yield the risks that the text of a function and of its module shows, and no name."""
    node, known = node_of(function), dict(_outer_values(function))
    yield from (*cuts_in(node, known), *set_orders(node, known)) if node is not None else ()
    for each in ast.walk(node) if node is not None else ():
        if isinstance(each, ast.Call):
            yield from (f"{ast.unparse(each)}: {risk}" for risk in _risks_of_call(each, known))
    names = {*names_read(function.__code__)}
    made = (f"{name}, made at import of {risk}" for name, risk in _risks_at_import(function))
    yield from (risk for risk in made if not risk.endswith(_FILE))  # it was read once
    yield from settings_of(function, {name: known.get(name) for name in names})


def _risks_of_call(call: ast.Call, known: Mapping[str, Any]) -> Iterator[str]:
    """Yield the risks of a call that its arguments show; `known`: what names mean there."""
    if asks_for_now(call, known):
        yield OF_NO_TIME
    if lacks_zone(call):
        yield _ZONE


def _risks_at_import(function: FunctionType) -> Iterator[tuple[str, str]]:
    """Yield the globals that a function names and its module assigns, with each risk of theirs."""
    names = {*names_read(function.__code__)}
    for name, value in _made_at_import(function):
        if name in names:
            code = compile(ast.Expression(value), "<import>", "eval")
            yield from ((name, risk) for risk in _named(function, code))
            calls = [each for each in ast.walk(value) if isinstance(each, ast.Call)]
            yield from ((name, f"{ast.unparse(c)}: {_ZONE}") for c in calls if lacks_zone(c))


def files_of(plan: Plan) -> list[str]:
    """Return a line for each global that a program made of a file, and a function names."""
    found = {
        f"{what} has {name} from a file, read at import: bring that file to all machines with the "
        "program, and raise version= where it changes"
        for what, function in functions_of(plan)
        for each in inner_functions(function)
        for name, risk in _risks_at_import(each)
        if risk.endswith(_FILE)
    }
    return sorted(found)


def _made_at_import(function: FunctionType) -> Iterator[tuple[str, ast.expr]]:
    """Yield the globals that a module assigns, each with what it is made of."""
    for node in getattr(tree_of(function), "body", ()):
        if isinstance(node, ast.Assign):
            named = [each for each in node.targets if isinstance(each, ast.Name)]
            yield from ((each.id, node.value) for each in named)
        elif isinstance(node, ast.AnnAssign) and node.value and isinstance(node.target, ast.Name):
            yield node.target.id, node.value
