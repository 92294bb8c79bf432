"""The time that a device goes by.

What time it is comes from two clocks. The driver's clock, the `now_us` of every call, only counts
how much time has passed: timers go by it (`lasp_edge.timers`). What time it *is* is a line on it,
the `DeviceClock`, which `device_agent.agent.timing` keeps right; readings are placed by it.
"""

from typing import NamedTuple

from lasp_edge.units import SECOND_US

EARLIEST_US = 1_000_000_000 * SECOND_US
"""In 2001; before it, nobody else's clock is believed, nor a driver that reports no other."""


class ClockReading(NamedTuple):
    """The machine's clocks at one moment.

    Attributes:
        wall_us: the wall clock, microseconds since the epoch; it may be wrong, and may jump.
        monotonic_us: microseconds since the machine was booted, asleep or not.
        boot: names this boot of the machine; "" where that is unknown.
        synchronised: a time server keeps the wall clock right, by the kernel. The kernel denies it
            on many machines whose clock is right, so False means nothing.
    """

    wall_us: int
    monotonic_us: int
    boot: str
    synchronised: bool = False


class DeviceClock:
    """The time that a device goes by.

    >>> clock = DeviceClock()
    >>> clock.ahead_us = 7
    >>> clock.time_us(100)
    107

    Attributes:
        ahead_us: what is to be added to the driver's time.
        trusted: readings may be placed by it.
        tells: it is the device's own clock, so it is worth being published.
        waiting: readings that wait because it was not trusted when they came.
        trouble: what is wrong with it, for people; "" for nothing.
        is_kept: the driver reports the machine's clocks. One that never does, such as a simulation
            of one clock, is believed, unless its time is before every agent.
    """

    __slots__ = ("ahead_us", "is_kept", "tells", "trouble", "trusted", "waiting")

    def __init__(self) -> None:
        self.ahead_us = 0
        self.is_kept = False
        self.trusted = self.tells = True
        self.waiting, self.trouble = 0, ""

    def look(self, now_us: int) -> None:
        """See whether the driver's own time can be right, where it gives no other."""
        if not self.is_kept:
            self.trusted = self.tells = now_us >= EARLIEST_US

    @property
    def holds_back(self) -> bool:
        """Whether readings have to wait, be it behind others that do."""
        return not self.trusted or self.waiting > 0

    def time_us(self, now_us: int) -> int:
        """Return what time it is."""
        return now_us + self.ahead_us
