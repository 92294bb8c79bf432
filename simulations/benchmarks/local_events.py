"""Local events: bytes on the wire of the energy program, with readings that stay and that leave.

Run: `python -m simulations.benchmarks local_events`; it takes some minutes of real time. Four
agents, each a `lasp-edge agent` as it is shipped, replay plugs of one house, 600 readings a slice;
one of them has the slices, too. A `lasp-edge gateway` has the rows; the broker is mosquitto, and
each agent connects through a wire that counts the bytes of both directions, MQTT's own, beats and
acknowledgements included. The same readings are sent once as items and once as parts, and the rows
must be the same.

`local_live` has the same on virtual time, where beats count that a replay is too quick for.

How many readings a second that is, is printed of a longer run, with the start of the processes and
without it: a run of one slice beside takes as long to start, and to wait for the last promises. The
wires of all agents hold until each has connected, so they begin together, as in a fleet that is up.
Beside it a loop that parses the lines of all files and adds their values up, and does nothing else.

Beside: each reading as a message of JSON. Flumina's authors sent 29 GB of readings as 350 MB, 83
times less (Kallas, Niksic, Stanford and Alur, PPoPP 2022, section 4.3).
"""

import inspect
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from device_agent.gateway.result_table import found
from lasp_edge.errors import NotFound
from lasp_edge.protocol.sizes import reading_as_json_bytes
from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.tool.printing import RowsWanted
from simulations.benchmarks import energy
from simulations.benchmarks.energy_wire import READINGS
from simulations.benchmarks.measure import OURS, Line, at_least, cpu_s
from simulations.benchmarks.wiretap import Wiretap
from simulations.processes.broker import PrivateBroker
from simulations.processes.relay import Relay

DEVICES = ("plug-1", "plug-2", "plug-3", "plug-4")
RATE_HZ = 10
"""Readings of a device in a second, in the files that are replayed."""
SLICES, QUICK_SLICES = 60, 5
BARRIER_SLICES = 1_200
"""Slices of the run of which readings a second are printed: a gateway commits every two seconds, so
a run of one second would be mostly that."""
FLUMINA, OVER_ITEMS = 83, 5
"""Goals: JSON over ours; our items over ours."""
BARRIER_RATE = 200_000
"""The goal of readings a second on two cores, from files to final rows."""
PROGRAMS = energy.__name__
START_S, PATIENCE_S = 1_780_000_000, 900
LOOK_S = 0.2
"""Seconds between two looks at the gateway's rows: one takes some milliseconds."""
LEAST = 30
"""Kinds of frames are shown that take at least this part of the whole: one in 30."""
Rows = dict[str, tuple[str, str]]


class SentRun(NamedTuple):
    """What a run has sent, and what came of it.

    Attributes:
        sizes: bytes of all devices by direction and kind of frame, or of packet.
        rows: by place.
        cpu_s, wall_s: what the agents and the gateway have taken.
    """

    sizes: Mapping[str, int]
    rows: Mapping[Any, Any]
    cpu_s: float = 0.0
    wall_s: float = 0.0


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
    taps = {device: (Wiretap(), Wiretap()) for device in DEVICES}
    relays = {
        device: Relay(broker.port, sent=up.take, received=down.take)
        for device, (up, down) in taps.items()
    }
    for relay in relays.values():
        relay.hold()
    begun_s = time.monotonic()  # noqa: TID251 - processes take real time
    data, options = folder / program, ["--fleet", f"energy-{program}-{slices}"]
    gateway = _start(
        folder,
        ["gateway", f"{PROGRAMS}:{program}", "--broker", broker.url, "--data-dir", f"{data}/gw"],
        [*options, "--dead-after", "600", "--roster", ",".join(DEVICES)],
    )
    _wait_for((data / "gw").exists, "the gateway")
    agents = [
        _start(
            folder,
            [
                "agent",
                f"{PROGRAMS}:{program}",
                "--device",
                device,
                "--data-dir",
                f"{data}/{device}",
            ],
            ["--broker", f"mqtt://127.0.0.1:{relay.port}", "--source", f"jsonl:{device}.jsonl"],
            ["--time", "ts", "--with-tag", "house=h", "--interval", "1", *options],
        )
        for device, relay in relays.items()
    ]
    processes = (*agents, gateway)
    try:
        _wait_for(lambda: all(relay.accepted for relay in relays.values()), "agents to connect")
        for relay in relays.values():
            relay.restore()
        rows = _rows(data / "gw", slices)
        wall_s = time.monotonic() - begun_s  # noqa: TID251 - see above
        taken_s = sum(map(_cpu_s, processes))
        return SentRun(_sizes(taps.values()), rows, taken_s, wall_s)
    finally:
        for process in processes:
            process.terminate()
            process.wait()
        for relay in relays.values():
            relay.close()


def _sizes(taps: Iterable[tuple[Wiretap, Wiretap]]) -> Counter[str]:
    """Return bytes by direction and kind."""
    found = Counter[str]()
    for up, down in taps:
        for way, tap in (("sent", up), ("received", down)):
            found.update({f"{way} {kind}": size for kind, size in tap.sizes.items()})
    return found


def _start(folder: Path, *words: list[str]) -> subprocess.Popen[bytes]:
    line = [sys.executable, "-m", "lasp_edge", *(word for several in words for word in several)]
    return subprocess.Popen(  # noqa: S603 - our own command
        line, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _cpu_s(process: subprocess.Popen[bytes]) -> float:
    """Return what a process has taken so far."""
    times = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")


def _wait_for(is_so: Callable[[], bool], what: str) -> None:
    until_s = time.monotonic() + PATIENCE_S  # noqa: TID251 - processes take real time
    while not is_so():
        if time.monotonic() > until_s:  # noqa: TID251 - see above
            raise TimeoutError(f"waited {PATIENCE_S} s for {what}")
        time.sleep(LOOK_S)


def _shown(data: Path) -> list[dict[str, Any]]:
    """Return the rows of a gateway; none before it has begun."""
    with suppress(NotFound):
        columns, rows, _ = found(str(data), RowsWanted("load"))
        return [dict(zip(columns, row, strict=True)) for row in rows]
    return []


def _rows(data: Path, slices: int) -> Rows:
    """Return the rows once all are final."""

    def are_final() -> bool:
        statuses = [row["status"] for row in _shown(data)]
        return len(statuses) == slices and TENTATIVE not in statuses

    _wait_for(are_final, f"{slices} final rows")
    return {row["place"]: (row["watts_q"], row["next_q"]) for row in _shown(data)}


def table(*, quick: bool = False) -> Iterator[Line]:
    """Yield the lines of this benchmark."""
    slices, many = (QUICK_SLICES, 2 * QUICK_SLICES) if quick else (SLICES, BARRIER_SLICES)
    with tempfile.TemporaryDirectory(prefix="local-", dir="/var/tmp") as directory:
        folder, brief, long = (Path(directory) / name for name in ("", "brief", "long"))
        for where, count in ((folder, slices), (brief, 1), (long, many)):
            where.mkdir(exist_ok=True)
            record(where, count)
        with PrivateBroker(folder / "broker") as broker:
            start, barrier = (run(f, broker, "local", n) for f, n in ((brief, 1), (long, many)))
            sent, local = (run(folder, broker, name, slices) for name in ("sent", "local"))
        bare_s = cpu_s(_bare, lambda: long, rounds=2)
    yield from lines("real agents", slices, sent, local, goals=True)
    yield from _rate_lines(many, barrier, start, bare_s)
    yield _program_line()


def lines(how: str, slices: int, sent: SentRun, local: SentRun, *, goals: bool) -> Iterator[Line]:
    """Yield the lines of two runs over the same readings."""
    assert sent.rows == local.rows, "local= changes no row"
    readings = slices * READINGS * len(DEVICES)
    as_json = readings * reading_as_json_bytes("energy", DEVICES[0], 200)
    ours, items = sum(local.sizes.values()), sum(sent.sizes.values())
    what = f"{how}: bytes of {readings:,} readings of {len(DEVICES)} devices, {slices} slices"
    yield Line(what, OURS, None, ours, "B", None, "", "readings stay, parts are sent")
    goal = at_least(items / ours, OVER_ITEMS, "x") if goals else ""
    yield Line(what, "ours, items", None, items, "B", items / ours, goal, "all are sent")
    goal = at_least(as_json / ours, FLUMINA, "x") if goals else ""
    yield Line(what, "JSON", None, as_json, "B", as_json / ours, goal, "a message a reading")
    of_slice = f"{how}: bytes of these a device and slice"
    yield Line(of_slice, OURS, None, ours / slices / len(DEVICES), "B")
    for kind, size in sorted(local.sizes.items(), key=lambda each: -each[1]):
        if size * LEAST > ours:
            yield Line(of_slice, kind, None, size / slices / len(DEVICES), "B")


def _rate_lines(slices: int, local: SentRun, start: SentRun, bare_s: float) -> Iterator[Line]:
    """Yield how many readings a second come from files to final rows: a value barrier."""
    of_slice = READINGS * len(DEVICES)
    readings, more = slices * of_slice, (slices - 1) * of_slice
    what = f"real agents: readings a second, {readings:,} from files to final rows"
    rate = more / (local.wall_s - start.wall_s)
    note = "local; beyond the time of one slice, in which five processes start"
    yield Line(what, OURS, None, rate, "/s", None, at_least(rate, BARRIER_RATE, "/s"), note)
    note = "local; with the start of five processes, and until the rows are seen"
    yield Line(what, OURS, None, readings / local.wall_s, "/s", None, "", note)
    rate, bare = more / (local.cpu_s - start.cpu_s), readings / bare_s
    of_cpu = f"{what}, of CPU"
    yield Line(of_cpu, OURS, None, rate, "/s", None, "", "local; beyond the CPU of one slice")
    note = "parses the same lines, and adds their values up"
    yield Line(of_cpu, "bare loop", None, bare, "/s", rate / bare, "", note)


def _bare(folder: Path) -> int:
    """Parse all lines, and add up their values."""
    total = 0
    for device in DEVICES:
        with (folder / f"{device}.jsonl").open() as lines_:
            for line in lines_:
                total += json.loads(line).get("power", 0)
    return total


def _program_line() -> Line:
    """Return the line of what a program states of its distribution."""
    own = [name for name in ("empty", "depends", "join") if name in vars(energy.Load)]
    lines = len(inspect.getsource(energy.Load).splitlines())
    note = f"{', '.join(own)}, in a scan of {lines} lines; and the word local="
    return Line("definitions for the distribution", OURS, None, len(own), "", None, "", note)
