"""The time that each device is behind the others, read off the states that all report."""

from collections.abc import Iterable

MOST_STATES = 1_000
"""Reports that are remembered in their order: more than devices can be behind by."""


class Order:
    """The states that devices report, in the order in which each was first seen.

    >>> order = Order()
    >>> for at_s, device, state in ((0, "a", "x"), (1, "b", "x"), (5, "a", "y")):
    ...     order.note(device, state, at_s)
    >>> order.behind_s("a", 8), order.behind_s("b", 8), order.behind_s("c", 8)
    (0.0, 3, None)
    """

    def __init__(self) -> None:
        self._seen_s: dict[str, float] = {}
        self._of: dict[str, str] = {}

    def note(self, device: str, state: str, now_s: float) -> None:
        """Note the state that a device reports."""
        self._of[device] = state
        if state not in self._seen_s:
            self._seen_s[state] = now_s
            if len(self._seen_s) > MOST_STATES:
                del self._seen_s[next(iter(self._seen_s))]

    def behind_s(self, device: str, now_s: float) -> float | None:
        """Return how long a later report is known; None without one of this device."""
        state = self._of.get(device)
        if state is None:
            return None
        following = None
        for each in reversed(self._seen_s):  # most devices are near the newest
            if each == state:
                break
            following = each
        return 0.0 if following is None else now_s - self._seen_s[following]

    def held(self, devices: Iterable[str]) -> set[str]:
        """Return the states of these devices, as far as they report any."""
        return {self._of[device] for device in devices if device in self._of}

    def holders(self, state: str) -> list[str]:
        """Return the devices that report a state."""
        return [device for device, held in self._of.items() if held == state]
