"""One program that holds every program of README and docs, and every fold, with and without keys.

The programs of docs/gallery.md are not in it: a test of their own replays each.
The folds stand side by side in one struct, for Spark plans each window and each value apart.
Each README program is run as it is written, but that its names get its own name before them, so
that one replay tries all of them. Processes load it as `tests.simulations.everything:program` from
the checkout.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crdts import BoundedLWWSet
from lasp_edge import EventType, Program, folds
from lasp_edge.examples import talk
from tests.lasp_edge.support_folds import ONE_EACH
from tests.support_readme import BLOCKS, CHECKOUT

SPEC = "tests.simulations.everything:program"

program = Program("everything")


class Part:
    """A program inside `program`: every name that it gives to something begins with its own.

    Args:
        name: the program's.
    """

    def __init__(self, name: str) -> None:
        self.prefix = name.replace("-", "_")
        self._events: list[EventType] = []

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            named = [f"{self.prefix}_{a}" if isinstance(a, str) else a for a in arguments]
            if method == "parameter":
                named[1:] = arguments[1:]  # a default is a text, too
            if method == "declare_dynamic" and isinstance(named[0], BoundedLWWSet):
                options.setdefault("measures", self._events[0])
            made = getattr(program, method)(*named, **options)
            if method == "event":
                self._events.append(made)
            return made

        return call


def _written_programs() -> list[str]:
    """Return the README's Python blocks that write a program or a fold, and the talk's listing."""
    gallery = (CHECKOUT / "docs" / "gallery.md").read_text()
    blocks = [
        block.text
        for block in BLOCKS
        if block.language == "python"
        and block.text not in gallery
        and "(scans.Synchronised)" not in block.text  # it names its events, which have others here
    ]
    shown = [block for block in blocks if "Program(" in block or "(Fold)" in block]
    return [*shown, Path(talk.__file__).read_text()]


def _run(text: str) -> dict[str, Any]:
    """Run a program's text as a part of `program`, and return its names."""
    names: dict[str, Any] = {"Part": Part, "__name__": "written"}
    exec(re.sub(r"\bProgram\(", "Part(", text), names)
    return names


WRITTEN = [_run(text) for text in _written_programs()]
(Range,) = (names["Range"] for names in WRITTEN if "Range" in names)

FOLDS = ONE_EACH | {
    "histogram": folds.histogram([20, "22.5", 25]),
    "struct": folds.struct(mean=folds.mean(), p99=folds.quantile(0.99), seen=folds.distinct()),
    "range": Range(),
}

ALL = folds.struct(**{f"all_{name}": fold for name, fold in FOLDS.items() if name != "struct"})

heat = program.event("heat", resolution="0.01")
kept = program.declare_dynamic(BoundedLWWSet(bound=5), "kept", measures=heat)
kept_by_room = program.declare_dynamic(
    BoundedLWWSet(bound=5, max_age_s=3600),
    "kept_by_room",
    measures=heat,
    key=lambda event: event.tags["room"],
)
program.collect(heat, into=kept)
program.collect(heat, into=kept_by_room)
for _name, _fold in {"quantile": FOLDS["quantile"], "range": FOLDS["range"], "every": ALL}.items():
    program.fold_dynamic(program.fold(kept, _fold, f"{_name}_here"), f"{_name}_everywhere")
    program.fold_dynamic(
        program.fold(kept_by_room, _fold, f"{_name}_by_room_here"), f"{_name}_by_room"
    )
program.window("every_of_all", source=heat, fold=ALL, size_s=50, slide_s=20)
program.window(
    "every_of_rooms",
    source=heat,
    fold=ALL,
    size_s=40,
    key=lambda event: event.tags["room"],
)
