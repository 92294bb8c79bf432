"""A device's beats: sent when they say something new, and now and then when they do not."""

from dataclasses import replace

from lasp_edge.protocol.frames import BeatFrame

IDLE_BEATS = 5
"""Of unchanged beats only every so many-th is sent."""


class Beats:
    """Numbers a replica's beats, and holds unchanged ones back."""

    __slots__ = ("_idle", "_last", "_number")

    def __init__(self) -> None:
        self._number = 0
        self._idle = 0
        self._last: BeatFrame | None = None

    @property
    def next_number(self) -> int:
        """The number of the beat that is sent next."""
        return self._number + 1

    @property
    def first(self) -> bool:
        """Whether nothing was said yet on this connection."""
        return self._last is None

    def say_again(self) -> None:
        """The next beat is sent even if it says nothing new."""
        self._last = None

    def become(self) -> None:
        """Begin anew, for another replica."""
        self._number = 0
        self._last = None

    def is_due(self, beat: BeatFrame) -> bool:
        """Count a beat, and return whether it is to be sent; else it is held back."""
        unchanged = self._last is not None and replace(self._last, number=beat.number) == beat
        self._idle = self._idle + 1 if unchanged else 0
        if self._idle % IDLE_BEATS:
            return False
        self._last = beat
        self._number = beat.number
        return True
