"""Reports to systemd that the agent runs, and that it is well.

A unit with `Type=notify` and `WatchdogSec=` restarts a service that is silent for that time. The
socket for that is in the environment; without one, nothing is sent.

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
        self._status = ""

    def turn(self, problems: list[str], now_us: int) -> None:
        """Report a new status, and in time that all is well, where it is."""
        lines = [] if self._ready else ["READY=1"]
        self._ready = True
        if not problems and self._watchdog is not None and self._watchdog.is_due(now_us):
            lines.append("WATCHDOG=1")
        status = "; ".join(problems) or "measuring"
        if status != self._status:
            lines.append(f"STATUS={status}")
            self._status = status
        self._send(lines)

    def stopping(self) -> None:
        """Report that the process ends in order."""
        self._send(["STOPPING=1"])

    def _send(self, lines: list[str]) -> None:
        if not lines or not self._address:
            return
        with (
            contextlib.suppress(OSError),  # the manager is gone: so is everything
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock,
        ):
            sock.sendto("\n".join(lines).encode(), self._address)
