"""The stretches of time of which a sink may lack readings, as a device's store was lost.

A reading that a store has accepted, and that was sent nowhere, is gone with it. The device goes on
with another life, which states from when on no other store had accepted more. What its earlier
lives had promised to a sink is all there. So readings may be missing from there until that time:

    life 1 promises 100, and is lost; life 2 states 130    the stretch is [100, 130)

It is the same if the other store is a twin's, whose readings may be on its card alone. Rows that
were final before anybody knew of a device are not written again for it.

    >>> lives = {"attic": EarlierLives(100, -5)}
    >>> lost = lost_after({}, {"attic": ((EVERY_WINDOW, 130),)}, lives)
    >>> lost, touching(lost.items(), 120, 180), touching(lost.items(), 130, 190)
    ({'attic': (100, 130)}, {'attic'}, set())
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import nsmallest
from typing import NamedTuple

from crdts.frontier import BOTTOM_US, Promise
from lasp_edge.protocol.accepted import Begun
from lasp_edge.protocol.frames import EVERY_WINDOW
from lasp_edge.protocol.frontier import Liveness, reach_us
from lasp_edge.protocol.limits import LATEST_PANE_US
from lasp_edge.protocol.window_rows import MOST_NAMES, listed

LostStretch = tuple[int, int]
"""Up to which time a device had promised before, and from when on it has all its readings."""


class EarlierLives(NamedTuple):
    """What is known of the lives of a device before its present one.

    Attributes:
        reached_us: up to which time they had promised.
        unknown_us: how far results were final when the device was first heard.
    """

    reached_us: int
    unknown_us: int


def earlier_after(
    known: Mapping[str, EarlierLives],
    before: Liveness,
    came: Mapping[str, Promise],
    frontier_us: int | None,
) -> Mapping[str, EarlierLives]:
    """Return what is known of the lives of devices before their present ones.

    Args:
        known: the same, before new promises came.
        before: what was known of devices then.
        came: the new promises.
        frontier_us: how far results were final before.
    """
    found = dict(known)
    for device, promise in came.items():
        was = before.promises.entries.get(device)
        if was is None:
            found[device] = EarlierLives(
                BOTTOM_US, BOTTOM_US if frontier_us is None else frontier_us
            )
        elif was.version[:2] < promise.version[:2]:
            reached_us = max(reach_us(was), before.former_us.get(device, BOTTOM_US))
            found[device] = known[device]._replace(reached_us=reached_us)
    return known if found == known else found


def earlier_of(
    promises: Mapping[str, Promise], kept: Mapping[str, EarlierLives]
) -> Mapping[str, EarlierLives]:
    """Return what is kept of `earlier_after`; by a former release, how far devices had promised."""
    found = {at: EarlierLives(reach_us(each), BOTTOM_US) for at, each in promises.items()}
    return found | {**kept}


def lost_after(
    known: Mapping[str, LostStretch],
    begun: Mapping[str, Begun],
    earlier: Mapping[str, EarlierLives],
) -> Mapping[str, LostStretch]:
    """Return the stretches of which devices may lack readings, after some have spoken.

    Another store of the device has accepted these readings, which is lost or a twin's. What earlier
    lives had promised to this sink is all here; to one that has never heard them, nothing is.
    The present life may promise before it knows that another store had more.

    Args:
        known: those known before.
        begun: what new promises state.
        earlier: see `earlier_after`.
    """
    found = dict(known)
    for device, each in begun.items():
        until_us = dict(each).get(EVERY_WINDOW, BOTTOM_US)
        since_us, before_us = known.get(device, (LATEST_PANE_US, BOTTOM_US))
        if until_us > before_us:
            found[device] = (min(since_us, earlier[device].reached_us), until_us)
    return known if found == known else found


def grown(
    before: Mapping[str, LostStretch],
    after: Mapping[str, LostStretch],
    earlier: Mapping[str, EarlierLives],
) -> range:
    """Return the times in which devices may lack readings, as is known only now.

    What was final before anybody knew of a device stays as it is: it names no such device.

    >>> lives = {"attic": EarlierLives(10, -5), "cellar": EarlierLives(-99, 20)}
    >>> grown({"attic": (10, 30)}, {"attic": (10, 50), "cellar": (-99, 40)}, lives)
    range(10, 50)
    """
    several = [
        known_stretch(stretch, earlier[device])
        for device, stretch in after.items()
        if stretch != before.get(device)
    ]
    least_us = min((since_us for since_us, _ in several), default=0)
    return range(least_us, max((until_us for _, until_us in several), default=0))


def known_stretch(stretch: LostStretch, earlier: EarlierLives) -> LostStretch:
    """Return the part of a stretch that was not final before anybody knew of the device."""
    since_us, until_us = stretch
    return max(since_us, earlier.unknown_us), until_us


class LackingStretches(NamedTuple):
    """The stretches of which devices may lack readings.

    Attributes:
        lacking: each device with its stretch: rows that are made name it.
        lost: of these the part of which another store had more and that was not final before
            anybody knew of the device: rows that are final are written again to name it.
        grown: the times in which devices may lack readings, as is known only now.
    """

    lacking: Sequence[tuple[str, LostStretch]] = ()
    lost: Sequence[tuple[str, LostStretch]] = ()
    grown: range = range(0)

    @classmethod
    def of(
        cls,
        lost: Mapping[str, LostStretch],
        before: Mapping[str, LostStretch],
        earlier: Mapping[str, EarlierLives],
        expected: Collection[str],
    ) -> "LackingStretches":
        """Return them of lost stores alone.

        Args:
            lost: see `lost_after`.
            before: the same as it was known when rows were written last.
            earlier: see `earlier_after`.
            expected: the devices that count.
        """
        if not lost:
            return cls()
        counting = [(device, each) for device, each in lost.items() if device in expected]
        known = [(device, known_stretch(each, earlier[device])) for device, each in counting]
        return cls(counting, known, grown(before, lost, earlier))

    def grown_by(self, more: range) -> "LackingStretches":
        """Return the same with further times in `grown`."""
        if not more:
            return self
        some = self.grown or more
        both = range(min(some.start, more.start), max(some.stop, more.stop))
        return self._replace(grown=both)

    def with_those(self, more: Iterable[tuple[str, LostStretch]]) -> "LackingStretches":
        """Return the same with further stretches in `lacking`."""
        several = [*more]
        return self._replace(lacking=[*self.lacking, *several]) if several else self


def made_since(before: Mapping[str, Begun], after: Mapping[str, Begun]) -> range:
    """Return the times in which devices lack no readings of a window any more, as they did before.

    >>> made_since({"attic": ((7, 50),), "cellar": ((7, 90),)}, {"cellar": ((7, 90),)}).stop
    50
    """
    if before is after:
        return range(0)
    came = [{*each}.difference(after.get(at, ())) for at, each in before.items()]
    made_us = [until_us for each in came for _, until_us in each]
    return range(BOTTOM_US, max(made_us)) if made_us else range(0)


def touching(stretches: Iterable[tuple[str, LostStretch]], start_us: int, end_us: int) -> set[str]:
    """Return the devices with a stretch that a window shares some time with."""
    return {
        device
        for device, (since_us, until_us) in stretches
        if max(since_us, start_us) < min(until_us, end_us)
    }


def unvoided(known: Liveness) -> dict[str, Promise]:
    """Return the newest promise of each device; of one that an entry made void, the one before.

    What it had promised it has sent, so rows that the entry does not change need not name it.
    """
    found = dict(known.promises.entries)
    for device, promise in known.promises.entries.items():
        if promise.low_us == BOTTOM_US:
            found[device] = promise._replace(low_us=known.former_us.get(device, BOTTOM_US))
    return found


def is_renamed(
    excluded: Iterable[str],
    end_us: int,
    promises: Mapping[str, Promise],
    lost: Collection[str],
    lacking: Collection[str],
) -> bool:
    """Return whether a final row of a window is to name others than it does.

    A device that it names has sent all of the window since, or it may lack readings of another one,
    as is known now.

    Args:
        excluded: whom it names.
        end_us: of the window.
        promises: of each device, by `unvoided`.
        lost: the devices of which it may lack readings, as is known now.
        lacking: all of which it may lack some, whatever they have promised.
    """
    named = nsmallest(MOST_NAMES, excluded)
    if lost and listed({*named, *lost}) != listed(named):
        return True
    sent = {device for device in named if end_us <= reach_us(promises.get(device))}
    return not sent <= {*lacking}
