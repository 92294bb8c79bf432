"""A picture of the dashboard, of a small fleet at work: `python -m simulations.picture FILE.png`.

The installed commands do the work, as a user would type them: a private broker, an agent for each
of five rooms (greenhouse, the program of README.md), a gateway and the page. One agent is killed
before the picture is taken, so that one sees how the page shows a device that is away. The readings
are drawn from a seed; the times are those of the clock. Debian's Chromium draws the page.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Final

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from lasp_edge.errors import EnvironmentLacks
from simulations.processes.broker import PrivateBroker

PROGRAM: Final = "lasp_edge.examples.greenhouse:program"
ROOMS: Final = {"attic": 24.6, "bedroom": 19.4, "cellar": 15.1, "kitchen": 22.6, "office": 20.9}
"""Degrees Celsius about which the temperature of each room wanders."""
COMMAND: Final = (sys.executable, "-m", "lasp_edge")
READING_S: Final = 0.5
FIRST_S: Final = 8
"""Seconds of measuring before the page is opened."""
AWAY_S: Final = 12
"""Seconds before the picture at which the last agent is killed."""
SIZE: Final = (1120, 1620)
"""Pixels: the values, the devices, and the first windows."""
DRAWN_S: Final = 5
"""How long the browser waits for what the page receives."""


def main() -> None:
    """Run a fleet for some time, and save how the page shows it."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seconds", type=int, default=150, help="of measuring (%(default)s)")
    arguments = parser.parse_args()
    with ExitStack() as ending:
        folder = Path(ending.enter_context(tempfile.TemporaryDirectory()))
        broker = ending.enter_context(PrivateBroker(folder / "broker"))
        common = (PROGRAM, "--broker", broker.url)
        agents = [_agent(room, common, folder, ending) for room in ROOMS]
        roster = ("--roster", ",".join(ROOMS))
        _start(ending, "gateway", *common, "--data-dir", str(folder / "gateway"), *roster)
        rooms = Rooms(agents)
        rooms.measure(FIRST_S)
        page = _start(ending, "dashboard", *common, "--port", "0")
        rooms.measure(arguments.seconds)
        agents[-1].kill()
        rooms.measure(AWAY_S, but=1)
        assert page.stdout is not None
        _photograph(page.stdout.readline().split()[2], arguments.file)


def _photograph(url: str, file: Path) -> None:
    """Open a page in a browser without a window, and save its upper part."""
    driver = shutil.which("chromedriver")
    if driver is None:
        raise EnvironmentLacks("no Chromium here", "sudo apt install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    size = "--window-size={},{}".format(*SIZE)
    root = ["--no-sandbox"] if os.geteuid() == 0 else []  # root has none
    for word in ("--headless=new", "--disable-gpu", "--hide-scrollbars", size, *root):
        options.add_argument(word)
    browser = webdriver.Chrome(options=options, service=Service(driver))
    try:
        browser.get(url)
        time.sleep(DRAWN_S)
        browser.save_screenshot(str(file))
    finally:
        browser.quit()


def _agent(
    room: str, common: tuple[str, ...], folder: Path, ending: ExitStack
) -> subprocess.Popen[str]:
    """Start the agent of a room."""
    source = ("--source", "stdin", "--tag", "room=room", "--interval", "2", "--results", "5")
    words = ("--device", room, "--data-dir", str(folder / room), *source)
    return _start(ending, "agent", *common, *words)


def _start(ending: ExitStack, *words: str) -> subprocess.Popen[str]:
    """Start a command; it is killed in the end."""
    running = subprocess.Popen(  # noqa: S603 - our own command
        [*COMMAND, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    ending.callback(running.wait)
    ending.callback(running.kill)
    return running


class Rooms:
    """The temperature of each room, which wanders about its mean; all follow the same weather."""

    def __init__(self, agents: list[subprocess.Popen[str]]) -> None:
        self._agents, self._chance = agents, Random(7)
        self._warm = dict(ROOMS)

    def measure(self, seconds: float, but: int = 0) -> None:
        """Give each agent, or all but the last ones, two readings a second."""
        fed = list(zip(ROOMS.items(), self._agents, strict=True))[: len(ROOMS) - but]
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
