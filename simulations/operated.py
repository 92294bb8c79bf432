"""A fleet whose parameters an operator changes, with what its rows must be.

>>> from simulations.world.controlled import parametrised
>>> fleet = OperatedFleet(parametrised().plan(), size=2, seed=7)
>>> fleet.say("offset", "", fleet.now_us + 5 * SECOND_US, "10")
>>> fleet.live(20)
>>> fleet.settle()
>>> fleet.found() == fleet.truth() != {}
True
>>> fleet.close()
"""

from random import Random
from typing import Final, NamedTuple

from crdts import ControlLog, ControlPlace
from device_agent.agent.settings import Settings
from device_agent.gateway.core import WaitingTerms
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.protocol.window_rows import FleetRow, WindowStart
from lasp_edge.units import SECOND_US
from simulations.fleet import Fleet
from simulations.oracle import Reading, WindowTruth, windows
from simulations.world.controlled import READ
from simulations.world.faults import CALM, FaultRates
from simulations.world.log_checks import LogWatch
from simulations.world.window_checks import ends_otherwise

LATENESS_S: Final = 3
"""How many seconds after its time a reading comes, at most, and is on time."""
LATE_S: Final = 15
"""How many seconds after its time a late one comes, at most."""
SETTLE_STEPS: Final = 120
"""Seconds after which the rows of a settled fleet must be final."""


class WrittenRow(NamedTuple):
    """A row of the gateway's.

    Attributes:
        row: see there.
        control: the fingerprint of the log that the gateway had when it was written.
    """

    row: FleetRow
    control: int


class OperatedFleet(Fleet):
    """Devices that measure, an operator who sets parameters, and a gateway.

    Args:
        plan: of `parametrised`.
        size: how many devices.
        seed: of everything that is drawn.
        faults: what may go wrong until it settles.
        wait_us: X, for how long windows wait for devices before they have a row.
        reads_late: some readings come after their windows were final.

    Attributes:
        written: window -> all its rows.
        logs: the logs under which rows were written, by fingerprint.
        last_set: place -> the value that was set there last, whenever that was heard.
        trouble: what the gateway did that must never happen.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        size: int,
        seed: int,
        faults: FaultRates = CALM,
        wait_us: int = 0,
        reads_late: bool = False,
    ) -> None:
        names = [f"pi-{number}" for number in range(size)]
        terms = WaitingTerms(names, 3_600 * SECOND_US, tentative_after_us=wait_us)
        settings = Settings(keep_readings=True, lateness_us=LATENESS_S * SECOND_US)
        super().__init__(plan, size=size, seed=seed, faults=faults, settings=settings, terms=terms)
        self._drawn, self._reads_late = Random(seed), reads_late
        self.written: dict[WindowStart, list[WrittenRow]] = {}
        self.logs: dict[int, ControlLog] = {}
        self.last_set: dict[ControlPlace, str | None] = {}
        self.trouble: list[str] = []
        self._watch = LogWatch()

    @property
    def log(self) -> ControlLog:
        """All entries of the operator."""
        return self.world.operator.commands.control

    def say(
        self, parameter: str, scope: str, from_us: int, value: str | None, heard_in: int = 0
    ) -> None:
        """Set a parameter from a time on, for a device or for all (scope "").

        Where it is heard only in some steps, it is typed on a machine that reaches no broker until
        then.
        """
        operator, place = self.world.operator, ControlPlace(parameter, scope, from_us)
        self.last_set[place] = value
        entry = operator.set(place, value, self.now_us, knows_log=not heard_in)
        if heard_in:
            self.world.later(heard_in, lambda: operator.publish(entry))
        else:
            operator.publish(entry)

    def miss_entries(self, device: str, steps: int) -> None:
        """Let a device hear nothing of parameters for some steps, and all else."""
        self.devices[device].misses_entries_until = self.world.step_number + steps

    def lose_disk(self) -> None:
        """Let the gateway begin again, with nothing: its rows are gone, and devices send again."""
        self.befall("new_lake")
        self.written = {}

    def live(self, steps: int = 1) -> None:
        """Let devices measure, and time pass."""
        for _ in range(steps):
            for name, device in self.devices.items():
                if device.durable is not None and device.core.fence.lets_read:
                    self._measure(name)
            self.step()

    def _measure(self, name: str) -> None:
        drawn = self._drawn
        for _ in range(drawn.choice((0, 1, 1))):
            late_s = drawn.randrange(LATENESS_S)
            if self._reads_late and drawn.random() < 0.1:  # noqa: PLR2004 - a tenth
                late_s = drawn.randint(0, LATE_S)
            time_us = self.now_us - late_s * SECOND_US - drawn.randrange(SECOND_US)
            is_stamped = drawn.random() < 0.2  # noqa: PLR2004 - a fifth
            value, tags = drawn.randint(-300, 300) / 10, {"room": drawn.choice("ab")}
            self.read(name, READ, value, tags, None if is_stamped else time_us)

    def step(self, steps: int = 1) -> None:
        for _ in range(steps):
            super().step()
            self._look()

    def _look(self) -> None:
        """Note the new rows, and what the gateway knew when it wrote them."""
        log = self.lander.commands.control
        control = log.fingerprint()
        if control not in self.logs:
            self.logs[control] = log.copy()
        for at, rows in self.lander.revisions.items():
            written = self.written.setdefault(at, [])
            written += [WrittenRow(row, control) for row in rows[len(written) :]]
        for wrong in ends_otherwise(self.lander.core):
            raise AssertionError(wrong)
        self.trouble += self._watch.wrong(self.world.sinks[0])

    def settle(self, steps: int = 600) -> None:
        """End all faults and run until everything landed, and all rows are final.

        Raises:
            AssertionError: that did not happen.
        """
        super().settle(steps)
        for _ in range(SETTLE_STEPS):
            self.step()
            if self._is_over() and not self.rows(TENTATIVE, current=True):
                return
        raise AssertionError(f"not final: {self.rows(TENTATIVE, current=True)[:1]}")

    def _is_over(self) -> bool:
        """Return whether the gateway knows that no device will send anything more."""
        promises = self.lander.promises.entries
        return promises.keys() == self.devices.keys() and all(
            promise.done for promise in promises.values()
        )

    def rows(self, *statuses: str, current: bool = False) -> list[FleetRow]:
        """Return the rows that have a status, all or those that are current."""
        every = [rows[-1:] if current else rows for rows in self.written.values()]
        return [each.row for rows in every for each in rows if each.row.status in statuses]

    def found(self) -> dict[WindowStart, WindowTruth]:
        """Return what each window is in which some device has a reading."""
        current = {at: rows[-1].row for at, rows in self.written.items()}
        return {
            at: WindowTruth(row.partial, row.devices_in)
            for at, row in current.items()
            if row.devices_in
        }

    def truth(self, log: ControlLog | None = None) -> dict[WindowStart, WindowTruth]:
        """Return what each window is under a log, by the readings that were accepted until now."""
        known, readings = self.log if log is None else log, self.readings()
        return {
            WindowStart(name, *at): truth
            for name in self.plan.windows
            for at, truth in windows(self.plan, name, readings, known).items()
        }

    def readings(self) -> list[Reading]:
        """Return the accepted readings of all devices."""
        return [
            Reading(name, row["event"], row["value"], row["time_us"], row["tags"], stamped=True)
            for name, device in self.devices.items()
            if device.durable is not None
            for row in device.durable.store.readings()
        ]
