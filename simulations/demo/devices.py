"""One device of the demo: an agent, its own wire to the broker, its room, and its last report."""

import json
import signal
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from simulations.processes.broker import PrivateBroker
from simulations.processes.process import Process, now_s
from simulations.processes.relay import Relay

REPORT_S = 0.5

Value = Mapping[str, Any]
"""One value as an agent reports it: `parts`, exact columns, and of a fleet's also `inputs`."""


class Condition(StrEnum):
    """The state of a device on the site."""

    STARTING = "starting"
    RUNNING = "running"
    KILLED = "killed"
    CUT_OFF = "cut off"


class Device:
    """A device: it can be started, killed, cut off and let in again.

    Args:
        process: for its agent, of the device's name.
        data_dir: where the agent keeps its state.
        words: the agent's command line, without device, broker, data directory and report.
        sensor: gives the lines that its room's sensor writes; None where the agent has other
            sources.

    Attributes:
        report: the last line of its agent's `--report`; nothing before the first.
        measured: the lines of its room's sensor, in order.
    """

    def __init__(
        self,
        process: Process,
        data_dir: str,
        words: Sequence[str],
        broker: PrivateBroker,
        sensor: Iterator[str] | None = None,
    ) -> None:
        self.name, self.process, self.data_dir = process.name, process, data_dir
        self.relay = Relay(broker.port)
        self.report: dict[str, Any] = {}
        self.measured: list[dict[str, Any]] = []
        self.condition = Condition.STARTING
        self._sensor = sensor
        self._connected_s, self._longest_s = now_s(), 0.0
        url = broker.url.replace(f":{broker.port}", f":{self.relay.port}")
        self._words = [*words, "--device", self.name, "--broker", url, "--data-dir", data_dir]
        self._words += ["--report", str(REPORT_S)]

    def start(self) -> None:
        """Start the agent, for the first time or again, on the same data directory."""
        self.condition = Condition.STARTING
        self._forget_connection()
        self.process.run(self._words, reads=self._sensor is not None)

    def look(self) -> None:
        """Read the agent's new reports, and have its room's sensor write a line."""
        has_news = False
        for line in reversed(self.process.new_lines()):
            if is_report(line):
                self.report, has_news = json.loads(line), True
                if self.condition is Condition.STARTING:
                    self.condition = Condition.RUNNING
                break
        if self._sensor is not None and self.condition in {Condition.RUNNING, Condition.CUT_OFF}:
            line = next(self._sensor)
            self.measured.append(json.loads(line))
            self.process.write_line(line)
        if has_news and self.is_connected:
            self._longest_s, self._connected_s = self.away_s, now_s()

    def kill(self) -> None:
        """End the agent without warning, as a power failure would."""
        self.condition = Condition.KILLED
        self.process.kill()

    def cut_off(self) -> None:
        """Take the device off the network."""
        self.condition = Condition.CUT_OFF
        self._forget_connection()
        self.relay.cut()

    def lose_packets(self) -> None:
        """Take the device out of reach: nothing passes, and its connection does not end."""
        self.condition = Condition.CUT_OFF
        self.relay.hold()

    def let_in(self) -> None:
        """Put the device on the network again."""
        self.condition = Condition.RUNNING
        self.relay.restore()

    def _forget_connection(self) -> None:
        """Forget connection and progress of the last report: only the next one has them."""
        self.report = {**self.report, "connected": False, "done": False}

    def stop_sources(self) -> None:
        """Have it measure no more, but go on talking."""
        self._sensor = None
        self.process.signal(signal.SIGUSR1)

    @property
    def values(self) -> Mapping[str, Value]:
        """Its values, by name."""
        values: Mapping[str, Value] = self.report.get("values", {})
        return values

    @property
    def accepted(self) -> int:
        """How many readings it has accepted, over restarts too."""
        return int(self.report.get("accepted", 0))

    @property
    def to_send(self) -> int:
        """How many entries have still to reach the merger."""
        return int(self.report.get("dirty", 0))

    @property
    def failures(self) -> list[str]:
        """What functions of the program raised on it, and what it could not send."""
        return [reason.removeprefix("failed: ") for reason in self.report.get("failures", ())]

    @property
    def is_connected(self) -> bool:
        """Whether it runs, and reports that it has a connection."""
        return self.condition is Condition.RUNNING and bool(self.report.get("connected"))

    @property
    def is_done(self) -> bool:
        """Whether its sources are finished and all that it has to send has arrived."""
        return self.is_connected and bool(self.report.get("done")) and not self.to_send

    def begin(self) -> None:
        """Count how long it is away from now on."""
        self._connected_s, self._longest_s = now_s(), 0.0

    @property
    def silent_s(self) -> float:
        """For how long it has not reported that it has a connection.

        An agent that a busy machine holds back reports nothing either.
        """
        return now_s() - self._connected_s

    @property
    def away_s(self) -> float:
        """The longest time for which it had no connection."""
        return max(self._longest_s, self.silent_s)

    def standing(self) -> str:
        """Return in words why it is not done."""
        if self.condition is not Condition.RUNNING:
            return f"{self.name} {self.condition}"
        connected = "connected" if self.is_connected else "not connected"
        reading = "" if self.report.get("done") or self.to_send else ", still reads its sources"
        return f"{self.name} {connected}, {self.to_send:,} entries to send{reading}"


def is_report(line: str) -> bool:
    """Return whether a line is an agent's report: a user's program may print others.

    >>> is_report('{"values": {}, "accepted": 7}'), is_report("hello"), is_report("[]")
    (True, False, False)
    """
    try:
        plain = json.loads(line)
    except ValueError:
        return False
    return isinstance(plain, dict) and isinstance(plain.get("values"), dict)


def by_key(value: Value) -> Mapping[str, Value]:
    """Return the value of each key; the one key of a value without `key=` is "".

    >>> by_key({"parts": {"max": 3.0}})
    {'': {'parts': {'max': 3.0}}}
    """
    keys: Mapping[str, Value] = value.get("keys", {"": value})
    return keys
