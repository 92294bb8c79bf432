"""The site of the demo: a private broker, devices, and the merger of their panes.

All are processes of the installed commands. Their state is read off their own output, and off that
of other commands (`windows`, `readings` ...) over their folders.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from textwrap import wrap
from typing import Any

from lasp_edge.errors import CommandError, Exit
from lasp_edge.language.plan import Plan
from lasp_edge.tool.screen import Screen, aligned
from simulations.demo.devices import Device
from simulations.demo.live import LiveTable
from simulations.demo.rooms import HOUSE, measurements
from simulations.demo.settings import Setting
from simulations.processes.broker import PrivateBroker
from simulations.processes.process import COMMAND, Process, Processes, now_s, stop

PATIENCE_S = 300.0
"""Seconds without any progress after which the demo gives up: a busy machine takes minutes."""
SUMMARY_S = 15.0
"""Seconds after which a line tells how far all is, where there is no terminal."""
WIDTH = 79
_LOOK_S = 0.2
_AT_ONCE = 8
"""Commands that run side by side."""
_MOST_NAMES = 5
_MERGES_S = 5.0
"""How often Spark merges: each time takes a core for seconds, which the devices need, too."""


class Trouble(CommandError):  # noqa: N818 - reads as what happened
    """The demo cannot go on.

    Args:
        what: one line for people.
        exit_code: of the demo.
        log: the last lines of the process that is to blame, where one is.
    """

    def __init__(self, what: str, exit_code: Exit = Exit.DIFFERS, log: Sequence[str] = ()) -> None:
        super().__init__(what)
        self.exit_code, self.log = exit_code, tuple(log)


@dataclass(frozen=True)
class Cast:
    """The participants and their roles.

    Attributes:
        spec: the program, as MODULE:ATTRIBUTE.
        plan: the same, loaded.
        devices: names.
        sources: arguments of every agent. The lines that they read from standard input are those
            of a simulated room of the device's name.
        lake: where the tables are kept; None for a folder that goes with the demo.
        has_spark: Spark merges the devices' panes; else a gateway.
        is_ours: the program is the demo's own, so its parameters are known.
        wait_s: for how long windows wait for devices before they are shown; None for no wait.
        interval_s: how often devices publish: a demo is looked at.
        retained: arguments of the merger about how late readings may be.
    """

    spec: str
    plan: Plan
    devices: Sequence[str]
    sources: Sequence[str]
    lake: Path | None
    has_spark: bool = True
    is_ours: bool = False
    wait_s: float | None = None
    interval_s: float = 1.0
    retained: Sequence[str] = ()


class Merger:
    """The merger of the devices' panes into windows: the job in Spark, or a gateway.

    Args:
        place: the folder that it keeps: a lake, or a gateway's data.
        words: of its command, after its place.

    Attributes:
        who: its name for people.
        lines: the output of this life.
        away_s: for how long nobody merged, at most: until its first line after a start or a kill.
    """

    def __init__(self, process: Process, cast: Cast, place: Path, words: Sequence[str]) -> None:
        self.process, self.who = process, "Spark" if cast.has_spark else "the gateway"
        self.lines: list[str] = []
        self.away_s, self._began_s = 0.0, now_s()
        self._place = place
        self._words = ["gateway", cast.spec, "--data-dir", str(place), "--commit-every", "0.5"]
        if cast.has_spark:
            self._words = ["cloud", cast.spec, "--lake", str(place), "--trigger", f"{_MERGES_S:g}"]
        if cast.wait_s is not None:
            self._words += ["--tentative-after", f"{cast.wait_s:g}"]
        # A device waits for 5 s for an answer of a gateway that was killed before it sends again.
        self._words += ["--until-idle", "5" if cast.has_spark else "10", *words]

    def start(self) -> None:
        """Start it; it ends when nothing new came for some seconds."""
        self.process.run(self._words)

    def kill(self) -> None:
        """End it without warning, as a power failure would."""
        self.process.kill()
        self.lines, self._began_s = [], now_s()

    def look(self) -> None:
        """Read its new lines.

        Raises:
            Trouble: it ended by itself, and not well.
        """
        if not self.lines:
            self.away_s = max(self.away_s, now_s() - self._began_s)
        self.lines += self.process.new_lines()
        if self.process.ended_by_itself and self.process.exit_code != Exit.FINE:
            raise trouble_with(self.process)

    def started(self) -> bool:
        """Return whether it has started, which its first line tells."""
        return bool(self.lines)

    def progress(self) -> tuple[int, int]:
        """Return counts that rise as long as anything is merged: printed lines, commits."""
        commits = sum(1 for _ in self._place.glob("*/_delta_log/*.json"))
        return len(set(self.lines)), commits

    def news(self) -> str:
        """Return the last line that tells how far it is."""
        lines = [line for line in self.lines if re.match(r"\d|gateway: ", line)]
        return lines[-1] if lines else f"{self.who} has merged nothing yet"


class Site:
    """Everything that runs during a demo; see `opened`.

    Args:
        command: the words before a sub-command of `lasp-edge`.

    Attributes:
        devices: by name.
        lake: the merger's folder: a lake, or a gateway's.
        merger: of the devices' panes.
        settings: the parameters that an operator changed, in order.
        began_s: when it was made.
        complete_us: since when all devices had been started.
    """

    def __init__(
        self,
        cast: Cast,
        screen: Screen,
        processes: Processes,
        broker: PrivateBroker,
        command: Sequence[str],
    ) -> None:
        self.cast, self.screen, self.broker = cast, screen, broker
        self.settings: list[Setting] = []
        self.began_s, self.complete_us = now_s(), 0
        self._wrote_s = self.began_s
        self._processes, self._command, self._commands = processes, command, 0
        self._table: LiveTable | None = LiveTable(cast.plan, now_s)
        self.lake = cast.lake or processes.folder / "lake"
        roster = ["--broker", broker.url, "--roster", ",".join(cast.devices), *cast.retained]
        self.merger = Merger(processes.new("merger", command), cast, self.lake, roster)
        words = ["agent", cast.spec, *cast.sources, "--keep-readings"]
        words += ["--interval", f"{cast.interval_s:g}"]
        self.devices: dict[str, Device] = {}
        for number, name in enumerate(cast.devices, 1):
            place = str(processes.folder / f"device-{number}")
            has_room = "stdin" in cast.sources and name in HOUSE
            sensor = measurements(name, Random(name)) if has_room else None
            process = processes.new(name, command)
            self.devices[name] = Device(process, place, words, broker, sensor)

    def progress(self) -> list[tuple[object, ...]]:
        """Return a state that changes as long as devices read, send or agree."""
        return [
            (device.condition, device.is_connected, device.accepted, device.to_send, device.values)
            for device in self.devices.values()
        ]

    def until(
        self,
        condition: Callable[[], bool],
        what: str,
        progress: Callable[[], object] = lambda: None,
    ) -> None:
        """Wait for a condition while the fleet goes on.

        `what` says it in words, for when it does not come true. Patience counts from the last
        change of `progress`.

        Raises:
            Trouble: it did not come true, or a process ended by itself.
        """
        ends_s, before = now_s() + PATIENCE_S, progress()
        while not condition():
            self._look()
            if (after := progress()) != before:
                ends_s, before = now_s() + PATIENCE_S, after
            if now_s() > ends_s:
                raise Trouble(f"after {PATIENCE_S:.0f} s still not {what}{self._standing()}")

    def pass_time(self, seconds: float) -> None:
        """Let the fleet run for a while."""
        ends_s = now_s() + seconds
        self.until(lambda: now_s() >= ends_s, "later", now_s)

    def ask(self, *commands: Sequence[str]) -> list[list[str]]:
        """Run commands while the fleet goes on; return the lines that each has printed.

        A command that did not find its window or folder has printed none.

        Raises:
            Trouble: one of them failed.
        """
        printed = []
        for first in range(0, len(commands), _AT_ONCE):
            asked = [self._started(words) for words in commands[first : first + _AT_ONCE]]
            self.until(partial(_all_ended, asked), "answered by a command")
            for process in asked:
                if process.exit_code not in {Exit.FINE, Exit.NOT_FOUND}:
                    raise trouble_with(process)
                found = process.exit_code == Exit.FINE
                printed.append(process.new_lines() if found else [])
                process.kill()
        return printed

    def _started(self, words: Sequence[str]) -> Process:
        self._commands += 1
        process = self._processes.new(f"{words[0]}-{self._commands}", self._command)
        process.run(words)
        return process

    def _look(self) -> None:
        """Read all new lines, show the fleet, and see whether all still run."""
        for device in self.devices.values():
            device.look()
        self.merger.look()
        self.screen.show([self._summary()] if self._table is None else self.table())
        if not self.screen.is_terminal and now_s() > self._wrote_s + SUMMARY_S:
            self.say(*wrap(self._summary(), WIDTH, subsequent_indent="      "))
        for device in self.devices.values():
            if device.process.ended_by_itself:
                raise trouble_with(device.process)
        if self._table is not None and self.merger.process.ended_by_itself:
            # Nothing came for a while, as on a busy machine; later messages are merged, too.
            self.merger.start()
        time.sleep(_LOOK_S)

    def say(self, *lines: str) -> None:
        """Write lines that stay."""
        self.screen.say(*lines)
        self._wrote_s = now_s()

    def _summary(self) -> str:
        if self._table is None:
            return f"  ... {self.merger.news()}"
        devices = self.devices.values()
        readings, entries = sum(d.accepted for d in devices), sum(d.to_send for d in devices)
        return f"  ... {readings:,} readings so far, {entries:,} entries still to send"

    def table(self) -> list[str]:
        """Return the live table's lines."""
        assert self._table is not None
        return ["", *aligned(self._table.rows(self.devices.values()))]

    def freeze_table(self) -> None:
        """Let the live table stay as it is now."""
        lines = self.table()
        self._table = None
        self.screen.show([])
        self.say(*lines, "")

    def wait_for_merger(self) -> None:
        """Wait until all is merged and the merger has ended by itself.

        Raises:
            Trouble: nothing moved for long, or it did not end well.
        """
        merger = self.merger
        what = f"all merged by {merger.who}, and nothing moves"
        self.until(lambda: not merger.process.runs, what, merger.progress)
        self.screen.show([])
        merger.look()

    def is_settled(self) -> bool:
        """Return whether all has arrived and every device knows that all hold the same."""
        return all(device.is_done for device in self.devices.values()) and not self._disputed()

    def _disputed(self) -> list[str]:
        """Return the values on which the devices do not agree."""
        reported = [device.values for device in self.devices.values()]
        plan = self.cast.plan
        names = {name for values in reported for name in values} - plan.local_folds.keys()
        return sorted(
            name
            for name in names | plan.dynamic_folds.keys()
            if not _agreed([values.get(name, {}) for values in reported])
        )

    def _standing(self) -> str:
        """Return how the devices stand that are not done, for the line of a failure."""
        words = [device.standing() for device in self.devices.values() if not device.is_done]
        if disputed := self._disputed():
            words.append(f"not agreed on {', '.join(disputed[:_MOST_NAMES])}")
        failed = {reason: None for device in self.devices.values() for reason in device.failures}
        words += [f"failed: {reason}" for reason in list(failed)[:_MOST_NAMES]]
        return f" ({'; '.join(words)})" if words else ""


@contextmanager
def opened(cast: Cast, screen: Screen, command: Sequence[str] = COMMAND) -> Iterator[Site]:
    """Open a site where nothing runs yet but the broker; leaving the block ends everything."""
    with Processes() as processes, PrivateBroker(processes.folder / "broker") as broker:
        processes.note(f"started {broker.pid}")
        site = Site(cast, screen, processes, broker, command)
        try:
            yield site
        finally:
            devices = site.devices.values()
            # While the broker still takes their last words.
            stop([site.merger.process, *(device.process for device in devices)])
            for device in devices:
                device.relay.close()
            processes.note(f"ended {broker.pid}")


def _all_ended(processes: Sequence[Process]) -> bool:
    return not any(process.runs for process in processes)


def _agreed(held: Sequence[Any]) -> bool:
    """Return whether devices hold the same value, and know it; derived sets are only compared."""
    first = held[0]
    if first and "inputs" not in first:
        return all(value == first for value in held)
    return all(
        value and value["inputs"] == first["inputs"] and value["settled"] and not value["except"]
        for value in held
    )


def trouble_with(process: Process) -> Trouble:
    """Return the failure of a process that ended as it should not."""
    lines, code = process.last_lines(), process.exit_code
    if lines and code in (Exit.USAGE, Exit.NOT_FOUND, Exit.ENVIRONMENT):
        return Trouble(re.sub(r"^lasp-edge \w+: ", "", lines[-1]), Exit(code))
    how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
    return Trouble(f"{process.name} ended by itself, with {how}", log=lines)
