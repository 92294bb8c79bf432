"""Local events: bytes on the wire of the energy program, with readings that stay and that leave.

Run: `python -m simulations.benchmarks local_events`; it takes a minute or two of real time. Four
agents, each a `lasp-edge agent` as it is shipped, replay plugs of one house, 10 readings a second;
one of them has the slices, too. A `lasp-edge gateway` has the rows; the broker is mosquitto, and
each agent connects through a wire that counts the bytes of both directions, MQTT's own, beats and
acknowledgements included. The same readings are sent once as items and once as parts, and the rows
must be the same.

Beside: each reading as a message of JSON. Flumina's authors sent 29 GB of readings as 350 MB, 83
times less (Kallas, Niksic, Stanford and Alur, PPoPP 2022, section 4.3).
"""

import csv
import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from lasp_edge.protocol.sizes import reading_as_json_bytes
from simulations.benchmarks.measure import OURS, Line, at_least
from simulations.processes.broker import PrivateBroker
from simulations.processes.relay import Relay

DEVICES = ("plug-1", "plug-2", "plug-3", "plug-4")
READINGS, RATE_HZ = 600, 10
"""Readings of a device between two slices, and in a second."""
SLICES, QUICK_SLICES = 30, 5
FLUMINA, OVER_ITEMS, PLACE_BYTES = 83, 5, 290
"""Goals: JSON over ours; our items over ours; bytes a device and event in order, both ways."""
START_S, PATIENCE_S = 1_780_000_000, 900
PROGRAM = '''
from lasp_edge import Program, scans


class Load(scans.Synchronised):
    """The mean load of each slice, and a guess of the next one."""

    name, parts = "load", {"watts": "1", "next": "1"}
    zero = empty = (0, 0, ())
    depends = (("slice", "power"), ("slice", "slice"))

    def step(self, state, event):
        count, total, before = state
        if event.name == "power":
            return (count + 1, total + round(event.value), before), []
        now = total // max(count, 1)
        guess = (now + sum(before) // max(len(before), 1)) // 2
        return (0, 0, (*before, now)[-48:]), [(now, guess)]

    def join(self, state, part):
        return state[0] + part[0], state[1] + part[1], state[2]


def made(**more):
    program = Program("energy")
    power = program.event("power", resolution="1", unit="W")
    end = program.event("slice", resolution="1")
    found = program.scan(
        "load", source=[power, end], key=lambda event: event.tags["house"], scan=Load, **more
    )
    program.result(found)
    return program


sent, local = made(), made(local="power")
'''
Rows = dict[str, tuple[str, str]]


class SentRun(NamedTuple):
    """What a run has sent, and what came of it.

    Attributes:
        wire_bytes: of all devices, both directions.
        rows: by place.
    """

    wire_bytes: int
    rows: Rows


def record(folder: Path, slices: int) -> None:
    """Write what each device has read."""
    for device in DEVICES:
        random, lines = Random(device), []
        for number in range(slices * READINGS):
            at_s = START_S + number / RATE_HZ
            lines.append({"ts": at_s, "power": round(random.gauss(200, 60))})
            if device == DEVICES[0] and number % READINGS == READINGS - 1:
                lines.append({"ts": at_s + 0.5 / RATE_HZ, "slice": number // READINGS})
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"{device}.jsonl").write_text(text)


def run(folder: Path, broker: PrivateBroker, program: str, slices: int) -> SentRun:
    """Run agents and a gateway until all rows are final."""
    relays = {device: Relay(broker.port) for device in DEVICES}
    data, options = folder / program, ["--fleet", f"energy-{program}"]
    gateway = _start(
        folder,
        ["gateway", f"energy:{program}", "--broker", broker.url, "--data-dir", str(data / "gw")],
        [*options, "--dead-after", "600", "--roster", ",".join(DEVICES)],
    )
    agents = [
        _start(
            folder,
            ["agent", f"energy:{program}", "--device", device, "--data-dir", str(data / device)],
            ["--broker", f"mqtt://127.0.0.1:{relay.port}", "--source", f"jsonl:{device}.jsonl"],
            ["--time", "ts", "--with-tag", "house=h", "--interval", "1", *options],
        )
        for device, relay in relays.items()
    ]
    try:
        rows = _rows(folder, data / "gw", slices)
        return SentRun(sum(each.sent_bytes + each.received_bytes for each in relays.values()), rows)
    finally:
        for process in (*agents, gateway):
            process.terminate()
            process.wait()
        for relay in relays.values():
            relay.close()


def _start(folder: Path, *words: list[str]) -> subprocess.Popen[bytes]:
    line = [sys.executable, "-m", "lasp_edge", *(word for several in words for word in several)]
    return subprocess.Popen(  # noqa: S603 - our own command
        line, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _rows(folder: Path, data: Path, slices: int) -> Rows:
    """Return the rows once all are final."""
    line = [sys.executable, "-m", "lasp_edge", "results", "load", "--gateway", str(data), "--csv"]
    found = ""
    until_s = time.monotonic() + PATIENCE_S  # noqa: TID251 - processes take real time
    while time.monotonic() < until_s:  # noqa: TID251 - see above
        found = subprocess.run(  # noqa: S603 - our own command
            line, cwd=folder, capture_output=True, text=True, check=False
        ).stdout
        rows = list(csv.DictReader(io.StringIO(found)))
        if len(rows) == slices and all(row["status"] != "tentative" for row in rows):
            return {row["place"]: (row["watts_q"], row["next_q"]) for row in rows}
        time.sleep(1)
    raise TimeoutError(f"after {PATIENCE_S} s there are not {slices} final rows:\n{found}")


def table(*, quick: bool = False) -> Iterator[Line]:
    """Yield the lines of this benchmark."""
    slices = QUICK_SLICES if quick else SLICES
    with tempfile.TemporaryDirectory(prefix="local-", dir="/var/tmp") as directory:
        folder = Path(directory)
        (folder / "energy.py").write_text(PROGRAM)
        record(folder, slices)
        with PrivateBroker(folder / "broker") as broker:
            sent, local = (run(folder, broker, name, slices) for name in ("sent", "local"))
    assert sent.rows == local.rows, "local= changes no row"
    readings = slices * READINGS * len(DEVICES)
    as_json = readings * reading_as_json_bytes("energy", DEVICES[0], 200)
    what = f"bytes of {readings:,} readings of {len(DEVICES)} devices, {slices} slices"
    ratio, over_items = as_json / local.wire_bytes, sent.wire_bytes / local.wire_bytes
    a_place = local.wire_bytes / slices / len(DEVICES)
    yield Line(what, OURS, None, local.wire_bytes, "B", None, "", "readings stay, parts are sent")
    goal = at_least(over_items, OVER_ITEMS, "x")
    yield Line(what, "ours, items", None, sent.wire_bytes, "B", over_items, goal, "all are sent")
    goal = at_least(ratio, FLUMINA, "x")
    yield Line(what, "JSON", None, as_json, "B", ratio, goal, "a message a reading")
    note = f"<= {PLACE_BYTES} B of parts and shares alone; with beats, connections and all here"
    yield Line("bytes a device and event in order", OURS, None, a_place, "B", note=note)
