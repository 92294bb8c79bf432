"""Pictures of a small fleet at work: `python -m simulations.picture DIRECTORY`.

The installed commands do the work, as a user would type them: a private broker, an agent for each
of five rooms (greenhouse, the program of README.md, with an alert), a gateway and the page. One
room is silent for a while, and one agent is killed before the pictures are taken, so that one sees
how a gap and a device that is away are shown. The readings are drawn from a seed; the times are
those of the clock. Debian's Chromium draws the page, on a desk and on a phone, and `lasp-edge plot`
the gateway's windows.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Final

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from lasp_edge.errors import EnvironmentLacks
from simulations.processes.broker import PrivateBroker

PROGRAM: Final = """
from lasp_edge.examples.greenhouse import global_average, program

program.alert("too warm", global_average, above=20, below=19.5)
"""
ROOMS: Final = {"attic": 24.6, "bedroom": 19.4, "cellar": 15.1, "kitchen": 22.6, "office": 20.9}
"""Degrees Celsius about which the temperature of each room wanders."""
COMMAND: Final = (sys.executable, "-m", "lasp_edge")
READING_S: Final = 0.5
FIRST_S: Final = 8
"""Seconds of measuring before the page is opened."""
AWAY_S: Final = 12
"""Seconds before the picture at which the last agent is killed."""
SILENT_S: Final = 100
"""Seconds for which one room is silent: its windows of a minute have no readings then."""
VIEWS: Final = {"dashboard": (1120, 1500, 1.0), "dashboard-phone": (390, 844, 1.5)}
"""Picture -> pixels of the browser's window, and how many are drawn for each."""
COLOURS: Final = 128
"""Colours of a picture, so that it is small; a page has few."""
DRAWN_S: Final = 5
"""How long the browser waits for what the page receives."""


def main() -> None:
    """Run a fleet for some time, and save how it is shown."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--seconds", type=int, default=200, help="of measuring (%(default)s)")
    arguments = parser.parse_args()
    with ExitStack() as ending:
        folder = Path(ending.enter_context(tempfile.TemporaryDirectory()))
        (folder / "house.py").write_text(PROGRAM)
        broker = ending.enter_context(PrivateBroker(folder / "broker"))
        started = PicturedFleet(folder, ending, ("house:program", "--broker", broker.url))
        agents = [started.agent(room) for room in ROOMS]
        started.command("gateway", "--data-dir", "gateway", "--roster", ",".join(ROOMS))
        rooms = Rooms(agents)
        rooms.measure(FIRST_S)
        page = started.command("dashboard", "--port", "0")
        rooms.measure(arguments.seconds / 2)
        rooms.measure(SILENT_S, silent=("cellar",))
        rooms.measure(arguments.seconds / 2)
        agents[-1].kill()
        rooms.measure(AWAY_S, silent=(list(ROOMS)[-1],))
        assert page.stdout is not None
        _photograph(page.stdout.readline().split()[2], arguments.directory)
        _plot(folder, arguments.directory.absolute() / "plot.png")


def _photograph(url: str, directory: Path) -> None:
    """Open a page in a browser without a window, and save the first screen of each view."""
    driver = shutil.which("chromedriver")
    if driver is None:
        raise EnvironmentLacks("no Chromium here", "sudo apt install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    root = ["--no-sandbox"] if os.geteuid() == 0 else []  # root has none
    for word in ("--headless=new", "--disable-gpu", "--hide-scrollbars", *root):
        options.add_argument(word)
    browser = webdriver.Chrome(options=options, service=Service(driver))
    try:
        for name, (width, height, scale) in VIEWS.items():
            shape = {"width": width, "height": height, "deviceScaleFactor": scale}
            shape |= {"mobile": scale > 1}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)
            browser.get(url)
            time.sleep(DRAWN_S)
            file = directory / f"{name}.png"
            browser.save_screenshot(str(file))
            _make_small(file)
    finally:
        browser.quit()


def _plot(folder: Path, file: Path) -> None:
    words = ("temperature_by_room", "--gateway", "gateway", "-o", str(file))
    subprocess.run([*COMMAND, "plot", *words], cwd=folder, check=True)  # noqa: S603 - our own
    _make_small(file)


def _make_small(file: Path) -> None:
    image = Image.open(file).convert("RGB")
    image.quantize(COLOURS).save(file, optimize=True)


class PicturedFleet:
    """The commands of one fleet; they are killed in the end.

    Args:
        folder: where they run.
        ending: ends them.
        common: the program and the broker.
    """

    def __init__(self, folder: Path, ending: ExitStack, common: tuple[str, ...]) -> None:
        self._folder, self._ending, self._common = folder, ending, common

    def agent(self, room: str) -> subprocess.Popen[str]:
        """Start the agent of a room."""
        source = ("--source", "stdin", "--tag", "room=room", "--interval", "2", "--results", "5")
        return self.command("agent", "--device", room, "--data-dir", room, *source)

    def command(self, name: str, *words: str) -> subprocess.Popen[str]:
        """Start a command."""
        running = subprocess.Popen(  # noqa: S603 - our own command
            [*COMMAND, name, *self._common, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=self._folder,
        )
        self._ending.callback(running.wait)
        self._ending.callback(running.kill)
        return running


class Rooms:
    """The temperature of each room, which wanders about its mean; all follow the same weather."""

    def __init__(self, agents: list[subprocess.Popen[str]]) -> None:
        self._agents, self._chance = agents, Random(7)
        self._warm = dict(ROOMS)

    def measure(self, seconds: float, silent: Collection[str] = ()) -> None:
        """Give each agent, but those of silent rooms, two readings a second."""
        each = zip(ROOMS.items(), self._agents, strict=True)
        fed = [(at, agent) for at, agent in each if at[0] not in silent]
        for _ in range(round(seconds / READING_S)):
            weather = self._chance.gauss(0, 0.12)
            for (room, mean), agent in fed:
                drift = self._chance.gauss(0, 0.08) + (mean - self._warm[room]) * 0.01
                self._warm[room] += weather + drift
                reading = {"temperature": round(self._warm[room], 2), "room": room}
                assert agent.stdin is not None
                agent.stdin.write(json.dumps(reading) + "\n")
                agent.stdin.flush()
            time.sleep(READING_S)


if __name__ == "__main__":
    main()
