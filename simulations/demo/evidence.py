"""The evidence that a demo leaves: the devices' reports, and the output of commands.

Everything is as JSON has it: bytes are hexadecimal text.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from lasp_edge.language.plan import Plan
from simulations.demo.devices import Value
from simulations.demo.settings import Setting
from simulations.demo.site import Site
from simulations.oracle import Reading
from simulations.processes.process import now_s, stop

Row = Mapping[str, Any]
"""A row of a table, by column."""


class Evidence(NamedTuple):
    """All that there is to check.

    Attributes:
        values: of each device at the end, by device and name.
        readings: each device's accepted readings in the order of acceptance.
        measured: the lines of each simulated room's sensor, in order, by device.
        windows: all revisions of each window.
        globals: all revisions of each fleet-wide value; None where a gateway merges.
        results: all revisions of the rows of each stream's result; where a gateway merges, of those
            over the fleet, each as it stands.
        lasted_s: how long the demo ran: no sample is older.
        silent_us: for how long each device had no connection when it was asked; those that had one
            need not be here.
        settings: the parameters that an operator changed.
        wait_s: for how long windows waited for devices; None where they did not.
        complete_us: since when all devices had been started.
        away_s: for how long each device was away after that, at most.
        merger_away_s: for how long nobody merged, at most, after a start or a kill.
    """

    plan: Plan
    values: Mapping[str, Mapping[str, Value]]
    readings: Mapping[str, Sequence[Reading]]
    windows: Mapping[str, Sequence[Row]]
    globals: Mapping[str, Sequence[Row]] | None
    lasted_s: float
    measured: Mapping[str, Sequence[Row]] = MappingProxyType({})
    results: Mapping[str, Sequence[Row]] = MappingProxyType({})
    silent_us: Mapping[str, int] = MappingProxyType({})
    settings: Sequence[Setting] = ()
    wait_s: float | None = None
    complete_us: int = 0
    away_s: Mapping[str, float] = MappingProxyType({})
    merger_away_s: float = 0.0

    @classmethod
    def of(cls, site: Site) -> Self:
        """Return the evidence of a site where all is merged; its agents are ended."""
        devices, plan, cast = site.devices.values(), site.cast.plan, site.cast
        values = {device.name: device.values for device in devices}
        silent_us = {device.name: round(device.silent_s * 1_000_000) for device in devices}
        away_s = {device.name: device.away_s for device in devices}
        stop(device.process for device in devices)
        lines = site.ask(*(["readings", "--data-dir", each.data_dir] for each in devices))
        readings = dict(zip(values, ([_reading(line) for line in of] for of in lines), strict=True))
        in_lake = cast.has_spark
        return cls(
            plan,
            values,
            readings,
            _printed(site, "windows", plan.windows),
            _values(site) if in_lake else None,
            now_s() - site.began_s,
            {device.name: device.measured for device in devices if device.measured},
            _printed(site, "results", plan.stream_results if in_lake else plan.fleet_results),
            silent_us,
            tuple(site.settings),
            cast.wait_s,
            site.complete_us,
            away_s,
            site.merger.away_s,
        )

    def all_readings(self) -> list[Reading]:
        """Return the readings of all devices."""
        return [reading for of_device in self.readings.values() for reading in of_device]

    def count_of(self, source: str) -> int:
        """Return how many readings of the agents' an event or a stream is made of."""
        stream = self.plan.streams.get(source)
        events = (source,) if stream is None else stream.events
        return sum(each.event in events and not each.retracted for each in self.all_readings())


def newest(rows: Sequence[Row], *identity: str) -> list[Row]:
    """Return the rows of the greatest revision; several of one identity are all there.

    >>> newest([{"key": "a", "revision": 0}, {"key": "a", "revision": 1}], "key")
    [{'key': 'a', 'revision': 1}]
    """
    place = itemgetter(*identity)
    greatest = {place(row): row["revision"] for row in sorted(rows, key=itemgetter("revision"))}
    return [row for row in rows if row["revision"] == greatest[place(row)]]


class Finding(NamedTuple):
    """The outcome of a check of one name.

    Attributes:
        ok: whether it holds; None where there was nothing to check.
        text: the outcome with its numbers.
    """

    ok: bool | None
    text: str


def holds(text: str) -> Finding:
    """Return that a check holds."""
    return Finding(ok=True, text=text)


def differs(text: str) -> Finding:
    """Return that a check found a difference."""
    return Finding(ok=False, text=text)


def _printed(site: Site, command: str, names: Iterable[str]) -> dict[str, list[Row]]:
    """Return all revisions of each name, as a command prints them of the merger's folder."""
    where = ["--lake" if site.cast.has_spark else "--gateway", str(site.lake)]
    printed = site.ask(*([command, name, *where, "--json", "--all-revisions"] for name in names))
    return {
        name: [json.loads(line) for line in lines]
        for name, lines in zip(names, printed, strict=True)
    }


def _values(site: Site) -> dict[str, list[Row]]:
    """Return all revisions of each fleet-wide value in the lake, which one command prints."""
    (lines,) = site.ask(["globals", "--lake", str(site.lake), "--json", "--all-revisions"])
    found: dict[str, list[Row]] = {name: [] for name in site.cast.plan.dynamic_folds}
    for row in map(json.loads, lines):
        found[row["name"]].append(row)
    return found


def _reading(line: str) -> Reading:
    plain = json.loads(line)
    names = ("device", "event", "value", "time_us", "tags")
    reading = Reading(*(plain[name] for name in names))
    return reading._replace(retracted=plain.get("retracted", False))
