"""For how long each device was away: not started yet, killed, or without a connection."""

from collections.abc import Callable, Iterable


class Outages:
    """How long devices were away, from what they say of their connections.

    Args:
        clock: seconds.

    >>> now_s = 10.0
    >>> outages = Outages(lambda: now_s)
    >>> outages.note("attic")
    >>> now_s = 14.0
    >>> outages.note("attic")
    >>> now_s = 15.0
    >>> outages.silent_s("attic"), outages.longest_s(["attic", "shed"])
    (1.0, {'attic': 4.0, 'shed': 5.0})
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._began_s = clock, clock()
        self._connected_s: dict[str, float] = {}
        self._longest_s: dict[str, float] = {}

    def note(self, device: str) -> None:
        """Note that a device says now that it has a connection."""
        self._longest_s[device] = self._longest(device)
        self._connected_s[device] = self._clock()

    def silent_s(self, device: str) -> float:
        """Return for how long a device has not said that it has a connection."""
        return self._clock() - self._connected_s.get(device, self._began_s)

    def longest_s(self, devices: Iterable[str]) -> dict[str, float]:
        """Return the longest time that each device was away, its start among them."""
        return {device: self._longest(device) for device in devices}

    def _longest(self, device: str) -> float:
        return max(self._longest_s.get(device, 0.0), self.silent_s(device))
