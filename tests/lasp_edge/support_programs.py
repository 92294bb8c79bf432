"""A small program, and events for it."""

from crdts import BoundedLWWSet
from lasp_edge import Event, Program, folds, scans
from lasp_edge.folds.fold import Fold


def event(name="temperature", value=21.5, **tags):
    return Event(name, value, 40_000_000, "pi-1", tags)


def basics(name="p", resolution="0.01", bound=100):
    """Return a program with one event, one set and a handler."""
    program = Program(name)
    temperature = program.event("temperature", resolution=resolution)
    samples = program.declare_dynamic(BoundedLWWSet(bound=bound), "samples", measures=temperature)

    @program.on_event(temperature)
    def sampled(event, update):
        update(samples, BoundedLWWSet.add, event.value, event.time_us)

    return program, temperature, samples


def averaged(name="house", fold=None, *, key=None, dynamic=None, event=None, **bounds):
    """Return a program of samples, their fold on a device (here), and the fleet's (everywhere).

    Args:
        name: its own.
        fold: the mean, by default.
        key: of the samples.
        dynamic: options of the fleet's fold.
        event: options of the event, which is the temperature.
        bounds: of the samples; the latest five, by default.
    """
    program = Program(name)
    program.temperature = program.event("temperature", **(event or {}))
    bottom = BoundedLWWSet(**(bounds or {"bound": 5}))
    program.samples = program.declare_dynamic(bottom, "samples", key=key)
    program.collect(program.temperature, into=program.samples)
    program.here = program.fold(program.samples, fold or folds.mean(), "here")
    program.everywhere = program.fold_dynamic(program.here, "everywhere", **(dynamic or {}))
    return program


def climate(key):
    """Return a program that joins two events of a device, as of the time of the first, by a key."""
    program = Program("climate")
    warm, moist = program.event("warm"), program.event("moist")
    joined = scans.as_of(warm, moist, missing=0.0)
    made = {"source": [warm, moist], "scan": joined, "key": key, "per_device": True}
    program.result(program.scan("both", **made), parts={"warm": "1", "moist": "1"})
    return program


class Mean2(Fold):
    """The built-in mean under a version of its own."""

    name, version = "mean_of_mine", 1
    columns, parts = folds.mean().columns, folds.mean().parts
    lift, lower = type(folds.mean()).lift, type(folds.mean()).lower

    def __init__(self, version=1, parameters=""):
        self.version, self.parameters = version, parameters
