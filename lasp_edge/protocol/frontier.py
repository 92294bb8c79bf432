"""The frontier F: nothing that lies before it is still to come from a device that is alive.

    F = max(F before, least low watermark over the live devices that promise one)

Every input is a row of the merged table. What the clock shows is what a lander's tick says, so a
replay gives the same F, and no driver's clock counts.

    expected   the roster; without one, every device that was ever heard. Who is retired is not
    silent     now - max(when the device's greatest version was first heard, listening since)
    live       silent for at most `dead_after_us`

A device that cannot promise anything (its clock is not synchronised) holds nobody up and is
excluded like a dead one. A device that is done holds nobody up either, however long it is silent,
for nothing of it is missing; where no other is live, F is the greatest time that such promised.
Where nobody is live at all, F does not move. Without a roster F
stays at bottom until `dead_after_us` of listening has passed, for who is expected must be heard
first; with one, a device that was never heard is waited for just as long.

Source: Akidau et al., "The Dataflow Model", VLDB 2015 (watermarks), with one source a device.
"""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from crdts import Membership, Version

_BOTTOM: Final = -(2**63)


class Promise(NamedTuple):
    """A device's newest word.

    Attributes:
        low_us: its low watermark; None where it cannot promise anything.
        done: nothing more will come from it.
        heard_us: when this version was first heard.
    """

    version: Version
    low_us: int | None
    done: bool
    heard_us: int

    def joined(self, other: "Promise | None") -> "Promise":
        """Return the newer word. A version that came again was heard when it first came."""
        if other is None or other.version < self.version:
            return self
        if other.version > self.version:
            return other
        greater = max(self, other, key=lambda word: (_time(word.low_us), word.done))
        return greater._replace(heard_us=min(self.heard_us, other.heard_us))


class Listening(NamedTuple):
    """The clock of the landers: they have listened from `since_us` until `now_us`."""

    now_us: int
    since_us: int

    @property
    def lasted_us(self) -> int:
        """How long they have listened."""
        return self.now_us - self.since_us

    def silence_us(self, promise: Promise | None) -> int:
        """Return for how long a device was silent while they listened."""
        heard_us = self.since_us if promise is None else promise.heard_us
        return self.now_us - max(heard_us, self.since_us)


class Heard(NamedTuple):
    """The join of all promises, ticks and words on members that were merged.

    Attributes:
        promises: the newest of each device.
        ticks: the newest of each lander, behind its number.
        membership: who was retired.
    """

    promises: Mapping[str, Promise]
    ticks: Mapping[str, tuple[int, Listening]]
    membership: Membership = Membership()

    def joined(self, other: "Heard") -> "Heard":
        """Return what was heard by both."""
        promises, ticks = dict(self.promises), dict(self.ticks)
        for device, promise in other.promises.items():
            promises[device] = promise.joined(promises.get(device))
        for lander, tick in other.ticks.items():
            ticks[lander] = max(tick, ticks.get(lander, tick))
        return Heard(promises, ticks, self.membership | other.membership)

    @property
    def listening(self) -> Listening | None:
        """The latest clock; who came latest to listening has to be waited for."""
        if not self.ticks:
            return None
        clocks = [clock for _, clock in self.ticks.values()]
        return Listening(max(c.now_us for c in clocks), max(c.since_us for c in clocks))


NOTHING_HEARD: Final = Heard({}, {})


class Coverage(NamedTuple):
    """How far results are final, and over whom.

    Attributes:
        frontier: F in microseconds since the epoch; None is bottom.
        expected: every device that counts; who is retired does not.
        excluded: those of them that were not waited for.
    """

    frontier: int | None
    expected: tuple[str, ...]
    excluded: tuple[str, ...]


def advance(
    before: int | None, heard: Heard, roster: Collection[str] | None, dead_after_us: int
) -> Coverage:
    """Return the frontier that the merged promises and ticks allow.

    Args:
        before: F so far; None is bottom.
        heard: everything that was merged.
        roster: the devices that are expected; None for whoever was heard.
        dead_after_us: see above.
    """
    known = heard.promises if roster is None else roster
    expected = tuple(sorted(set(known) - heard.membership.retired.keys()))
    listening = heard.listening
    if listening is None:
        return Coverage(before, expected, ())
    open_us: list[int] = []
    done_us: list[int] = []
    excluded: list[str] = []
    waiting = before is None and roster is None and listening.lasted_us <= dead_after_us
    for device in expected:
        promise = heard.promises.get(device)
        if promise is not None and promise.done:
            done_us.append(_time(promise.low_us))
        elif listening.silence_us(promise) > dead_after_us:
            excluded.append(device)
        elif promise is None:
            waiting = True
        elif promise.low_us is None:
            excluded.append(device)
        else:
            open_us.append(promise.low_us)
    allowed_us = min(open_us) if open_us else max(done_us, default=_BOTTOM)
    after_us = _time(before) if waiting else max(_time(before), allowed_us)
    return Coverage(None if after_us == _BOTTOM else after_us, expected, tuple(excluded))


def _time(time_us: int | None) -> int:
    return _BOTTOM if time_us is None else time_us
