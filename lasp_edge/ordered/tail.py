"""The tail of a log: the state behind its last item, and what timers brought since then."""

from typing import Any

from lasp_edge.ordered.outputs import Output


class LogTail:
    """What timers brought since the last item.

    Attributes:
        state: after the last of them.
        last_us: when that was; of the last item, before the first one.
        rings: how many have rung.
        outputs: of them.
        stuck: one has failed, or there were too many: the others wait for the next item.
    """

    __slots__ = ("last_us", "outputs", "rings", "state", "stuck")

    def __init__(self, state: Any, last_us: int, rings: int = 0) -> None:
        self.state, self.last_us = state, last_us
        self.rings, self.stuck = rings, False
        self.outputs: list[Output] = []

    def restart(self, state: Any, last_us: int) -> None:
        """Stand behind an item, before any timer."""
        self.state, self.last_us, self.rings, self.stuck = state, last_us, 0, False
