"""A stand-in for `lasp-edge` that gossips over a folder: the demo's own parts, tested alone.

Each agent connects to its broker's port with a bare MQTT CONNECT and writes the readings of its
room beside those of the others; the fleet's average is read off all of them. `windows` and
`globals` print what is right of them. FAKE_LASP_EDGE=NAME,NAME breaks these things, so
that a check must see each of them.
"""

import json
import os
import select
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from crdts import ControlLog, decode, encode
from lasp_edge.language.declarations import Window
from lasp_edge.tool.loading import load_plan
from lasp_edge.tool.times import read_time
from simulations.demo.program import program
from simulations.oracle import Reading, dynamic_partials, windows

PLAN = program.plan()
BROKEN = frozenset(os.environ.get("FAKE_LASP_EDGE", "").split(","))
CONNECT = b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00"


def stage() -> Path:
    """Return the demo's own folder, where the devices are."""
    return next(Path(tempfile.gettempdir()).glob("lasp-edge-demo-*"))


def option(name: str, otherwise: str = "") -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else otherwise


def readings_of(data_dir: Path) -> list[dict]:
    file = data_dir / "readings"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def fleet(folder: Path) -> dict[str, list[Reading]]:
    found: dict[str, list[Reading]] = {}
    for data_dir in sorted(folder.glob("device-*")):
        for r in readings_of(data_dir):
            reading = Reading(r["device"], r["event"], r["value"], r["time_us"], r["tags"])
            found.setdefault(r["device"], []).append(reading)
    return found


def global_average(folder: Path) -> dict:
    count, total = dynamic_partials(PLAN, "global_average", fleet(folder))[""]
    mean = total / count * 0.01 if count else None
    return {"parts": {"mean": mean}, "count": count, "total_q": total, "inputs": f"{total:016x}"}


class Agent:
    """Takes readings and reports as often as the demo looks."""

    def __init__(self) -> None:
        self.data_dir = Path(option("--data-dir"))
        self.data_dir.mkdir(exist_ok=True)
        self.device = option("--device")
        self.done = False
        self.socket: socket.socket | None = None
        signal.signal(signal.SIGUSR1, self.stop_sources)

    def stop_sources(self, *_: object) -> None:
        self.done = True

    def run(self) -> None:
        while True:
            self.keep_connected()
            self.take()
            self.report()
            time.sleep(0.2)

    def keep_connected(self) -> None:
        try:
            if self.socket is None:
                port = urlsplit(option("--broker")).port
                self.socket = socket.create_connection(("127.0.0.1", port), timeout=1)
                self.socket.sendall(CONNECT)
            if select.select([self.socket], [], [], 0)[0] and not self.socket.recv(100):
                self.socket = None
        except OSError:
            self.socket = None

    def take(self) -> None:
        """Accept what the room's sensor has written meanwhile."""
        with (self.data_dir / "readings").open("a") as file:
            while select.select([sys.stdin], [], [], 0)[0] and (line := sys.stdin.readline()):
                reading = {"device": self.device, "event": "room_temperature", "tags": {}}
                value = json.loads(line)["room_temperature"]
                now_us = time.time_ns() // 1000  # noqa: TID251
                file.write(json.dumps(reading | {"value": value, "time_us": now_us}) + "\n")

    def report(self) -> None:
        held = readings_of(self.data_dir)
        own = {"parts": {"mean": 7.0}, "count": 1, "total_q": 700}
        every = global_average(self.data_dir.parent)
        if "a" in BROKEN and self.device == "cellar":
            every |= {"total_q": every["total_q"] + 1}
        if "crash" in BROKEN and self.device == "cellar" and len(held) > 5:
            raise SystemExit("the disk is full")
        counts = {"accepted": len(held), "repeated": 0, "late": 0, "too_late": 0, "refused": 0}
        every |= {"settled": self.done, "except": [], "devices": 5}
        state = {"dirty": 0, "others": 4, "connected": self.socket is not None, "done": self.done}
        values = {"local_average": own, "global_average": every}
        print(json.dumps({"device": self.device, **counts, **state, "values": values}), flush=True)


def cloud() -> None:
    """Say that it is ready; end once no device has measured anything new for a while."""
    if "java" in BROKEN:
        print(
            "lasp-edge cloud: there is no Java; to bring it, type: pip install x", file=sys.stderr
        )
        sys.exit(4)
    print("Spark is ready", flush=True)
    if "hasty" in BROKEN and not (ended := stage() / "ended").exists():
        ended.touch()
        return
    before = None
    while before != (before := {d: len(r) for d, r in fleet(stage()).items()}) or not before:
        time.sleep(1.0)
    Path(option("--lake")).mkdir(exist_ok=True)


def print_windows(window: Window) -> None:
    every = [reading for readings in fleet(stage()).values() for reading in readings]
    found = windows(PLAN, window.name, every, settings()).items()
    for (key, start_us), truth in list(found)["d" in BROKEN :]:
        columns = dict(zip(window.fold.columns_named, truth.partial, strict=True))
        times = {"key": key, "start_us": start_us, "end_us": start_us + window.size_us}
        counts = {"devices_in": truth.devices_in, "devices_expected": 5}
        state = {"status": "final", "revision": 0, "excluded": ""}
        parts = window.fold.lower(truth.partial, window.resolution)
        print(json.dumps({**times, **parts, **columns, **counts, **state}))


def print_globals() -> None:
    row = global_average(stage()) | {"name": "global_average", "key": "", "devices_in": 5}
    row |= {"inputs": "0" * 16} if "c" in BROKEN else {}
    print(json.dumps(row | {"revision": 0}))


def settings() -> ControlLog:
    """Return the settings of the operator."""
    file = stage() / "settings"
    return decode(file.read_bytes()) if file.exists() else ControlLog()


def set_parameter(setting: str) -> None:
    """Keep a setting of the operator."""
    (name, _, value), device, log = setting.partition("="), option("--device"), settings()
    for since, text in ((option("--from"), value), (option("--until"), "")):
        if since:
            log |= log.set(name, device, read_time(since), text, "ann")
    (stage() / "settings").write_bytes(encode(log))
    print("Known on 5 of 5 devices.")


def main() -> None:
    command, data_dir = sys.argv[1], Path(option("--data-dir", "."))
    if command == "agent":
        load_plan(sys.argv[2])
        Agent().run()
    elif command == "cloud":
        cloud()
    elif command == "set":
        set_parameter(sys.argv[3])
    elif command == "readings":
        for reading in readings_of(data_dir)[: -1 if "b" in BROKEN else None]:
            print(json.dumps(reading))
    elif command == "windows":
        print_windows(PLAN.windows[sys.argv[2]])
    elif command == "globals":
        print_globals()


if __name__ == "__main__":
    main()
