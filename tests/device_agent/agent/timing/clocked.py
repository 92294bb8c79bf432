"""An agent under test on a machine whose clocks the test sets."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from crdts import Replica
from device_agent.agent.clock import ClockReading
from device_agent.agent.settings import Settings
from device_agent.agent.timing.judgement import RELEASED_US
from lasp_edge import Plan
from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import BeatFrame
from lasp_edge.protocol.publication import Publication
from lasp_edge.protocol.sinks import DEFAULT_SINK
from lasp_edge.units import SECOND_US
from simulations.world.lander import LANDER
from tests.device_agent.agents import DAY_US, LAKE, MINUTE_US, Device

TRUE_US = (RELEASED_US + 300 * DAY_US) // MINUTE_US * MINUTE_US


class ClockedDevice(Device):
    """A device whose wall clock is `off_us` ahead of true time.

    Attributes:
        boot: names the boot of its machine.
        booted_us: true time at which the machine was booted.
        true_us: the time, as nobody there knows it; the driver's clock has begun somewhere else.
    """

    def __init__(
        self, directory: Path, program: Plan | None = None, *, off_us: int = 0, **settings: Any
    ) -> None:
        self.off_us, self.boot, self.synchronised = off_us, "boot-1", False
        self.booted_us = TRUE_US - 100 * SECOND_US
        self._numbers = 0
        made = Settings(keep_readings=True, **settings)
        super().__init__(directory, program, settings=made, now_us=7)

    @property
    def true_us(self) -> int:
        return TRUE_US + self.now_us - 7

    def start(self, nonce: int | None = None) -> None:
        super().start(nonce)
        self.tell()

    def tell(self) -> None:
        """Tell the core what the machine's clocks say."""
        elapsed_us = self.true_us - self.booted_us
        wall_us = self.true_us + self.off_us
        reading = ClockReading(wall_us, elapsed_us, self.boot, self.synchronised)
        self.core.handle_clock(reading, self.now_us)

    def tick(self, seconds: float = 1.0) -> list[Publication]:
        self.now_us += round(seconds * SECOND_US)
        self.tell()
        self.now_us -= round(seconds * SECOND_US)
        return super().tick(seconds)

    def lands(self, frame: Frame) -> AckFrame | None:
        return self.landed.hear(self.topic_of(frame), frame.encode(), self.true_us)

    def reboot(self, boot: str) -> None:
        """Switch the machine off and on."""
        self.boot, self.booted_us = boot, self.true_us - 10 * SECOND_US
        self.restart()

    def read(
        self, values: Iterable[Any], times_us: Iterable[int | None] | None = None, **more: Any
    ) -> None:
        values = list(values)
        times = [None] * len(values) if times_us is None else list(times_us)
        self.take(values, times, [{}] * len(values), **more)

    def reads_for(self, seconds: int, value: float = 20.0) -> None:
        """Take in a stamped reading a second, and tick."""
        for _ in range(seconds):
            self.read([value])
            self.tick()

    def hears_peer(self, off_us: int = 0, device: str = "pi-2") -> None:
        """Hear a beat of another device whose clock is off."""
        self._numbers += 1
        clock_s = (self.true_us + off_us) // SECOND_US
        replica = Replica(1, 1, device)
        self.hear(BeatFrame(replica, self._numbers, (), done=False, reports=(), clock_s=clock_s))

    def hears_lander(self, off_us: int = 0) -> None:
        """Hear a lander that acknowledges nothing."""
        self._numbers += 1
        clock_s = (self.true_us + off_us) // SECOND_US
        self.hear(AckFrame(LANDER, self._numbers, self.name, DEFAULT_SINK, LAKE, clock_s=clock_s))

    def times_us(self) -> list[int]:
        """Return the times of all accepted readings, in the order of their acceptance."""
        return [reading["time_us"] for reading in self.store.readings()]

    def errors_us(self, true_times_us: Iterable[int]) -> int:
        """Return how far the reading is off that is placed worst."""
        pairs = zip(self.times_us(), true_times_us, strict=True)
        return max(abs(placed_us - true_us) for placed_us, true_us in pairs)


def seconds_from(first_us: int, count: int) -> list[int]:
    return [first_us + number * SECOND_US for number in range(count)]
