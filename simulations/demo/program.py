"""The program of the demo's devices by default: how warm a house is.

Rooms of different temperatures have one average, and every device knows it to the last digit: that
is agreement which shows. Each device measures its processor, too. The error
of a thermometer, and the limit above which a room is warm, are parameters of an operator.
"""

from crdts import BoundedLWWSet
from lasp_edge import Event, Program, Update, folds

SAMPLES = 100
"""The number of each device's latest readings that the fleet's average is over."""

program = Program("demo")
room_temperature = program.event("room_temperature", resolution="0.01", unit="°C")
cpu = program.event("cpu", resolution="0.1", unit="%")

offset = program.parameter("offset", "0", resolution="0.01", unit="°C")
warm_above = program.parameter("warm_above", "22", resolution="0.5", unit="°C")

samples = program.declare_dynamic(
    BoundedLWWSet(bound=SAMPLES), "samples", measures=room_temperature
)


@program.on_event(room_temperature)
def sampled(event: Event, update: Update) -> None:
    """Keep the reading among the last ones of its device."""
    update(samples, BoundedLWWSet.add, event.value, event.time_us)


local_average = program.fold(samples, folds.mean(), "local_average")
global_average = program.fold_dynamic(local_average, "global_average")

program.window(
    "house",
    source=room_temperature,
    fold=folds.struct(mean=folds.mean(), min=folds.min(), max=folds.max()),
    size_s=10,
    slide_s=5,
    value=lambda event, at: event.value + at[offset],
    uses=(offset,),
)
program.window(
    "warm",
    source=room_temperature,
    fold=folds.count(),
    size_s=10,
    value=lambda event, at: event.value + at[offset],
    where=lambda event, at: event.value > at[warm_above],
    uses=(offset, warm_above),
)
program.window(
    "cpu_by_device",
    source=cpu,
    fold=folds.mean(),
    size_s=20,
    key=lambda event: event.device,
)
