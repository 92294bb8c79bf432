"""The program that the recorded data go through: several windows on one event, keys, odd sizes.

Processes load it as `tests.end_to_end.support_recorded:program` from the checkout.
"""

from crdts import BoundedLWWSet
from lasp_edge import Event, Program, Update, folds

SPEC = "tests.end_to_end.support_recorded:program"
LAST = 100

program = Program("recorded")
temp = program.event("temp", resolution="0.01", unit="°C")
humidity = program.event("humidity", resolution="0.1", unit="%")

samples = program.declare_dynamic(BoundedLWWSet(bound=LAST), "samples", measures=temp)


@program.on_event(temp)
def sampled(event: Event, update: Update) -> None:
    """Keep the last temperatures."""
    update(samples, BoundedLWWSet.add, event.value, event.time_us)


everything = folds.struct(count=folds.count(), total=folds.sum(), min=folds.min(), max=folds.max())
last_here = program.fold(samples, everything, "last_here")
last_everywhere = program.fold_dynamic(last_here, "last_everywhere")

reference = program.window("temp_60s", source=temp, fold=everything, size_s=60, slide_s=10)
program.window(
    "temp_by_device",
    source=temp,
    fold=folds.mean(),
    size_s=50,
    slide_s=20,
    key=lambda event: event.device,
)
program.window(
    "humidity_by_light",
    source=humidity,
    fold=everything,
    size_s=50,
    slide_s=20,
    key=lambda event: f'light, "{event.tags["light"]}" → ☀',
)

by_light = program.declare_dynamic(
    BoundedLWWSet(bound=LAST), "by_light", measures=humidity, key=lambda event: event.tags["light"]
)
program.collect(humidity, into=by_light)
light_here = program.fold(by_light, everything, "light_here")
light_everywhere = program.fold_dynamic(light_here, "light_everywhere")

FIELDS = ["--time", "ts", "--device-field", "device", "--event", "temp=data.temp"]
FIELDS += ["--event", "humidity=data.humidity", "--tag", "light=data.light"]
"""How the lines of the recorded data become this program's readings."""
