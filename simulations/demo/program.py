"""What the demo's devices compute unless told otherwise: how busy this machine is.

Five devices on one machine read the same processor, each at its own moments, so their averages
are close and still differ in their last digits. That makes agreeing on one fleet-wide average to
the last digit worth seeing.
"""

from crdts import BoundedLWWSet
from lasp_edge import Event, Program, Update, folds

SAMPLES = 100
"""The number of each device's latest readings that the fleet's average is over."""

program = Program("demo")
cpu = program.event("cpu", resolution="0.01", unit="%")
memory = program.event("memory", resolution="0.01", unit="%")

samples = program.declare_dynamic(BoundedLWWSet(bound=SAMPLES), "samples", measures=cpu)


@program.on_event(cpu)
def sampled(event: Event, update: Update) -> None:
    """Keep the reading among the last ones of its device."""
    update(samples, BoundedLWWSet.add, event.value, event.time_us)


local_average = program.fold(samples, folds.mean(), "local_average")
global_average = program.fold_dynamic(local_average, "global_average")

program.window(
    "cpu",
    source=cpu,
    fold=folds.struct(mean=folds.mean(), min=folds.min(), max=folds.max()),
    size_s=10,
    slide_s=5,
)
program.window(
    "memory_by_device",
    source=memory,
    fold=folds.mean(),
    size_s=20,
    key=lambda event: event.device,
)
