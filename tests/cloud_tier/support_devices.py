"""A small fleet's history as landing rows, made from readings with none of the cloud's own code."""

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from cloud_tier.lake.tables import ABSENT, landed_schema
from crdts import BoundedLWWSet, Version
from lasp_edge import Program, folds
from lasp_edge.language.declarations import Event
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.inputs import entry_hash, inputs_digest, variable_digest
from simulations.oracle import Reading, dynamic_partials, local_partials, windows

SECOND_US = 1_000_000
BEGIN_US = 1_700_000_000 * SECOND_US - 20 * SECOND_US
"""Readings begin here, twenty seconds before a round number of seconds."""

Row = dict[str, Any]


def rooms() -> Plan:
    """The plan of `rooms_program`."""
    return rooms_program().plan()


def rooms_program() -> Program:
    """A program with keys, several windows on one event, an odd window, and a dynamic fold."""
    program = Program("rooms")
    temperature = program.event("temperature", resolution="0.01", unit="°C")
    samples = program.declare_dynamic(BoundedLWWSet(bound=5), "samples")
    program.collect(temperature, into=samples)
    program.fold_dynamic(program.fold(samples, folds.mean(), "local_average"), "global_average")

    def room(event: Event) -> str:
        return event.tags["room"]

    mean = folds.mean()
    program.window("by_room", source=temperature, fold=mean, size_s=60, slide_s=10, key=room)
    program.window(
        "odd",
        source=temperature,
        fold=folds.struct(min=folds.min(), max=folds.max(), n=folds.count()),
        size_s=50,
        slide_s=20,
    )
    program.window("totals", source=temperature, fold=folds.sum(), size_s=30)
    return program


def readings_of(seed: int, devices: int = 3, each: int = 12, last_s: int = 150) -> list[Reading]:
    """Return readings of a fleet in the order of acceptance, their own times in no order."""
    draw = random.Random(seed)
    return [
        Reading(
            f"pi-{device}",
            "temperature",
            draw.randrange(-5_00, 40_00) / 100,
            BEGIN_US + draw.randrange(last_s * SECOND_US),
            {"room": draw.choice(["attic", "cellar"])},
        )
        for _ in range(each)
        for device in range(devices)
    ]


class Device:
    """One device: pane partials of each life, versions, promises.

    Args:
        program: what it runs.
        name: its name.
    """

    def __init__(self, program: Plan, name: str) -> None:
        self.program = program
        self.name = name
        self.readings: list[Reading] = []
        self.incarnation = 0
        self.start()

    def start(self) -> None:
        """Begin another life: new identity, no panes of its own."""
        self.incarnation += 1
        self.nonce = random.Random(f"{self.name} {self.incarnation}").getrandbits(32)
        self.seq = 0
        self.panes: dict[tuple[int, str, int], Any] = {}

    def accept(self, readings: Iterable[Reading]) -> list[Row]:
        """Return the rows of the pane entries that these readings change, and of the variable."""
        changed = set()
        for reading in readings:
            self.readings.append(reading)
            changed |= {self._add(window, reading) for window in self.program.windows.values()}
        return [self._pane(at) for at in sorted(changed)] + [self.variable()]

    def promise(self, low_us: int | None, heard_us: int, *, done: bool = False) -> Row:
        """Return the row of a beat."""
        self.seq += 1
        promise = {"low_us": low_us, "done": done, "received_us": heard_us}
        return row("promise", self.name, self.incarnation, self.nonce, self.seq, **promise)

    def _add(self, window: Any, reading: Reading) -> tuple[int, str, int]:
        quantised = round(reading.value * 100)
        event = Event(reading.event, reading.value, reading.time_us, self.name, reading.tags)
        key = self.program.functions.key(window.name, event)
        at = (window.stream, key, reading.time_us // window.span_us * window.span_us)
        lifted = window.fold.lift(quantised, reading.time_us)
        self.panes[at] = window.fold.combine(self.panes.get(at, window.fold.zero), lifted)
        return at

    def _pane(self, at: tuple[int, str, int]) -> Row:
        stream, key, pane_us = at
        self.seq += 1
        folds_ = {window.stream: window.fold for window in self.program.windows.values()}
        parts = dict(zip(folds_[stream].columns_named, self.panes[at], strict=True))
        where = {"stream": stream, "key": key, "pane_us": pane_us}
        return row("pane", self.name, self.incarnation, self.nonce, self.seq, **where, **parts)

    def variable(self) -> Row:
        """Return the row of its entry of the variable."""
        self.seq += 1
        local = self.program.published_folds["local_average"]
        partial = local_partials(self.program, local.name, self.readings)[""]
        parts = dict(zip(local.fold.columns_named, partial, strict=True))
        self.entry = (self.name, Version(self.incarnation, self.nonce, self.seq), partial)
        return row("variable", *self.entry[:1], *self.entry[1], stream=local.stream, **parts)


def row(kind: str, device: str, incarnation: int, nonce: int, seq: int, **columns: Any) -> Row:
    """Return a landing row."""
    named = {"kind": kind, "device": device, "incarnation": incarnation, "nonce": nonce, "seq": seq}
    filled = {**ABSENT, "received_us": BEGIN_US}
    return filled | {"changed": seq if kind == "variable" else None} | named | columns


def tick(number: int, now_us: int, since_us: int = BEGIN_US) -> Row:
    """Return the row of a lander's clock."""
    return row(
        "tick",
        "",
        0,
        0,
        number,
        lander="lander",
        now_us=now_us,
        since_us=since_us,
        received_us=now_us,
    )


def history(program: Plan, readings: Iterable[Reading], seed: int = 0) -> list[Row]:
    """Return all rows that a fleet sends: every device restarts once, in the middle."""
    of_device: dict[str, list[Reading]] = defaultdict(list)
    for reading in readings:
        of_device[reading.device].append(reading)
    rows, draw = [], random.Random(seed)
    for name, own in of_device.items():
        device = Device(program, name)
        half = len(own) // 2
        for start in range(0, len(own), 3):
            if start >= half > 0:
                half = 0
                device.start()
            rows += device.accept(own[start : start + 3])
            rows.append(device.promise(BEGIN_US + draw.randrange(60) * SECOND_US, BEGIN_US))
    return rows


def table(program: Plan, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Return rows as Arrow, as the lander writes them."""
    own = (program.stream_results.values(), program.parameters, program.item_streams.values())
    schema = landed_schema(program.columns, *own)
    return pa.Table.from_pylist(list(rows), schema=schema)


def true_windows(
    program: Plan, readings: list[Reading]
) -> dict[tuple[str, str, int], tuple[Any, ...]]:
    """Return (window, key, start) -> (integers of the partial, devices in)."""
    return {
        (name, key, start_us): (truth.partial, truth.devices_in)
        for name in program.windows
        for (key, start_us), truth in windows(program, name, readings).items()
    }


def true_global(program: Plan, devices: Iterable[Device]) -> tuple[Any, str]:
    """Return the global average's integers and its `inputs`, from the devices' own entries."""
    fold = program.dynamic_folds["global_average"]
    entries = [device.entry for device in devices]
    hashes = [entry_hash("", name, version, partial) for name, version, partial in entries]
    held = {device.name: device.readings for device in devices}
    return (
        dynamic_partials(program, fold.name, held)[""],
        inputs_digest(variable_digest(hashes), fold.stream),
    )
