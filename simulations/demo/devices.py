"""One device of the demo: an agent process, its own wire to the broker, and what it last said."""

import json
import signal
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, Self

from simulations.demo.broker import PrivateBroker
from simulations.demo.processes import Child, Children
from simulations.demo.relay import Relay

REPORT_S = 0.5
_NO_COLUMNS = frozenset({"parts", "inputs", "settled", "except", "devices"})


class KeyValue(NamedTuple):
    """What a device holds of one key.

    Attributes:
        parts: for people, such as {"mean": 21.5}.
        columns: what they were computed from, by name; bytes are hexadecimal text.
        inputs: digest of what it was made from; empty where the value is the device's own.
    """

    parts: Mapping[str, Any]
    columns: Mapping[str, Any]
    inputs: str


class Value(NamedTuple):
    """What a device holds of one fold's target or derived set.

    Attributes:
        keys: the value of each key; without `key=` the one key is "".
        inputs: digest of what all keys were made from; empty where the value is the device's own.
        settled: every device that is connected reported that it holds the same.
        absent: devices that are offline and did not.
    """

    keys: Mapping[str, KeyValue]
    inputs: str
    settled: bool
    absent: tuple[str, ...]

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """Return the value that a report tells of."""
        keys = plain.get("keys", {"": plain})
        return cls(
            {key: _key_value(value) for key, value in keys.items()},
            plain.get("inputs", ""),
            plain.get("settled", False),
            tuple(plain.get("except", ())),
        )


def _key_value(plain: Mapping[str, Any]) -> KeyValue:
    columns = {name: value for name, value in plain.items() if name not in _NO_COLUMNS}
    return KeyValue(plain.get("parts", {}), columns, plain.get("inputs", ""))


class Report(NamedTuple):
    """A line of an agent's `--report`. Counts go on over restarts; `others` are connected."""

    accepted: int
    repeated: int
    late: int
    too_late: int
    refused: int
    dirty: int
    connected: bool
    done: bool
    values: Mapping[str, Value]
    others: int = 0

    @classmethod
    def of(cls, line: str) -> Self | None:
        """Return the report that a line holds; None where it holds something else."""
        try:
            plain = json.loads(line)
            values = {name: Value.of(value) for name, value in plain["values"].items()}
            return cls(
                accepted=plain["accepted"],
                repeated=plain["repeated"],
                late=plain["late"],
                too_late=plain["too_late"],
                refused=plain["refused"],
                dirty=plain["dirty"],
                connected=plain["connected"],
                done=plain["done"],
                values=values,
                others=plain.get("others", 0),
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


class Condition(StrEnum):
    """What the demo did to a device."""

    STARTING = "starting"
    RUNNING = "running"
    KILLED = "killed"
    CUT_OFF = "cut off"
    STOPPED = "stopped"


class Device:
    """A device: it can be started, killed, cut off and let in again.

    Args:
        words: the agent's command line, without device, broker, data directory and report.
        sensor: what is measured, line by line; None where its sources are elsewhere.
    """

    def __init__(
        self,
        name: str,
        words: Sequence[str],
        children: Children,
        broker: PrivateBroker,
        data_dir: Path,
        sensor: Iterator[str] | None = None,
    ) -> None:
        self.name = name
        self.relay = Relay(broker.port)
        self.data_dir = data_dir
        self.report: Report | None = None
        self.condition = Condition.STARTING
        self._words = words
        self._children = children
        self._broker = broker
        self._sensor = sensor
        self._child: Child | None = None

    @property
    def child(self) -> Child | None:
        """Its process, if it has one."""
        return self._child

    async def start(self) -> None:
        """Start the agent, for the first time or again, on the same data directory."""
        if self._child is None:
            await self.relay.start()
        broker = self._broker.url.replace(f":{self._broker.port}", f":{self.relay.port}")
        place = ["--device", self.name, "--broker", broker, "--data-dir", str(self.data_dir)]
        words = [*self._words, *place, "--report", str(REPORT_S)]
        self.condition = Condition.STARTING
        reads = self._sensor is not None
        self._child = await self._children.start(self.name, words, self._heard, reads=reads)

    def measure(self) -> None:
        """Have its sensor say something, if the agent is there to hear it."""
        here = self.condition in {Condition.RUNNING, Condition.CUT_OFF}
        if self._sensor is not None and self._child is not None and here:
            self._child.write_line(next(self._sensor))

    async def kill(self) -> None:
        """End the agent without warning, as a power failure would."""
        assert self._child is not None
        self.condition = Condition.KILLED
        await self._child.kill()
        self._children.forget(self._child)

    def cut_off(self) -> None:
        """Take the device off the network."""
        self.condition = Condition.CUT_OFF
        self.relay.cut()

    def lose_packets(self) -> None:
        """Take the device out of reach: nothing passes, and its connection does not end."""
        self.condition = Condition.CUT_OFF
        self.relay.hold()

    def let_in(self) -> None:
        """Put the device on the network again."""
        self.condition = Condition.RUNNING
        self.relay.restore()

    def stop_sources(self) -> None:
        """Have it measure no more, but go on talking."""
        assert self._child is not None
        self._sensor = None
        self._child.signal(signal.SIGUSR1)

    async def stop(self) -> None:
        """End the agent in order."""
        self.condition = Condition.STOPPED
        if self._child is not None:
            await self._children.stop([self._child])
        await self.relay.close()

    def standing(self) -> str:
        """Return how things stand with it, in words."""
        report = self.report
        if report is None or self.condition is not Condition.RUNNING:
            return f"{self.name} {self.condition}"
        connected = "connected" if report.connected else "not connected"
        reading = "" if report.done or report.dirty else ", not through with its sources"
        return f"{self.name} {connected}, {report.dirty:,} entries to send{reading}"

    def is_connected(self) -> bool:
        """Whether it runs, and says that it has a connection."""
        report = self.report
        return self.condition is Condition.RUNNING and report is not None and report.connected

    def is_done(self) -> bool:
        """Whether its sources are finished and all that it has to send has landed."""
        report = self.report
        is_sent = report is not None and report.done and report.dirty == 0
        return is_sent and self.is_connected()

    def _heard(self, line: str) -> None:
        report = Report.of(line)
        if report is not None:
            self.report = report
            if self.condition is Condition.STARTING:
                self.condition = Condition.RUNNING
