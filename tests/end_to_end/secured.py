"""Fleets of real processes: at an open broker, and at one that the command configures."""

import argparse
import contextlib
import csv
import io
import json
import os
import pwd
import runpy
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from random import Random

from lasp_edge.link import BrokerUrl, Link, TlsFiles
from lasp_edge.protocol.topics import Topics
from lasp_edge.tool import broker_command
from simulations.oracle import Reading, windows
from simulations.processes.broker import PrivateBroker
from tests.brokers import Mosquitto, broker_program, free_port, until_true
from tests.device_agent.support_stage import MAIN, NAME, PROGRAM, asked, typed
from tests.support_missing import lacks

DEVICES = ("kitchen", "attic")
GATEWAY = "gateway"
START_S = 1_600_000_000


class Processes(ABC):
    """A directory with a program, the processes of a fleet, and links that tests use.

    Args:
        directory: receives everything.
    """

    broker: PrivateBroker

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / f"{NAME}.py").write_text(PROGRAM.format(name=NAME))
        self.topics = Topics(NAME)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._links: list[Link] = []

    @abstractmethod
    def login(self, user: str) -> list[str]:
        """Return the options with which a program reaches the broker as a user."""

    @abstractmethod
    def url(self, user: str | None) -> BrokerUrl:
        """Return the broker's address for a user; None for somebody who does not log in."""

    def link(self, user: str | None, client_id: str = "", **options: object) -> Link:
        """Start a link as a user; None for somebody who does not log in."""
        options.setdefault("jitter", Random(1))
        link = Link(self.url(user), client_id=client_id or self._fresh_id(user), **options)
        link.start()
        self._links.append(link)
        return link

    def _fresh_id(self, user: str | None) -> str:
        """Return a client's name that no other link here has: the broker ends the older of two."""
        return f"test-{user}-{len(self._links)}"

    def process(self, name: str, *words: object) -> subprocess.Popen[bytes]:
        """Start a `lasp-edge` command; its output goes into NAME.out, NAME.err."""
        line = [sys.executable, "-c", MAIN, *map(str, words)]
        out, err = ((self.directory / f"{name}.{end}").open("ab") for end in ("out", "err"))
        self._processes.append(subprocess.Popen(line, cwd=self.directory, stdout=out, stderr=err))
        return self._processes[-1]

    def agent(self, device: str, *more: object, values: int = 200) -> subprocess.Popen[bytes]:
        """Start an agent on a recorded file of its own."""
        path = self.directory / f"{device}.jsonl"
        rows = [{"ts": at, "temperature": value} for at, value in recorded(device, values)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        words = [
            "agent",
            f"{NAME}:program",
            "--device",
            device,
            "--data-dir",
            self.directory / device,
        ]
        words += [
            "--source",
            f"jsonl:{path}",
            "--time",
            "ts",
            "--report",
            "0.2",
            "--interval",
            "0.3",
        ]
        return self.process(device, *words, *(more or self.login(device)))

    def gateway(self, name: str) -> subprocess.Popen[bytes]:
        """Start a gateway, which logs in under its name and keeps its windows in a folder of it."""
        words = ["gateway", f"{NAME}:program", "--name", name, "--data-dir", self.directory / name]
        words += ["--commit-every", "0.2", "--results", "0.2"]
        return self.process(name, *words, *self.login(name))

    def kept(self, gateway: str) -> dict[tuple[str, int], tuple[int, int]]:
        """Return count and sum of a gateway's windows by key and start; of one that runs, too."""
        words = ("windows", "warm", "--gateway", self.directory / gateway, "--csv")
        rows = csv.DictReader(io.StringIO(asked(*words)))
        return {
            (row["key"], int(row["start_us"])): (int(row["count"]), int(row["total_q"]))
            for row in rows
        }

    def true_windows(self, *devices: str) -> dict[tuple[str, int], tuple[int, ...]]:
        """Return the same of all windows of these devices' files, by brute force."""
        plan = runpy.run_path(str(self.directory / f"{NAME}.py"))["program"].plan()
        readings = [
            Reading(device, "temperature", value, at * 1_000_000)
            for device in devices
            for at, value in recorded(device)
        ]
        return {at: truth.partial for at, truth in windows(plan, "warm", readings).items()}

    def report(self, device: str) -> dict:
        """Return the newest report of an agent; empty before the first."""
        *lines, _ = (self.directory / f"{device}.out").read_text().split("\n")
        return json.loads(lines[-1]) if lines else {}

    def errors(self, name: str) -> str:
        """Return what a process wrote to its standard error."""
        return (self.directory / f"{name}.err").read_text()

    def status(self, device: str) -> dict:
        """Return what `lasp-edge status --json` says of an agent."""
        words = ["status", "--data-dir", self.directory / device, "--json"]
        return json.loads(asked(*words))

    def command(self, *words: object) -> str:
        """Run a command to its end, in this process, and return what it printed."""
        path = sys.path[:]
        sys.modules.pop(NAME, None)  # another fleet's program
        try:
            with contextlib.chdir(self.directory):
                done = typed(*words)
        finally:
            sys.modules.pop(NAME, None)
            sys.path[:] = path
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def agreed(self, *devices: str) -> bool:
        """Return whether these devices hold the same, have landed everything and know it."""
        reports = [self.report(device) for device in devices]
        values = [report.get("values", {}).get("global_average", {}) for report in reports]
        settled = all(value.get("settled") and not value["except"] for value in values)
        whole = all(value.get("devices") == len(devices) for value in values)
        return settled and whole and all(report["done"] for report in reports)

    def wait(self, condition) -> None:
        """Wait until something is the case."""
        until_true(condition)

    def end_links(self) -> None:
        """End all links that were started."""
        for link in self._links:
            link.stop(0.0)

    def close(self) -> None:
        """End everything that was started."""
        self.end_links()
        for process in self._processes:
            process.kill()
            process.wait()
        self.broker.stop()


class OpenFleet(Processes):
    """A fleet at a broker that lets in everybody."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.broker = PrivateBroker(directory / "run", broker_program("mosquitto")).start()

    def login(self, user: str) -> list[str]:
        return ["--broker", self.broker.url]

    def url(self, user: str | None) -> BrokerUrl:
        return BrokerUrl.parse(self.broker.url)


class SecuredFleet(Processes):
    """A fleet at a hardened broker, to which everybody logs in.

    Args:
        directory: receives everything.
        certificates: participants show certificates; else they give passwords.
        more: further options of `lasp-edge broker config`.
    """

    def __init__(self, directory: Path, *more: str, certificates: bool = False) -> None:
        need_commands("openssl", "mosquitto_passwd")
        super().__init__(directory)
        self.certificates = certificates
        self.files = directory / "broker"
        self.port = free_port()
        self.printed = self._configure(*more, *(["--certificates"] if certificates else []))
        set_up(self.printed, directory)
        text = (self.files / "mosquitto.conf").read_text()
        self.broker = Mosquitto(directory / "run", text, self.port).start()

    def _configure(self, *more: str) -> list[str]:
        parser = argparse.ArgumentParser()
        broker_command.add_arguments(parser)
        words = ["config", "--fleet", NAME, "--dir", str(self.files), "--port", str(self.port)]
        words += [word for device in DEVICES for word in ("--device", device)]
        words += ["--lander", "lander", "--lander", GATEWAY]
        words += ["--viewer", "screen", "--data", str(self.directory / "data")]
        words += ["--account", pwd.getpwuid(os.geteuid()).pw_name]
        printed = self.directory / "printed"
        (self.directory / "data").mkdir()
        with printed.open("w") as file, contextlib.redirect_stdout(file):
            assert broker_command.run(parser.parse_args([*words, *more])) == 0
        return printed.read_text().splitlines()

    def login(self, user: str) -> list[str]:
        """Return the options with which a program logs in as a user."""
        words = [
            "--broker",
            f"mqtts://localhost:{self.port}",
            "--ca-file",
            str(self.files / "ca.pem"),
        ]
        if self.certificates:
            mine = (self.files / f"{user}.pem", self.files / f"{user}.key")
            return [*words, "--certificate", str(mine[0]), "--key", str(mine[1])]
        file = self.directory / f"{user}.login"
        file.write_text(f"{user}\n{password(user)}\n")
        file.chmod(0o600)
        return [*words, "--login", str(file)]

    def url(self, user: str | None) -> BrokerUrl:
        files = TlsFiles(str(self.files / "ca.pem"))
        broker = BrokerUrl("localhost", self.port, tls=True, files=files)
        if user is None:
            return broker
        if self.certificates:
            mine = [str(self.files / f"{user}.{end}") for end in ("pem", "key")]
            return broker._replace(files=TlsFiles(files.authority, *mine))
        return broker._replace(user=user, password=password(user))


def recorded(device: str, values: int = 200) -> list[tuple[int, float]]:
    """Return what a device's file holds: seconds and values."""
    random = Random(device)
    return [(START_S + number, round(random.uniform(15, 30), 2)) for number in range(values)]


def password(user: str) -> str:
    """Return a user's password."""
    return f"secret of {user}"


def need_commands(*commands: str) -> None:
    """Skip where one of these is not installed."""
    for command in commands:
        if not shutil.which(command):
            lacks(f"{command} is not installed")


def set_up(printed: list[str], directory: Path) -> None:
    """Type what `lasp-edge broker config` printed, and the passwords that it asks for."""
    lines = []
    for line in printed:
        if line.startswith("mosquitto_passwd "):
            name = line.split("'")[1]
            line = f"mosquitto_passwd -b passwords '{name}' '{password(name)}'"  # noqa: PLW2901
        lines.append(line)
    script = "\n".join(["set -e", *lines])
    subprocess.run(["sh", "-c", script], check=True, capture_output=True, cwd=directory)
