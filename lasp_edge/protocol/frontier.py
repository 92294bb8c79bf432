"""The frontier F of a fleet: no device that is alive will send anything older.

    F = max(F before, least low watermark over the live devices that promise one)

Every input is a row of the merged table. The clock is that of a lander's tick, so a replay gives
the same F.

A tick counts only as far as others bear it out: a device's promise, or the clock of the process
that merges, where it has one. A lander whose clock was once a year ahead would else have every
device look dead for a year. Landers do not bear each other out: one that lost its log is another.
Whoever is retired, a lander too, does not count.

    expected   the roster; without one, every device that was ever heard. Retired ones are not
    silent     now - max(when the device's greatest version was first heard, listening since)
    live       silent for at most `dead_after_us`

A device that cannot promise anything (its clock is not synchronised) holds nobody up and is
excluded like a dead one. A device that is done holds nobody up either, however long it is silent:
all of it has come. Where no other is live, F is the greatest time that a device promised when it
was done; where none is live or done, F does not move. Without a roster F stays at bottom until the
landers have listened for a while (`dead_after_us`, unless one says otherwise), so that every device
had time to speak; with one, a device that was never heard is waited for `dead_after_us`.

Source: Akidau et al., "The Dataflow Model", VLDB 2015 (watermarks), with one source a device.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from crdts import Frontier, Membership
from crdts.frontier import BOTTOM_US, Promise
from lasp_edge.protocol.limits import EARLIEST_PANE_US, LATEST_PANE_US

CLOCKS_DIFFER_US: Final = 300_000_000
"""By how much, in microseconds, a clock may be ahead of all others and still count: five minutes,
half of the time for which a silent device is waited for unless one says otherwise."""


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


class Tick(NamedTuple):
    """A lander's clock when it closed a segment; of one lander's ticks the greatest counts.

    Attributes:
        number: of the segment.
        clock: the lander's.
    """

    number: int
    clock: Listening


class Liveness(NamedTuple):
    """All that is merged about which devices are alive, and how far they have come.

    Attributes:
        promises: the newest of each device.
        ticks: the newest of each lander.
        membership: all member commands.
        former_us: how far a device had promised before its promise became void.
        host_us: the clock of the process that merges; None where no clock is doubted.
        furthest_us: how far a device had promised, where it promises less now.
    """

    promises: Frontier = Frontier()
    ticks: Mapping[str, Tick] = MappingProxyType({})
    membership: Membership = Membership()
    former_us: Mapping[str, int] = MappingProxyType({})
    host_us: int | None = None
    furthest_us: Mapping[str, int] = MappingProxyType({})

    def joined(self, other: "Liveness") -> "Liveness":
        """Return the join of both."""
        ticks, former_us = dict(self.ticks), dict(self.former_us)
        for lander, tick in other.ticks.items():
            ticks[lander] = max(tick, ticks.get(lander, tick))
        for device, low_us in other.former_us.items():
            former_us[device] = max(low_us, former_us.get(device, low_us))
        members = self.membership | other.membership
        hosts_us = [each for each in (self.host_us, other.host_us) if each is not None]
        host_us = max(hosts_us, default=None)
        furthest_us = dict(self.furthest_us)
        for device, low_us in other.furthest_us.items():
            furthest_us[device] = max(low_us, furthest_us.get(device, low_us))
        promises = self.promises | other.promises
        return Liveness(promises, ticks, members, former_us, host_us, furthest_us)

    def furthest_with(self, promises: Frontier, spoke: Mapping[str, Promise]) -> Mapping[str, int]:
        """Return `furthest_us` after some devices spoke, from which follow these promises."""
        found, known = dict(self.furthest_us), self.promises.entries
        for device, spoken in spoke.items():
            before_us = _time(known[device].low_us) if device in known else BOTTOM_US
            most_us = max(before_us, _time(spoken.low_us), found.pop(device, BOTTOM_US))
            if most_us > _time(promises.entries[device].low_us):
                found[device] = most_us
        return found

    def voided(self) -> "Liveness":
        """Return the same after a new entry of operators: promises were made under another log."""
        promises, former_us = {}, dict(self.former_us)
        for device, promise in self.promises.entries.items():
            promises[device] = void(promise)
            if promise != promises[device]:  # what was void before says nothing of how far it came
                former_us[device] = max(reach_us(promise), self.furthest_us.get(device, BOTTOM_US))
        return self._replace(promises=Frontier(promises), former_us=former_us, furthest_us={})

    @property
    def listening(self) -> Listening | None:
        """The latest clock; the lander that began to listen last has to be waited for."""
        clocks = list(self.clocks.values())
        if len(clocks) <= 1:
            return clocks[0] if clocks else None
        return Listening(max(c.now_us for c in clocks), max(c.since_us for c in clocks))

    @property
    def clocks(self) -> dict[str, Listening]:
        """The clocks of the landers, as far as others bear them out.

        >>> clock = Listening(now_us=9_000_000_000, since_us=1_000_000_000)
        >>> Liveness(ticks={"lander": Tick(1, clock)}, host_us=2_000_000_000).clocks
        {'lander': Listening(now_us=2000000000, since_us=1000000000)}
        """
        retired = self.membership.retired
        clocks = {name: tick.clock for name, tick in self.ticks.items() if name not in retired}
        host_us = self.host_us
        if host_us is None or all(
            each.now_us <= host_us + CLOCKS_DIFFER_US for each in clocks.values()
        ):
            return clocks
        lows_us = (each.low_us or BOTTOM_US for each in self.promises.entries.values())
        borne_us = max(host_us, max(lows_us, default=BOTTOM_US))
        found = {}
        for name, (now_us, since_us) in clocks.items():
            believed_us = now_us if now_us <= borne_us + CLOCKS_DIFFER_US else borne_us
            if since_us <= believed_us:
                found[name] = Listening(believed_us, since_us)
        return found

    def silence_us(self, promise: Promise | None, listening: Listening) -> int:
        """Return for how long a device was silent; see `Listening.silence_us`.

        A promise that arrived at a time which nobody bears out counts as of its own time; where
        nobody bears that out either, as of the time since which they have listened.
        """
        last_us = max(listening.now_us, self.host_us or BOTTOM_US) + CLOCKS_DIFFER_US
        if promise is not None and self.host_us is not None and promise.heard_us > last_us:
            low_us = promise.low_us or BOTTOM_US
            promise = promise._replace(heard_us=low_us if low_us <= last_us else BOTTOM_US)
        return listening.silence_us(promise)


NOTHING_HEARD: Final = Liveness()


def void(promise: Promise) -> Promise:
    """Return a promise of no time: it was made under another log, and shows only a live device."""
    return promise._replace(low_us=BOTTOM_US, done=False)


def reach_us(promise: Promise | None) -> int:
    """Return up to which time a device has promised; who is done has promised everything."""
    if promise is None:
        return BOTTOM_US
    return LATEST_PANE_US if promise.done else _time(promise.low_us)


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


class AwaitedDevice(NamedTuple):
    """A device that holds F.

    Attributes:
        device: its name.
        low_us: up to which time it has promised.
        former_us: the same, or what it had promised before its promise became void.
    """

    device: str
    low_us: int
    former_us: int


class AwaitedDevices(NamedTuple):
    """For whom windows wait.

    Attributes:
        devices: all that hold F, by name.
        lead_us: the furthest that any device has promised; none for more than the time at which
            its promise came.
        promised: (name, how far it has promised) of all that count and are not done. One that
            promises less than before, as a late reading is on its way or another life began, has
            sent all up to where it had promised.
    """

    devices: tuple[AwaitedDevice, ...]
    lead_us: int
    promised: tuple[tuple[str, int], ...] = ()

    def led_by(self, *times_us: int | None) -> "AwaitedDevices":
        """Return the same where somebody is known to have promised up to these times.

        An entry of operators makes all promises void: until new ones arrive, they lead nowhere.
        """
        known_us = [each for each in times_us if each is not None]
        return self._replace(lead_us=max([self.lead_us, *known_us]))

    @property
    def far_behind(self) -> tuple[str, ...]:
        """Who holds F while another device has promised five minutes more; the last one first."""
        least_us = self.lead_us - CLOCKS_DIFFER_US
        behind = sorted((each.low_us, each.device) for each in self.devices)
        return tuple([device for low_us, device in behind if low_us < least_us])

    def before(self, end_us: int) -> tuple[str, ...]:
        """Return who is missing in a window that ends then; nobody while all of them are.

        A device whose promise is void is missing only where no other device is.
        """
        if end_us > self.lead_us:
            return ()
        behind = [each.device for each in self.devices if each.former_us < end_us]
        return tuple(behind or [each.device for each in self.devices if each.low_us < end_us])

    def behind(self, time_us: int) -> tuple[tuple[str, int], ...]:
        """Return those of `promised` that have not promised up to a time.

        F has passed the windows up to there without them, also where it waits for them again: they
        were silent, or are new to a fleet that has gone on. Of a device that had promised, and that
        fell silent since, all readings are in.

        >>> AwaitedDevices((), 30, (("attic", 20), ("cellar", 30))).behind(30)
        (('attic', 20),)
        """
        return tuple([(device, at_us) for device, at_us in self.promised if at_us < time_us])


class _Standing(NamedTuple):
    """What each device means for F."""

    expected: tuple[str, ...]
    excluded: tuple[str, ...]
    unheard: tuple[str, ...]
    open_us: dict[str, int]
    done_us: dict[str, int]


def advance(
    before: int | None,
    liveness: Liveness,
    roster: Collection[str] | None,
    dead_after_us: int,
    listen_us: int | None = None,
) -> Coverage:
    """Return the frontier that the merged promises and ticks allow.

    `before` is F so far, where None is bottom; a roster of None means whoever was heard. For
    `listen_us`, which is `dead_after_us` if None, F stays at bottom without a roster.
    """
    standing = _standing(liveness, roster, dead_after_us)
    patience_us = dead_after_us if listen_us is None else listen_us
    waiting = bool(standing.unheard) or is_listening(before, liveness, roster, patience_us)
    allowed_us = min(
        standing.open_us.values(), default=max(standing.done_us.values(), default=BOTTOM_US)
    )
    after_us = _time(before)
    if not waiting and liveness.listening is not None:
        after_us = max(after_us, allowed_us)
    frontier = None if after_us <= EARLIEST_PANE_US else after_us  # whoever begins promises no more
    return Coverage(frontier, standing.expected, standing.excluded)


def caught_up(
    before: Liveness,
    after: Liveness,
    roster: Collection[str] | None,
    dead_after_us: int,
    frontier_us: int | None,
) -> range:
    """Return the ends of windows, below F, that devices have promised past only now.

    Rows of these may name them: F has passed the windows without them. Who was not waited for while
    its promise was void is named whatever it had promised before.

    >>> from crdts import Replica
    >>> one = Replica(1, 7, "attic")
    >>> silent = Liveness(Frontier().promise(one, 1, low_us=20, heard_us=20))
    >>> back = Liveness(Frontier().promise(one, 2, low_us=50, heard_us=60))
    >>> caught_up(silent, back, None, 600, 40)
    range(21, 41)
    """
    found, known, waited_us = list[int](), before.promises.entries, range(dead_after_us + 1)
    for device, promise in after.promises.entries.items() if frontier_us is not None else ():
        was = known.get(device)
        if promise == was or (was is None and (roster is None or device not in roster)):
            continue
        since_us, until_us = reach_us(was), min(reach_us(promise), _time(frontier_us))
        if was and was.low_us == BOTTOM_US and promise.heard_us - was.heard_us in waited_us:
            since_us = before.former_us.get(device, BOTTOM_US)  # it is void, and was waited for
        found += [since_us + 1, until_us + 1] if since_us < until_us else []
    return range(min(found, default=0), max(found, default=0))


def is_listening(
    before: int | None, liveness: Liveness, roster: Collection[str] | None, listen_us: int
) -> bool:
    """Return whether F stays at bottom so that every device has time to speak; see `advance`."""
    if before is not None or roster is not None:
        return False
    listening = liveness.listening
    return listening is not None and listening.lasted_us <= listen_us


def awaited(
    liveness: Liveness, roster: Collection[str] | None, dead_after_us: int
) -> AwaitedDevices:
    """Return for whom windows wait."""
    standing = _standing(liveness, roster, dead_after_us)
    lows_us = standing.open_us | dict.fromkeys(standing.unheard, BOTTOM_US)
    promises = liveness.promises.entries.values()
    former_us = liveness.former_us
    leads_us = (min(each.low_us, each.heard_us) for each in promises if each.low_us is not None)
    devices = tuple(
        AwaitedDevice(name, low_us, former_us.get(name, low_us) if low_us == BOTTOM_US else low_us)
        for name, low_us in sorted(lows_us.items())
    )
    return AwaitedDevices(
        devices, max(leads_us, default=BOTTOM_US), tuple(_promised(liveness, standing, devices))
    )


def _promised(
    liveness: Liveness, standing: _Standing, devices: Iterable[AwaitedDevice]
) -> Iterator[tuple[str, int]]:
    """Yield `AwaitedDevices.promised`, by name."""
    known, furthest_us = liveness.promises.entries, liveness.furthest_us
    found = {each.device: each.former_us for each in devices}
    for device in standing.excluded:
        found[device] = _time(known[device].low_us) if device in known else BOTTOM_US
    for device, at_us in sorted(found.items()):
        yield device, max(at_us, furthest_us.get(device, at_us))


def _standing(liveness: Liveness, roster: Collection[str] | None, dead_after_us: int) -> _Standing:
    """Return what each device means for F; without a clock nobody is silent."""
    promises, listening = liveness.promises.entries, liveness.listening
    known = promises if roster is None else roster
    expected = tuple(sorted(set(known) - liveness.membership.retired.keys()))
    excluded, unheard = list[str](), list[str]()
    open_us: dict[str, int] = {}
    done_us: dict[str, int] = {}
    heard_us = range(0)
    if listening is not None:
        heard_us = range(listening.now_us - dead_after_us, listening.now_us + 1)
    for device in expected:
        promise = promises.get(device)
        if promise is not None and promise.done:
            done_us[device] = _time(promise.low_us)
        elif promise is not None and promise.low_us is not None and promise.heard_us in heard_us:
            open_us[device] = promise.low_us  # as most are; whoever else is looked at closely
        elif listening is not None and liveness.silence_us(promise, listening) > dead_after_us:
            excluded.append(device)
        elif promise is None:
            unheard.append(device)
        elif promise.low_us is None:
            excluded.append(device)
        else:
            open_us[device] = promise.low_us
    return _Standing(expected, tuple(excluded), tuple(unheard), open_us, done_us)


def _time(time_us: int | None) -> int:
    return BOTTOM_US if time_us is None else time_us
