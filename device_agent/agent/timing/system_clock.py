"""The machine's clocks, read for the core: the runtime's part of `device_agent.agent.timing`.

`now_us` begins at the wall clock of the process's start and goes on with the time since the machine
was booted, asleep or not, so it never jumps. The kernel's word on its wall clock comes from
`adjtimex`; where that cannot be asked, systemd's time client leaves a file.
"""

import contextlib
import ctypes
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from device_agent.agent.clock import ClockReading

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_UPTIME = Path("/proc/uptime")
_SYNCHRONISED = Path("/run/systemd/timesync/synchronized")
_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", None)  # Linux; macOS counts no sleep
_TIME_ERROR, _STA_UNSYNC = 5, 0x40
_SAME_US = 1_000_000
"""Microseconds by which the kernel's clock may differ from the process's: a faked one does more."""


class _Timex(ctypes.Structure):
    """Linux's `struct timex`, as `adjtimex(2)` has it; `rest` is more than it fills."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        *((name, ctypes.c_long) for name in ("offset", "freq", "maxerror", "esterror")),
        ("status", ctypes.c_int),
        *((name, ctypes.c_long) for name in ("constant", "precision", "tolerance")),
        *((name, ctypes.c_long) for name in ("seconds", "microseconds", "tick")),
        ("rest", ctypes.c_long * 32),
    )


class SystemClock:
    """The clocks of this machine."""

    def __init__(self) -> None:
        self._boot = _text(_BOOT_ID)
        self._since_us = wall_us() - _elapsed_us()
        self._timex = _Timex()
        self._uptime: int | None = None  # open for good: it is read at each tick
        with contextlib.suppress(OSError):
            self._uptime = os.open(_UPTIME, os.O_RDONLY)
        self._adjtimex: Callable[[Any], int] | None = None
        with contextlib.suppress(OSError, AttributeError):
            self._adjtimex = ctypes.CDLL(None).adjtimex

    def now_us(self) -> int:
        """Return the driver's time: it says how much has passed, and never jumps."""
        return self._since_us + _elapsed_us()

    def read(self) -> ClockReading:
        """Return all clocks' present times."""
        now_us = wall_us()
        return ClockReading(now_us, self._monotonic_us(), self._boot, self._synchronised(now_us))

    def _monotonic_us(self) -> int:
        # The same as CLOCK_BOOTTIME, but for one that a test or a container has given an offset.
        if self._uptime is None:  # no Linux
            return _elapsed_us()
        return round(float(os.pread(self._uptime, 64, 0).partition(b" ")[0]) * 1_000_000)

    def _synchronised(self, now_us: int) -> bool:
        if self._adjtimex is None:
            return _SYNCHRONISED.exists()
        timex = self._timex
        timex.modes = 0  # only ask
        known = self._adjtimex(ctypes.byref(timex))
        kernels_us = timex.seconds * 1_000_000 + timex.microseconds % 1_000_000
        return (
            0 <= known < _TIME_ERROR
            and not timex.status & _STA_UNSYNC
            and abs(kernels_us - now_us) < _SAME_US + 1_000_000
        )


def wall_us() -> int:
    """Return the wall clock, microseconds since the epoch."""
    return time.time_ns() // 1_000  # noqa: TID251 - the process reads the clock for everybody


def _elapsed_us() -> int:
    if _BOOTTIME is None:
        return time.perf_counter_ns() // 1_000
    return time.clock_gettime_ns(_BOOTTIME) // 1_000


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""
