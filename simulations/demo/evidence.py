"""What there is to check at the end of a demo, and what a check says of one name."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from lasp_edge.language.plan import Plan
from simulations.demo.devices import Value
from simulations.demo.lake import Row
from simulations.demo.told import Told
from simulations.oracle import Reading


class Evidence(NamedTuple):
    """What there is to check.

    Attributes:
        values: what each device holds at the end, by device and name.
        readings: each device's accepted readings in the order of acceptance.
        globals: current rows of the lake's table of fleet-wide values, by name; None where a
            gateway kept the windows: it keeps no values.
        windows: current rows of the lake's table of windows, by name.
        lasted_s: how long the demo ran: no sample is older.
        silent_us: for how long each device had no connection when it was asked; those that had one
            need not be here.
        results: current rows of the lake's table of streams' results, by name; None where a gateway
            kept the windows.
        device_rows: by device and result, the last rows as each device has them.
        told: what an operator said of parameters.
        wait_s: for how long windows waited for devices; None where they did not.
        complete_us: since when all devices had been started.
        away_s: for how long each device was away after that, at most.
        revisions: by name, all revisions of the windows.
    """

    plan: Plan
    values: Mapping[str, Mapping[str, Value]]
    readings: Mapping[str, Sequence[Reading]]
    globals: Mapping[str, Sequence[Row]] | None
    windows: Mapping[str, Sequence[Row]]
    lasted_s: float
    silent_us: Mapping[str, int] = MappingProxyType({})
    results: Mapping[str, Sequence[Row]] | None = None
    device_rows: Mapping[str, Mapping[str, Sequence[Row]]] = MappingProxyType({})
    told: Sequence[Told] = ()
    wait_s: float | None = None
    complete_us: int = 0
    away_s: Mapping[str, float] = MappingProxyType({})
    revisions: Mapping[str, Sequence[Row]] = MappingProxyType({})

    def all_readings(self) -> list[Reading]:
        """Return the readings of all devices."""
        return [reading for of_device in self.readings.values() for reading in of_device]


class Finding(NamedTuple):
    """What a check found of one name; `ok` is as in `Verdict`."""

    ok: bool | None
    text: str


def holds(text: str) -> Finding:
    """Return that a check holds."""
    return Finding(ok=True, text=text)


def differs(text: str) -> Finding:
    """Return that a check found a difference."""
    return Finding(ok=False, text=text)


def count_of(evidence: Evidence, source: str) -> int:
    """Return how many readings of the agents' an event or a stream is made of."""
    stream = evidence.plan.streams.get(source)
    events = (source,) if stream is None else stream.events
    return sum(each.event in events and not each.retracted for each in evidence.all_readings())
