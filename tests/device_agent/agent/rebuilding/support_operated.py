"""One device under entries of an operator, which come early, late and again, and its truth."""

from crdts import ControlLog, Replica
from device_agent.agent.settings import Settings
from device_agent.agent.stored_rows import Retraction
from lasp_edge.language.regimes import WindowRegimes
from lasp_edge.units import SECOND_US as S
from simulations.oracle import Reading, windows
from tests.device_agent.agents import Device
from tests.lasp_edge.language.support_controlled import greenhouse
from tests.support_commands import schedule_command

OPERATOR = Replica(1, 5, "operator")
PLAN = greenhouse().plan()
SETTINGS = Settings(keep_readings=True, fence_wait_us=0)
VALUES = {
    "above": ("-50", "0", "5.5"),
    "offset": ("0", "-1.5", "10"),
    "span_s": ("40", "60", "30"),
    "step_s": ("20", "10", "30"),
    "mode": ("day", "night"),
    "error": ("0.01", "0.02"),
}


class Fleet:
    """One device, and the operator whose log it hears."""

    def __init__(self, directory, plan=PLAN, settings=SETTINGS):
        self.device = Device(directory, plan, settings=settings, name="cellar")
        self.plan, self.log, self.frames = plan, ControlLog(), 0

    def say(self, parameter, scope, from_us, value):
        self.log |= self.log.set(parameter, scope, from_us, value, "ann")
        self.tell(parameter, scope)

    def tell(self, parameter, scope):
        self.frames += 1
        self.device.hear(schedule_command(OPERATOR, self.frames, parameter, scope, self.log))

    def build(self):
        for _ in range(200):
            self.device.tick()
            if not any(part.waits for part in self._building):
                return
        raise AssertionError("it builds without end")

    @property
    def _building(self):
        core = self.device.core
        return [part for part in (core.missing, core.streams) if part is not None]

    def take_back(self, drawn):
        """Retract a reading that came, or one that did not."""
        device, known = self.device, [each for each in self.readings() if not each.retracted]
        if known and drawn.random() < 0.9:
            _, _, value, time_us, tags, *_ = drawn.choice(known)
        else:
            value, time_us, tags = 1.5, device.now_us - 3 * S, {"room": "hall"}
        device.take([Retraction(value)], [time_us], [tags])

    def readings(self):
        return [
            Reading(
                "cellar",
                row["event"],
                row["value"],
                row["time_us"],
                row["tags"],
                stamped=True,
                retracted=row.get("retracted", False),
            )
            for row in self.device.store.readings()
        ]

    @property
    def frontier_us(self):
        """How far the device's streams have come."""
        streams = self.device.core.streams
        return None if streams is None else streams.engine.frontier_us

    def truth(self, name):
        reached = {} if self.frontier_us is None else {"cellar": self.frontier_us}
        found = windows(self.plan, name, self.readings(), self.log, reached)
        return {at: each.partial for at, each in found.items()}

    def windows(self, name):
        """Return (key, start) -> partial, from the entries in the store."""
        window = self.plan.windows[name]
        regimes = WindowRegimes(window, self.plan.functions, self.log, "cellar")
        found = {}
        for pane, row in self.device.rows():
            for piece in regimes.pieces:
                if piece.stream == pane.stream and piece.first_us <= pane.pane_us < piece.end_us:
                    for start_us, form in regimes.starts_over(piece, pane.pane_us):
                        before = found.get((pane.key, start_us), form.fold.zero)
                        found[pane.key, start_us] = form.fold.combine(before, row.partial)
        return found

    def check(self):
        for name, window in self.plan.windows.items():
            found, empty = self.windows(name), window.fold.zero
            if window.source.name in self.plan.streams or self.device.counted.get("retractions"):
                found = {at: each for at, each in found.items() if each != empty and any(each)}
            assert found == self.truth(name), name


def wander(fleet, drawn, steps=40, *, takes_back=False):
    """Let anything happen in any order."""
    device = fleet.device
    for _ in range(steps):
        what = drawn.random()
        if what < 0.5:
            count = drawn.choice((1, 3, 12))
            times = [
                device.now_us - drawn.choice((0, 1, 5, 30, 300)) * S - drawn.randrange(S)
                for _ in range(count)
            ]
            if drawn.random() < 0.3:
                times = [None] * count
            values = [drawn.randint(-300, 300) / 10 for _ in range(count)]
            device.read(values, times, {"room": drawn.choice(("hall", "shed"))})
        elif what < 0.7:
            parameter = drawn.choice(sorted(VALUES))
            at_us = device.now_us + drawn.choice((-300, -60, -7, 0, 25)) * S + drawn.randrange(3)
            known = [at.from_us for at in fleet.log.entries if at.parameter == parameter]
            at_us = drawn.choice([at_us, *known])
            value = drawn.choice([None, "", *VALUES[parameter]])
            fleet.say(parameter, drawn.choice(("", "", "cellar", "attic")), at_us, value)
        elif what < 0.8:
            device.restart()
        elif what < 0.9 and takes_back:
            fleet.take_back(drawn)
        else:
            device.tick(drawn.choice((1, 1, 7, 40)))
