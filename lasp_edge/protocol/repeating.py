"""Repeating: how an operator's commands are kept alive by all who know them.

An operator retires or admits a device with one command and is gone; brokers lose retained messages,
and devices their stores. So everybody who keeps commands repeats one that was not heard for some
time: devices, and landers, whose lakes hold them for ever, where the broker lets them. Each waits a
random time, so that of many about one repeats it and the others hear it.

    >>> repeating = Repeating(Random(7))
    >>> repeating.begin(["attic"], now_us=0)
    >>> repeating.due(now_us=0), repeating.due(now_us=2 * CORRECT_US)
    ([], ['attic'])
    >>> repeating.hear("attic", 2 * CORRECT_US, is_newest=True)
    >>> repeating.due(now_us=2 * CORRECT_US + REPEAT_US - 1)
    []

Source: Levis, Patel, Culler and Shenker, "Trickle: A Self-Regulating Algorithm for Code Propagation
and Maintenance in Wireless Sensor Networks", NSDI 2004 (polite gossip).
"""

from collections.abc import Iterable
from random import Random
from typing import Final

REPEAT_US: Final = 60_000_000
"""Least microseconds in which a command was not heard before it is repeated; at most twice that."""
CORRECT_US: Final = 2_000_000
"""The same where an older command was heard, or nothing yet on a new connection: somebody may not
know it."""


class Repeating:
    """When each command is to be repeated.

    Args:
        jitter: how long is waited is drawn from it.
    """

    def __init__(self, jitter: Random) -> None:
        self._jitter = jitter
        self._due_us: dict[str, int] = {}

    def begin(self, devices: Iterable[str], now_us: int) -> None:
        """Note a new connection: the broker may have lost the commands about these devices."""
        for device in sorted(devices):
            self._wait(device, now_us, CORRECT_US)

    def hear(self, device: str, now_us: int, *, is_newest: bool) -> None:
        """Note that a command about a device was heard, the newest one or an older one."""
        self._wait(device, now_us, REPEAT_US if is_newest else CORRECT_US)

    def due(self, now_us: int) -> list[str]:
        """Return the devices about which the command is to be repeated now; then it waits anew.

        A clock that was set back lets nothing wait for the old time.
        """
        waiting = self._due_us.items()
        due = [device for device, at in waiting if not now_us < at <= now_us + 2 * REPEAT_US]
        for device in sorted(due):
            self._wait(device, now_us, REPEAT_US)
        return sorted(due)

    def _wait(self, device: str, now_us: int, least_us: int) -> None:
        self._due_us[device] = now_us + round(least_us * self._jitter.uniform(1, 2))
