"""Telling systemd that the agent runs, and that it is well.

A unit with `Type=notify` and `WatchdogSec=` restarts a service that says nothing in that time. The
socket to say it on is in the environment; without it, nothing is said.

Source: systemd, sd_notify(3), https://www.freedesktop.org/software/systemd/man/sd_notify.html.
"""

import contextlib
import socket
from collections.abc import Mapping

from lasp_edge.timers import Timer

SOCKET = "NOTIFY_SOCKET"
WATCHDOG = "WATCHDOG_USEC"


class ServiceManager:
    """The manager that started this process.

    Args:
        environment: that of the process.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        address = environment.get(SOCKET, "")
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        patience = environment.get(WATCHDOG, "")
        self._watchdog = Timer(int(patience) // 4) if patience.isdecimal() else None
        self._ready = False
        self._said = ""

    def turn(self, problems: list[str], now_us: int) -> None:
        """Say what is new, and in time that all is well, where it is."""
        lines = [] if self._ready else ["READY=1"]
        self._ready = True
        if not problems and self._watchdog is not None and self._watchdog.is_due(now_us):
            lines.append("WATCHDOG=1")
        status = "; ".join(problems) or "measuring"
        if status != self._said:
            lines.append(f"STATUS={status}")
            self._said = status
        self._say(lines)

    def stopping(self) -> None:
        """Say that the process ends in order."""
        self._say(["STOPPING=1"])

    def _say(self, lines: list[str]) -> None:
        if not lines or not self._address:
            return
        with (
            contextlib.suppress(OSError),  # the manager is gone: so is everything
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock,
        ):
            sock.sendto("\n".join(lines).encode(), self._address)
