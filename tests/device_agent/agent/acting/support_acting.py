"""A house that acts on its values, and what another device says to it."""

from crdts import GSet, Replica
from tests.device_agent.agents import Device, entry_of
from tests.lasp_edge.support_programs import averaged

PEER = Replica(1, 99, "pi-2")


class House:
    """A program with a local and a fleet-wide mean of temperatures, still to be completed.

    Attributes:
        seen: the values that handlers were given.
    """

    def __init__(self, *, fold=None, key=None, bound=3):
        event = {"resolution": "0.1", "unit": "°C"}
        program = self.program = averaged(fold=fold, key=key, event=event, bound=bound)
        self.temperature, self.samples = program.temperature, program.samples
        self.here, self.everywhere = program.here, program.everywhere
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
