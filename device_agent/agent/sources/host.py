"""The machine the agent runs on, as Linux shows it: one reading of each event a period.

| event         | value                                                               |
|---------------|---------------------------------------------------------------------|
| `cpu`         | percent of all processors' time that was not idle since the last    |
| `memory`      | percent of memory that is not available                             |
| `temperature` | °C of the first thermal zone, which on a Raspberry Pi is its chip   |
| `network`     | bytes per second, both directions, of all interfaces but loopback   |
| `load`        | processes that ran or wanted to, averaged over a minute             |

Only what the program declares is read, and only what this machine has; readings are stamped by
the agent. `cpu` and `network` are differences, so they begin with the second period.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from device_agent.agent.intake.batch import Batch
from device_agent.agent.sources.mapping_options import WITH_TAG
from device_agent.agent.sources.periods import EVERY, ReadingPeriod
from device_agent.agent.sources.source import Source, SourceContext
from lasp_edge.units import SECOND_US

EVENTS = ("cpu", "memory", "temperature", "network", "load")
_FILES = {
    "cpu": "proc/stat",
    "memory": "proc/meminfo",
    "temperature": "sys/class/thermal/thermal_zone*/temp",
    "network": "proc/net/dev",
    "load": "proc/loadavg",
}


class Host(Source):
    """A source of the machine's own metrics.

    Args:
        events: names of the program's events; those in `EVENTS` are read.
        period_us: time between readings.
        tags: labels of every reading.
        root: what stands for `/`.
        name: the source's name.

    Raises:
        ValueError: none of the events is a metric.
    """

    def __init__(
        self,
        events: Iterable[str],
        period_us: int = SECOND_US,
        *,
        tags: Mapping[str, str] | None = None,
        root: Path = Path("/"),
        name: str = "host",
    ) -> None:
        self.name = name
        declared = sorted(set(events))
        self._events = [name for name in EVENTS if name in declared]
        if not self._events:
            raise ValueError(
                f"--source host gives {', '.join(EVENTS)}; the program has none of these events, "
                f"only {', '.join(declared)}"
            )
        self._period = ReadingPeriod(period_us)
        self._tags = dict(tags or {})
        self._root = root
        self._cpu: tuple[int, int] | None = None
        self._network: int | None = None
        zones = sorted(
            (root / "sys/class/thermal").glob("thermal_zone*/temp"),
            key=lambda path: (len(path.parent.name), path.parent.name),
        )
        self._zone = zones[0] if zones else None
        self._read: dict[str, Callable[[int], float | None]] = {
            "cpu": self._cpu_percent,
            "memory": self._memory_percent,
            "temperature": self._temperature_c,
            "network": self._network_bytes_per_s,
            "load": self._load,
        }

    @property
    def has_own_times(self) -> bool:
        return False

    def poll(self, now_us: int) -> Batch | None:
        elapsed_us = self._period.begin(now_us)
        if elapsed_us is None:
            return None
        read = [(name, self._metric(name, elapsed_us)) for name in self._events]
        found = [(name, value) for name, value in read if value is not None]
        if not found:
            return None
        return Batch(
            self.name,
            names=[name for name, _ in found],
            times_us=[None] * len(found),
            values=[value for _, value in found],
            tags=[self._tags] * len(found),
        )

    def due_us(self, now_us: int) -> int | None:
        return self._period.due_us(now_us)

    def says(self) -> str:
        """Return in words which of the program's events this machine cannot measure."""
        offered = [name for name in EVENTS if any(self._root.glob(_FILES[name]))]
        lacking = [name for name in self._events if name not in offered]
        if not lacking:
            return ""
        where = ", ".join(f"/{_FILES[name]}" for name in lacking)
        there = ", ".join(offered) or "nothing"
        return f"this machine has no {', '.join(lacking)} ({where} is not there); it offers {there}"

    def _metric(self, name: str, elapsed_us: int) -> float | None:
        """Return one metric; None where this machine does not tell it, or not yet."""
        try:
            return self._read[name](elapsed_us)
        except (OSError, ValueError, IndexError):
            return None

    def _text(self, path: str) -> str:
        return (self._root / path).read_text(encoding="ascii", errors="replace")

    def _cpu_percent(self, _elapsed_us: int) -> float | None:
        # cpu user nice system idle iowait irq softirq steal ...; guests count within user.
        ticks = [int(text) for text in self._text("proc/stat").split("\n", 1)[0].split()[1:9]]
        before, self._cpu = self._cpu, (sum(ticks), ticks[3] + ticks[4])
        if before is None or self._cpu[0] <= before[0]:
            return None
        total, idle = self._cpu[0] - before[0], self._cpu[1] - before[1]
        return 100.0 * min(max(total - idle, 0), total) / total

    def _memory_percent(self, _elapsed_us: int) -> float | None:
        lines = (line.split() for line in self._text("proc/meminfo").splitlines())
        kilobytes = {words[0]: int(words[1]) for words in lines if len(words) > 1}
        total, available = kilobytes.get("MemTotal:", 0), kilobytes.get("MemAvailable:")
        return None if not total or available is None else 100.0 * (total - available) / total

    def _temperature_c(self, _elapsed_us: int) -> float | None:
        if self._zone is None:
            return None
        return int(self._zone.read_text(encoding="ascii")) / 1000

    def _network_bytes_per_s(self, elapsed_us: int) -> float | None:
        total = 0
        for line in self._text("proc/net/dev").splitlines()[2:]:
            interface, _, numbers = line.partition(":")
            if interface.strip() != "lo":
                fields = numbers.split()
                total += int(fields[0]) + int(fields[8])
        before, self._network = self._network, total
        if before is None or total < before or elapsed_us <= 0:
            return None
        return (total - before) * SECOND_US / elapsed_us

    def _load(self, _elapsed_us: int) -> float | None:
        return float(self._text("proc/loadavg").split()[0])


def make(name: str, _place: str, context: SourceContext) -> Host:
    """Return the source; see `SourceKind.make`."""
    period_us = context.get(EVERY) or SECOND_US
    return Host(context.events, period_us, tags=context.get(WITH_TAG), name=name)
