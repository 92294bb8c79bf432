"""A house that acts on its values, and what another device says to it."""

from crdts import BoundedLWWSet, GSet, Replica
from lasp_edge import Program, folds
from tests.device_agent.agents import Device, entry_of

PEER = Replica(1, 99, "pi-2")


class House:
    """A program with a local and a fleet-wide mean of temperatures, still to be completed.

    Attributes:
        seen: the values that handlers were given.
    """

    def __init__(self, *, fold=None, key=None, bound=3):
        program = self.program = Program("house")
        self.temperature = program.event("temperature", resolution="0.1", unit="°C")
        self.samples = program.declare_dynamic(BoundedLWWSet(bound=bound), "samples", key=key)
        program.collect(self.temperature, into=self.samples)
        self.here = program.fold(self.samples, fold or folds.mean(), "here")
        self.everywhere = program.fold_dynamic(self.here, "everywhere")
        self.notices = program.declare(GSet(), "notices")
        self.seen = []

    def on_value(self, variable, **levels):
        """Watch a value with a handler that keeps what it is given, and notes it."""

        def noted(value, update):
            self.seen.append(value)
            update(self.notices, GSet.add, f"{value.key}={value.number}")

        self.program.on_value(variable, **levels)(noted)
        return self

    def plan(self):
        return self.program.plan()

    def numbers(self):
        """Return what the handlers were given since the last time."""
        found, self.seen = [value.number for value in self.seen], []
        return found


def peer_says(
    device: Device, number: int, count: int, total: int, sender: Replica = PEER, key: str = ""
) -> None:
    """Let a device hear another one's samples: how many, and their total in tenths."""
    stream = device.program.local_folds["here"].stream
    device.hear(entry_of(sender, number, "here", stream, (count, total), key))


def run(device: Device, seconds: int) -> None:
    """Let time pass, second by second."""
    for _ in range(seconds):
        device.tick()
