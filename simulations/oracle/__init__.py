"""The truth, by sequential recomputation from raw readings: slow, and obviously right.

Everything the fleet computes has a definition that needs no lattice, pane or message: a window's
partial is the fold of the readings that lie in it; a local fold's is the fold of the last `bound`
values that were added and are not too old; a dynamic fold's combines those of all devices that are
neither retired nor silent for longer than it allows; its `inputs` are a sum of hashes of what they
published. All of it goes by key; what has no `key=` has the one key "". This package is those
definitions, over fractions and lists, and shares no code with the way that a device or Spark takes.
(A sketch of distinct values is joined by `lasp_edge.folds.hll`, which is held against the
`datasketches` package elsewhere.)

- `readings`: which readings count, and what they are in steps of the resolution
- `partials`: what a fold makes of values, column by column
- `streams`: what streams emit, and the rows of their results
- `windows`: what each window holds; `definitions`: what counts in it, and which windows there are
- `values`: what is in the sets, and what local and dynamic folds make of them
- `shared`: what shared variables hold after the updates of all devices
- `inputs`: what a fleet-wide value was made from, as a digest

    >>> from lasp_edge import Program, folds
    >>> program = Program("greenhouse")
    >>> temperature = program.event("temperature", resolution="0.01")
    >>> minute = program.window(
    ...     "minute", source=temperature, fold=folds.mean(), size_s=60, slide_s=30)
    >>> readings = [Reading("pi-1", "temperature", 21.5, 40_000_000),
    ...             Reading("pi-2", "temperature", 22.5, 59_000_000),
    ...             Reading("pi-2", "temperature", 22.5, 59_000_000)]  # once more: counts once
    >>> for (key, start_us), truth in windows(program.plan(), "minute", readings).items():
    ...     print(start_us, truth.partial, truth.devices_in)
    0 (2, 4400) 2
    30000000 (2, 4400) 2
"""

from simulations.oracle.inputs import PublishedPartial, inputs
from simulations.oracle.partials import combined, folded
from simulations.oracle.readings import Reading, accepted, quantised
from simulations.oracle.streams import rows
from simulations.oracle.values import added, dynamic_partials, left_out, local_partials
from simulations.oracle.windows import WindowTruth, emptied, windows

__all__ = [
    "PublishedPartial",
    "Reading",
    "WindowTruth",
    "accepted",
    "added",
    "combined",
    "dynamic_partials",
    "emptied",
    "folded",
    "inputs",
    "left_out",
    "local_partials",
    "quantised",
    "rows",
    "windows",
]
