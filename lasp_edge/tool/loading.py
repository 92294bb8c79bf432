"""Finding MODULE:program, as uvicorn finds an app: the current directory counts."""

import importlib
import sys
import traceback
from pathlib import Path
from types import ModuleType

from lasp_edge.errors import NotFound, UsageError
from lasp_edge.language.plan import Plan
from lasp_edge.language.program import Program


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
    if not all(map(str.isidentifier, module_name.split("."))):
        raise UsageError(f"MODULE:program is needed, such as greenhouse:program, not {spec!r}")
    attribute = attribute or "program"
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    program = getattr(_module(module_name), attribute, None)
    if not isinstance(program, Program):
        found = "nothing is there" if program is None else f"it is of type {type(program).__name__}"
        raise NotFound(f"{spec}: {module_name}.{attribute} must be a Program, but {found}")
    try:
        return program.plan()
    except ValueError as error:
        raise UsageError(f"{spec}: {error}") from None


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise NotFound(f"no module {name!r} in the current directory or installed") from None
        raise UsageError(f"module {name!r} imports {error.name!r}, which is missing") from error
    except Exception as error:  # the module is the user's and may raise anything
        place = _place(error)
        raise UsageError(f"module {name!r}{place}: {type(error).__name__}: {error}") from error


def _place(error: Exception) -> str:
    """Return the line of a module, mostly the user's own, that led to the error."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f for f in frames if f.name == "<module>" and not f.filename.startswith("<")]
    return f", {Path(lines[-1].filename).name} line {lines[-1].lineno}" if lines else ""
