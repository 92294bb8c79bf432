"""The fleet's average temperature over the last 100 samples of each device, and its mean by room.

The last samples are those that a device took in last, whatever their times.

Run it on a device:

    lasp-edge agent lasp_edge.examples.greenhouse:program --device pi-1 ...
"""

from crdts import BoundedLWWSet
from lasp_edge import Event, Program, Update, folds

program = Program("greenhouse")
temperature = program.event("temperature", resolution="0.01", unit="°C")  # quantised once, here

samples = program.declare_dynamic(BoundedLWWSet(bound=100), "samples")  # declare takes a bottom


@program.on_event(temperature)
def sampled(event: Event, update: Update) -> None:
    """Keep the reading; the runtime adds the replica and joins the delta."""
    update(samples, BoundedLWWSet.add, event.value, event.time_us)


local_average = program.fold(samples, folds.mean(), "local_average")
global_average = program.fold_dynamic(local_average, "global_average")

program.window(
    "temperature_by_room",
    source=temperature,
    fold=folds.mean(),
    size_s=60,
    slide_s=10,
    key=lambda event: event.tags["room"],
)
