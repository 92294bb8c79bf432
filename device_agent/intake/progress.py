"""How far the readings have come: their newest time, and the times that may no longer come."""

from device_agent.state.facts import Facts

NO_TIME = -(2**62)
"""Before every time."""


class IntakeProgress:
    """Four times; each of them only rises.

    Args:
        retain_us: how much older than the newest reading a reading may be.
        first_us: the floor before the first reading.
        facts: what the store holds of them.

    Attributes:
        stamp_us: when the last reading was accepted; no two readings share one.
        floor_us: readings below it are refused.
        high_us: greatest accepted reading time; None before the first.
        promised_us: the greatest low watermark that was published.
    """

    __slots__ = ("_retain_us", "floor_us", "high_us", "promised_us", "stamp_us")

    def __init__(self, retain_us: int, first_us: int, facts: Facts) -> None:
        self._retain_us = retain_us
        self.stamp_us = NO_TIME if facts.stamp_us is None else facts.stamp_us
        self.floor_us = first_us if facts.floor_us is None else facts.floor_us
        self.promised_us = NO_TIME if facts.promised_us is None else facts.promised_us
        self.high_us = facts.high_us

    def next_stamp_us(self, now_us: int) -> int:
        """Return when the next reading will have been accepted."""
        return max(now_us, self.stamp_us + 1)

    def reach(self, time_us: int) -> None:
        """Note the time of an accepted reading."""
        if self.high_us is None or time_us > self.high_us:
            self.high_us = time_us
            self.floor_us = max(self.floor_us, time_us - self._retain_us)

    def facts(self) -> Facts:
        """Return what is stored with every batch; `promised_us` is stored with the notes."""
        return Facts(stamp_us=self.stamp_us, high_us=self.high_us, floor_us=self.floor_us)
