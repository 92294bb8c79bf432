"""The reference of all public names as pages of HTML: `python -m simulations.reference FOLDER`.

It is made of docstrings by pdoc. Behind that of a class or function the head of its module follows:
it has the idea, the laws and the source.
"""

import inspect
import re
import sys
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from lasp_edge.release import RELEASE

MODULES = (
    "lasp_edge",
    "lasp_edge.folds",
    "lasp_edge.scans",
    "lasp_edge.dataflow",
    "lasp_edge.testing",
    "crdts",
    "cloud_tier",
)
"""The modules whose names are public: those in their `__all__`."""


def public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield the public names of a module and what they stand for, without modules."""
    for name in module.__all__:
        thing = getattr(module, name)
        if not inspect.ismodule(thing):
            yield name, thing


def described(thing: Any) -> str:
    """Return the docstring of a class or function, and then the head of its module."""
    texts = (inspect.getdoc(each) or "" for each in (thing, sys.modules[thing.__module__]))
    return "\n\n".join(texts)


def main() -> None:
    """Write the pages into the folder that is named on the command line."""
    import pdoc.render  # noqa: PLC0415 - of the extra `dev`

    for module in map(import_module, MODULES):
        for name, thing in public(module):
            setattr(module, name, thing)  # some are imported when they are asked for
            if inspect.isclass(thing) or inspect.isfunction(thing):
                thing.__doc__ = described(thing)
            if inspect.isclass(thing) and thing.__name__ not in module.__all__:
                # Users write folds.mean(), whatever its class is called.
                thing.__name__, thing.__qualname__, thing.__module__ = name, name, module.__name__
    pdoc.render.configure(docformat="google", show_source=False, footer_text=f"lasp-edge {RELEASE}")
    inner = r"!(?!({})$).*\..*".format("|".join(map(re.escape, MODULES)))
    warnings.filterwarnings("ignore", "The module specification")  # a package names its modules
    pdoc.pdoc(*MODULES, inner, output_directory=Path(sys.argv[1]))


if __name__ == "__main__":
    main()
