"""Finding MODULE:program, as uvicorn finds an app: the current directory counts."""

import importlib
import importlib.util
import inspect
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType

from lasp_edge import folds
from lasp_edge.errors import NotFound, UsageError
from lasp_edge.language.plan import Plan
from lasp_edge.language.program import Program

_UNEXPECTED = re.compile(r"Program\.(\w+)\(\) got an unexpected keyword argument '(\w+)'")
_NOT_THERE = re.compile(r"cannot import name '(\w+)' from '(lasp_edge|crdts)(?:\.\w+)*'")
SYNONYMS = {
    **dict.fromkeys(("avg", "average", "AVG"), "mean"),
    **dict.fromkeys(("std", "stdev", "stddev_pop"), "stddev"),
    **dict.fromkeys(("percentile", "median", "p99"), "quantile"),
    **dict.fromkeys(("maximum", "minimum"), "max"),
    "var": "variance",
}
"""What SQL, Home Assistant and others call a fold, and our name of it."""
_MOST_LISTED = 32
"""Known words that are listed, at most, where none of them is near."""


def load_plan(spec: str) -> Plan:
    """Return the plan of the program that `MODULE:ATTRIBUTE` names.

    Args:
        spec: a module's dotted name and the attribute that holds the program; `MODULE` alone
            means `MODULE:program`.

    Raises:
        NotFound: there is no such module or attribute.
        UsageError: the module fails when it is imported, or its program cannot run.
    """
    module_name, _, attribute = spec.partition(":")
    attribute = attribute or "program"
    _need_module_name(spec, module_name, attribute)
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    module = _module(module_name)
    program = getattr(module, attribute, None)
    if not isinstance(program, Program):
        found = "nothing is there" if program is None else f"it is of type {type(program).__name__}"
        names = [name for name, each in vars(module).items() if isinstance(each, Program)]
        meant = f"; did you mean {module_name}:{names[0]}?" if names else ""
        raise NotFound(f"{spec}: {module_name}.{attribute} must be a Program, but {found}{meant}")
    try:
        return program.plan()
    except ValueError as error:
        raise UsageError(f"{spec}: {error}") from None


def load_other(spec: str) -> Plan:
    """Return the plan of another program: of `FILE.py`, `FILE.py:ATTRIBUTE` or `MODULE:ATTRIBUTE`.

    A file is loaded under a name of its own, beside a module of the same name.

    Raises:
        NotFound, UsageError: as for `load_plan`.
    """
    file, _, attribute = spec.partition(":")
    path = Path(file)
    if path.suffix != ".py":
        return load_plan(spec)
    if not path.is_file():
        raise NotFound(f"{spec}: there is no file {path}")
    name = f"_other_{path.stem}"
    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None, "a file of Python can be loaded"
    assert found.loader is not None, "and here is who loads it"
    module = sys.modules[name] = importlib.util.module_from_spec(found)
    sys.path.insert(0, str(path.resolve().parent))
    try:
        found.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # the file is the user's and may raise anything
        raise UsageError(f"{path}{_place(error)}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    return load_plan(f"{name}:{attribute or 'program'}")


def _need_module_name(spec: str, module: str, attribute: str) -> None:
    """Check that a text can name a module, and not a file.

    Raises:
        NotFound, UsageError: it cannot.
    """
    path = Path(module)
    if module.endswith(".py") and "/" not in module:
        raise NotFound(f"{spec} names a file; a module is needed: {path.stem}:{attribute}")
    if "/" in module:
        where = "" if str(path.parent) == "." else f", typed in {path.parent}"
        raise UsageError(f"{spec} is a path; a module is needed: {path.stem}:{attribute}{where}")
    if not all(map(str.isidentifier, module.split("."))):
        raise UsageError(f"MODULE:program is needed, such as greenhouse:program, not {spec!r}")


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            files = _near(name, [path.stem for path in Path.cwd().glob("*.py")])
            where = f"in {Path.cwd()} or installed"
            raise NotFound(f"no module {name!r} {where}{files}") from None
        raise UsageError(f"module {name!r} imports {error.name!r}, which is missing") from error
    except (Exception, SystemExit) as error:  # the module is the user's and may raise anything
        place = _place(error)
        text = f"{type(error).__name__}: {error}{_nearest_to(error)}"
        raise UsageError(f"module {name!r}{place}: {text}") from error


def _nearest_to(error: BaseException) -> str:
    """Return the nearest name of our language to an unknown one."""
    if isinstance(error, AttributeError) and (error.obj is folds or type(error.obj) is Program):
        known = [name for name in dir(error.obj) if name[0] != "_"]
        return _near(SYNONYMS.get(str(error.name), str(error.name)), known)
    imported = _NOT_THERE.search(str(error)) if isinstance(error, ImportError) else None
    if imported:
        names = dir(importlib.import_module(imported[2]))
        return _near(imported[1], [name for name in names if name[0] != "_"])
    found = _UNEXPECTED.search(str(error)) if isinstance(error, TypeError) else None
    method = getattr(Program, found[1], None) if found else None
    if found is None or method is None:
        return ""
    return _near(
        found[2], [name for name in inspect.signature(method).parameters if name != "self"]
    )


def _near(word: str, known: list[str]) -> str:
    """Return the nearest of the known words, all of them, or nothing if they are many."""
    from difflib import get_close_matches  # noqa: PLC0415 - only after a mistake

    near = get_close_matches(word, known, 1, 0.5)
    if near:
        return f"; did you mean {near[0]}?"
    if not 0 < len(known) <= _MOST_LISTED:
        return ""
    return f"; there {'is' if len(known) == 1 else 'are'} {', '.join(sorted(known))}"


def _place(error: BaseException) -> str:
    """Return the line of a module, mostly the user's own, that led to the error."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f for f in frames if f.name == "<module>" and not f.filename.startswith("<")]
    return f", {Path(lines[-1].filename).name} line {lines[-1].lineno}" if lines else ""
