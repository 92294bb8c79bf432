"""What devices leave of a shared set at the broker, while they are on in turns, from one seed.

Devices add elements and remove those of others; they are switched off or have no link for a while,
are killed, and lose their cards. Nothing is lost on the way.
With every second seed what is left there comes late: who has lost its card learns from another
device what it had removed before it gets what it had left, and who is killed after it published
that an element of its own is gone is off again before.
The law (`simulations.world.trace_checks`): what is retained joins to what each device holds that
has nothing more to publish, so that one that it never meets learns all of it. Worlds share a
counter, in which nobody changes what others wrote.

    >>> troubles(1)
    []
    >>> troubles(2)
    []
"""

from collections import Counter
from random import Random
from typing import Any, Final

from crdts import ORSet
from lasp_edge import Program
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.kinds import FRAME_KINDS
from lasp_edge.protocol.sharing import SharedFrame
from simulations.fleet import Fleet
from simulations.world.faults import CALM
from simulations.world.links import LegMessage, Links
from simulations.world.trace_checks import lacking_traces

DEVICES: Final = 4
STEPS: Final = 150
ELEMENTS: Final = 2
_READ, _ADDED = 0.6, 0.5
"""How often a device reads something in a second, and how much of it adds an element."""
_SWITCHED, _CUT, _KILLED, _LOST = 0.1, 0.15, 0.15, 0.04
"""How often a device is switched off or on in a second, has no link, is killed, loses its card."""
_CUT_STEPS: Final = 8
_LATE_STEPS: Final = 40
"""Steps by which what the broker sends comes late, at most: in these, beats differ twice, and who
lacks something has asked for it."""


_LEFT: Final = f"/{FRAME_KINDS[SharedFrame.kind].topic}/"
"""Stands in the topics of what devices leave at the broker."""


class _LateLinks(Links):
    """Links on which what is left at the broker comes late."""

    def __init__(self, random: Random) -> None:
        super().__init__(random, CALM, Counter())

    def send(self, parcel: LegMessage) -> None:
        """Put a message on a leg; what others have left there gets to each receiver some time."""
        if not (parcel.to and _LEFT in parcel.topic):
            super().send(parcel)
            return
        for to in parcel.to:
            at = self._step + self._random.randint(0, _LATE_STEPS)
            self._flying[at].append(parcel._replace(to=(to,)))


def doors() -> Plan:
    """Return a program with a set that all devices share."""
    program = Program("doors")
    seen, gone = program.event("seen"), program.event("gone")
    opened = program.declare(ORSet(), "opened")

    @program.on_event(seen)
    def open_one(event: Any, update: Any) -> None:
        update(opened, ORSet.add, int(event.value))

    @program.on_event(gone)
    def close_one(event: Any, update: Any) -> None:
        update(opened, ORSet.remove, int(event.value))

    return program.plan()


def troubles(seed: int) -> list[str]:
    """Return of what the broker has less than a device; empty where the law holds."""
    random = Random(f"{seed} traces")
    fleet = Fleet(doors(), size=DEVICES, seed=seed)
    try:
        if seed % 2:
            return _late(fleet, random)
        for _ in range(STEPS):
            _disturb(fleet, random)
            fleet.step()
            found = list(lacking_traces(fleet.world))
            if found:
                return found
        return []
    finally:
        fleet.close()


def _late(fleet: Fleet, random: Random) -> list[str]:
    """Let a device remove what another one has added, and one of the two hear late of itself."""
    author, remover, *_ = random.sample(sorted(fleet.devices), DEVICES)
    for element in range(random.randint(1, ELEMENTS)):
        fleet.read(author, "seen", element)
    fleet.step(random.randint(2, 4))
    is_lost = random.random() < 0.5  # noqa: PLR2004
    if is_lost:
        fleet.stop(author)
    fleet.read(remover, "gone", 0)
    fleet.step(random.randint(2, 4))
    fleet.world.links = _LateLinks(random)
    if is_lost:
        fleet.befall("store_lost", remover, 0)
        fleet.start(remover)
    else:
        fleet.kill(author)
        fleet.step(random.randint(2, 4))
        fleet.stop(author)
    fleet.step(2 * _LATE_STEPS)
    return list(lacking_traces(fleet.world))


def _disturb(fleet: Fleet, random: Random) -> None:
    """Let a device read, and others be switched off and on."""
    device, awake = random.choice(sorted(fleet.devices)), sorted(fleet.world.devices)
    if random.random() < _SWITCHED:
        if device not in awake:
            fleet.start(device)
        elif len(awake) > 1:
            fleet.stop(device)
    reader = random.choice(sorted(fleet.world.devices))
    if random.random() < _CUT:
        fleet.cut(random.choice(sorted(fleet.world.devices)), _CUT_STEPS)
    if random.random() < _KILLED:
        fleet.kill(reader)
    if random.random() < _LOST:
        fleet.befall("store_lost", reader, 0)
        fleet.start(reader)
    if random.random() < _READ:
        event = "seen" if random.random() < _ADDED else "gone"
        fleet.read(reader, event, random.randrange(ELEMENTS))
