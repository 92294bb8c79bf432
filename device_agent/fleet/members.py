"""Who was retired, as this device knows it, and how that word is kept alive.

An operator says once that a device is retired or admitted, and then is gone; brokers lose retained
messages. So whoever knows the word says it again after a while in which nobody was heard to say it:
each waits a time of its own, so that of many devices about one speaks, and the others hear it.

Source: Levis, Patel, Culler and Shenker, "Trickle: A Self-Regulating Algorithm for Code Propagation
and Maintenance in Wireless Sensor Networks", NSDI 2004 (polite gossip).
"""

from collections.abc import Callable, Iterator
from random import Random

from crdts import Member, Membership
from device_agent.clock import is_time
from device_agent.fleet.peers import LONGEST_JUMP
from device_agent.settings import SECOND_US
from device_agent.state.changes import Changes
from lasp_edge.protocol.frames import MemberFrame

MOST_MEMBERS = 10_000
SAY_AGAIN_US = 60 * SECOND_US
"""A word that nobody said for one to two times so long is said again."""
CORRECT_US = 2 * SECOND_US
"""So it is after one to two times so long where somebody was heard to know less."""


class Members:
    """The membership as a device holds it.

    Args:
        stored: what the store held; None for a new store.
        jitter: spreads the devices' words; seeded by the caller.
        tell: is told the membership, now and whenever it changes.

    Attributes:
        membership: what operators last said.
    """

    __slots__ = ("_due_us", "_jitter", "_tell", "membership")

    def __init__(
        self,
        stored: Membership | None,
        jitter: Random,
        tell: Callable[[Membership], None],
    ) -> None:
        self.membership = stored or Membership()
        self._jitter = jitter
        self._due_us: dict[str, int] = {}
        self._tell = tell
        tell(self.membership)

    def connected(self, now_us: int) -> None:
        """The broker may have lost what it kept."""
        for device in sorted(self.membership.entries):
            self._wait(device, now_us, CORRECT_US)

    def receive(self, frame: MemberFrame, now_us: int, changes: Changes) -> str:
        """Join a word.

        Returns:
            What it was: "news", "known", or why it was left aside.
        """
        word, device = frame.membership(), frame.about
        known = self.membership.entries.get(device)
        if frame.control - (known.control if known else 0) > LONGEST_JUMP:
            return "control too far ahead"
        if known is None and len(self.membership.entries) >= MOST_MEMBERS:
            return "too many members"
        if known is not None and word <= self.membership:
            same = known == word.entries[device]
            self._wait(device, now_us, SAY_AGAIN_US if same else CORRECT_US)
            return "known"
        self.membership |= word
        changes.facts.membership = self.membership
        self._tell(self.membership)
        self._wait(device, now_us, SAY_AGAIN_US)
        return "news"

    def due(self, now_us: int) -> Iterator[tuple[str, Member]]:
        """Yield (device, command) for each command that is to be repeated."""
        for device, due_us in sorted(self._due_us.items()):
            if is_time(now_us, due_us, 2 * SAY_AGAIN_US):
                self._wait(device, now_us, SAY_AGAIN_US)
                yield device, self.membership.entries[device]

    def _wait(self, device: str, now_us: int, least_us: int) -> None:
        self._due_us[device] = now_us + round(least_us * self._jitter.uniform(1, 2))
