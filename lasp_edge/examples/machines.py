"""How busy machines are: a program that needs no sensor, and that `lasp-edge new` begins with.

What a machine tells of itself is read by the source `host`. Each device keeps its latest readings;
their mean is a value of its own, and the mean over all devices one that every device knows.
"""

from crdts import BoundedLWWSet
from lasp_edge import Program, folds

# The name of the fleet: agents of one name, at one broker, belong together.
program = Program("machines")

# What is measured: its name as the source says it, the step that values are rounded to, a unit.
cpu = program.event("cpu", resolution="0.1", unit="%")
memory = program.event("memory", resolution="0.1", unit="%")

# The latest 60 readings of each device; older ones make room for newer ones.
recent = program.declare_dynamic(BoundedLWWSet(bound=60), "recent", measures=cpu)
program.collect(cpu, into=recent)

# Their mean on this device, and over the readings of all devices.
here = program.fold(recent, folds.mean(), "cpu_here")
everywhere = program.fold_dynamic(here, "cpu_everywhere")

# An alert that each device tells, and Home Assistant shows: on above 90 for a minute, off below 80.
program.alert("machines are busy", everywhere, above=90, below=80, for_s=60)


# A history of each minute and device, if there is a lake (see `lasp-edge cloud`).
program.window(
    "memory_by_device",
    source=memory,
    fold=folds.max(),
    size_s=60,
    key=lambda event: event.device,
)
