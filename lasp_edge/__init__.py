"""What users write, and what crosses MQTT.

- `variables`: named states
- `generics`: the variables of generic types
- `event`: what handlers, keys and scans see of a reading
- `language`: Program, events, windows, and the Plan from which every tier starts
- `folds`: what a fold is, the built-in ones, the columns of their partials, exact numbers
- `scans`: what is computed in the order of events; `ordered`: how, and again where one comes late
- `aggregates`: partials kept up to date: of one device, and over the fleet
- `dataflow`: sets that follow from others, and threshold reads; also all of Lasp, as `Dataflow`
- `protocol`: frames, topics, digests, and what every tier must agree on; `link`: MQTT
- `checking`, `testing`: the laws, tried on a program's folds
- `metrics`: figures for Prometheus, and their page
- `tool`, `errors`: the `lasp-edge` command; `collecting`: Python's collector of cycles, less often
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lasp_edge import folds, scans
    from lasp_edge.event import Event, key_parts
    from lasp_edge.folds.columns import Column, Op, Partial
    from lasp_edge.folds.fold import Fold
    from lasp_edge.folds.numbers import Resolution
    from lasp_edge.language.acting import FoldValue
    from lasp_edge.language.declarations import EventType, Parameter, Stream, Window
    from lasp_edge.language.parameters import ParameterValues
    from lasp_edge.language.plan import Plan
    from lasp_edge.language.program import Program
    from lasp_edge.language.streaming import StreamRow
    from lasp_edge.language.updates import Update
    from lasp_edge.variables import Variable

__all__ = [
    "Column",
    "Event",
    "EventType",
    "Fold",
    "FoldValue",
    "Op",
    "Parameter",
    "ParameterValues",
    "Partial",
    "Plan",
    "Program",
    "Resolution",
    "Stream",
    "StreamRow",
    "Update",
    "Variable",
    "Window",
    "folds",
    "key_parts",
    "scans",
]

_MODULES = {
    "event": ("Event", "key_parts"),
    "folds.columns": ("Column", "Op", "Partial"),
    "folds.fold": ("Fold",),
    "folds.numbers": ("Resolution",),
    "language.acting": ("FoldValue",),
    "language.declarations": ("EventType", "Parameter", "Stream", "Window"),
    "language.parameters": ("ParameterValues",),
    "language.plan": ("Plan",),
    "language.program": ("Program",),
    "language.streaming": ("StreamRow",),
    "language.updates": ("Update",),
    "variables": ("Variable",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a name's module when it is asked for: most commands do without most of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name not in _MODULE_OF:
        return import_module(f"{__name__}.{name}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    return found
