"""Digests of shared variables that differ: which device to ask for which variable, and when.

A digest that differs may only say that something is under way. So a peer is asked when its digest
still differs after two beats, at once only after a start or a connection, and one peer at a time.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

from lasp_edge.protocol.frames import BeatFrame
from lasp_edge.protocol.limits import MEMBERS
from lasp_edge.units import SECOND_US

MOST_WAIT_US = 600 * SECOND_US
"""Microseconds from an ask that brought nothing to the next one, at most."""
MOST_WAITS = 16
"""The same in times that a digest has to differ: what is lost while all that changes is asked for
in vain is lacking for a minute, where beats come every two seconds, and not for ten."""


class Digested(Protocol):
    """What has a digest, as devices report it in their beats."""

    @property
    def digest(self) -> int:
        """The digest of all that is held."""


class Difference(NamedTuple):
    """What a peer reported last of a variable that differed here then, and when."""

    digest: int
    heard_us: int


class LastAsk(NamedTuple):
    """When somebody was asked for a variable, and how long the next one waits."""

    at_us: int
    wait_us: int


class Differences:
    """What peers hold that may be lacking here.

    Args:
        device: who asks; its own beats tell it nothing.
        states: the shared variables by name.
        settled_us: how long a digest differs before something is lacking: two beats.
    """

    def __init__(self, device: str, states: Mapping[str, Digested], settled_us: int) -> None:
        self._device, self._states, self._settled_us = device, states, settled_us
        self._most_us = min(MOST_WAITS * settled_us, MOST_WAIT_US)
        self._differing: dict[tuple[str, str], Difference] = {}
        self._asked: dict[str, LastAsk] = {}
        self._fresh = set(states)

    def restart(self) -> None:
        """A new connection: whatever is lacking is asked for at once."""
        self._fresh = set(self._states)
        self._differing.clear()
        self._asked.clear()

    def take_reports(self, frame: BeatFrame, now_us: int) -> None:
        """Note what a peer holds."""
        device = frame.sender.device
        if device == self._device:
            return
        for report in frame.reports:
            name, state = report.variable, self._states.get(report.variable)
            if state is None:
                continue
            if report.digest == state.digest:
                self._fresh.discard(name)
                self._differing.pop((device, name), None)
            elif len(self._differing) < MEMBERS:
                known = self._differing.get((device, name))
                if known is None or known.digest != report.digest:
                    self._differing[device, name] = Difference(report.digest, now_us)

    def __bool__(self) -> bool:
        """Whether something may be lacking here."""
        return bool(self._differing)

    def take_repair(self, name: str) -> None:
        """Somebody sent what was lacking of a variable: more may follow soon."""
        self._asked.pop(name, None)

    def due(self, now_us: int) -> Iterator[tuple[str, str]]:
        """Yield (device, variable) of whom to ask for what now."""
        for (device, name), (digest, heard_us) in list(self._differing.items()):
            if digest == self._states[name].digest:
                del self._differing[device, name]  # what was under way has come
                continue
            is_settled = abs(now_us - heard_us) >= self._settled_us
            if (name in self._fresh or is_settled) and self._may_ask(name, now_us):
                del self._differing[device, name]
                yield device, name

    def _may_ask(self, name: str, now_us: int) -> bool:
        """Return whether nobody was asked for a variable a while ago.

        An ask that brings nothing makes the next one wait twice as long: the peer lacked something
        itself, or both went on changing.
        """
        asked = self._asked.get(name)
        if asked is not None and abs(now_us - asked.at_us) < asked.wait_us:
            return False
        wait_us = self._settled_us if asked is None else min(2 * asked.wait_us, self._most_us)
        self._asked[name] = LastAsk(now_us, wait_us)
        return True
