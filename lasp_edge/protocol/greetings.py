"""Greetings: which devices a lander tells, without being asked, that it is there.

A device that sends beats and no panes would never learn that the lake is another one, so that
everything has to be sent again, or that its lake is still there. So it is sent an empty
acknowledgement when it is first heard, when its beats begin or cease to name the lander's store,
and again after a while.

    >>> greetings = Greetings()
    >>> [greetings.is_due("pi-1", True, second * 1_000_000) for second in (0, 1, 200, 300)]
    [True, False, False, True]
    >>> greetings.is_due("pi-1", False, 301_000_000)
    True
    >>> greetings.is_due("pi-1", True, 302_000_000)
    True
    >>> greetings.acknowledged("pi-1", 500_000_000)
    >>> greetings.is_due("pi-1", True, 600_000_000)
    False
"""

from typing import Final

GREETED_AGAIN_US: Final = 240_000_000
"""Microseconds between two greetings of a device that knows the lander: twice in the ten minutes
after which a device believes that a silent sink is gone (`device_agent.agent.panes.sinks`)."""
STRANGERS_GREETED_AGAIN_US: Final = 30_000_000
"""Microseconds between two greetings of a device whose beats do not name the lander's store."""


class Greetings:
    """When a lander last greeted each device."""

    def __init__(self) -> None:
        self._greeted: dict[str, tuple[int, bool]] = {}

    def is_first(self, device: str) -> bool:
        """Return whether a device was not greeted yet; it counts as greeted as a stranger."""
        if device in self._greeted:
            return False
        self._greeted[device] = (0, False)
        return True

    def acknowledged(self, device: str, now_us: int) -> None:
        """Note that a device is sent an acknowledgement, by which it learns the same."""
        if device in self._greeted:
            self._greeted[device] = (now_us, self._greeted[device][1])

    def is_due(self, device: str, is_ours: bool, now_us: int) -> bool:  # noqa: FBT001
        """Return whether a device is to be greeted now; if so, it counts as greeted.

        Args:
            device: from which a beat came.
            is_ours: the beat names the lander's sink and store.
            now_us: the lander's clock.
        """
        again_us = GREETED_AGAIN_US if is_ours else STRANGERS_GREETED_AGAIN_US
        greeted_us, knew = self._greeted.get(device, (now_us, not is_ours))
        if knew == is_ours and greeted_us <= now_us < greeted_us + again_us:
            return False
        self._greeted[device] = (now_us, is_ours)
        return True
