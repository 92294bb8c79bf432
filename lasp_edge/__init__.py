"""What users write, and what crosses MQTT.

- `program`: Program, events, variables, windows
- `fold`, `folds`: aggregates; `columns`, `packed`, `hll`: what their partials are made of
- `sliding`: totals of partials that come and go; `numbers`: exact values
- `checking`, `testing`: the laws, tried on a program's folds
- `dataflow`: sets that follow from others, and threshold reads; also all of Lasp, as `Dataflow`
- `streams`, `inputs`: what a partial and a result are made of
- `messages`, `topics`, `link`: the frames, where they go, and the one MQTT connection
- `command_line`, `loading`, `errors`: the `lasp-edge` command
"""

from lasp_edge import folds
from lasp_edge.declarations import Event, EventType, Variable, Window
from lasp_edge.fold import Column, Fold, Op
from lasp_edge.program import Program, Update

__all__ = [
    "Column",
    "Event",
    "EventType",
    "Fold",
    "Op",
    "Program",
    "Update",
    "Variable",
    "Window",
    "folds",
]
