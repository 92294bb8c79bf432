"""Membership: which devices were retired, up to which of their writes, and which came back.

A device counts from its first frame on; nobody has to admit it. One that is broken, sold or cloned
is **retired** at a version: what it wrote up to there counts for ever, also when it arrives late,
and nothing after it until the device is **admitted** again. So membership is data, and a result
over a fleet is a function of the entries and of it: no clock decides who is gone.

An operator's decision is numbered by `control`, above the greatest known, and the greater
one wins. Two operators who did not know of each other may give one number; then a retirement wins
over an admission, and of two retirements the one that lets more count: (control, retired, version)
is the order, it is total, and one device's entry is an irreducible.

While a device stays retired its version never sinks, so what counted once counts for ever. After an
admission everything counts, and the next retirement sets a new version.

Cost: an entry is its device's name and 6 to 22 B on the wire, some 300 B in memory, and only
devices on which an operator ever decided have one. A device's entry is replaced, never added to, so
nothing grows but the number of such devices.

>>> from crdts import Membership, Replica, Version
>>> kitchen = Replica(3, 7, "kitchen")
>>> here = Membership()
>>> here |= here.retire("kitchen", Version.of(kitchen, 60))
>>> here.retired
{'kitchen': Version(incarnation=3, nonce=7, seq=60)}
>>> here.admits("kitchen", Version.of(kitchen, 60)), here.admits("kitchen", Version.of(kitchen, 61))
(True, False)
>>> there = here | here.admit("kitchen")
>>> (here | there).retired, there.admits("kitchen", Version.of(kitchen, 61))
({}, True)

Source: Abhinandan Das, Indranil Gupta, Ashish Motivala, "SWIM: Scalable Weakly-consistent
Infection-style Process Group Membership Protocol", DSN 2002 (numbered messages on members
override each other in one total order); here operators decide, and never a failure detector.
"""

from typing import Any, NamedTuple, Self

from crdts.chain_map import DeviceMap
from crdts.plain import need_int, need_text, need_tuple
from crdts.replica import DEVICE_BYTES, SEQS, Version

NEVER = Version(0, 0, 0)  # below every write: of a device that is retired here nothing counts


class Member(NamedTuple):
    """An operator's decision on a device; the greatest (control, retired, version) stands.

    >>> from crdts import Membership, Replica, Version
    >>> fleet = Membership().retire("kitchen", Version.of(Replica(3, 7, "kitchen"), 60))
    >>> fleet.entries["kitchen"].retired, fleet.entries["kitchen"].version.seq
    (True, 60)

    Attributes:
        control: the number of the decision, from 1.
        retired: whether the device is retired.
        version: the last of the device's writes that counts while it is retired.
    """

    control: int
    retired: bool
    version: Version

    @classmethod
    def checked(cls, control: Any, retired: Any, version: Version) -> Self:
        """Return the decision.

        Raises:
            ValueError: `control` is not from 1 to 2**40 - 1, or `retired` is not a bool.
        """
        if type(retired) is not bool:
            raise ValueError(f"a member needs True or False for retired, got {retired!r}")
        return cls(need_int(control, "a control", least=1, below=SEQS), retired, version)


class Membership(DeviceMap[Member]):
    """Device -> what operators last decided on it; a device without an entry counts.

    >>> from crdts import Replica, Version
    >>> kitchen = Replica(3, 7, "kitchen")
    >>> fleet = Membership()
    >>> fleet |= fleet.retire("kitchen", Version.of(kitchen, 60))
    >>> [fleet.admits("kitchen", Version.of(kitchen, seq)) for seq in (60, 61)]
    [True, False]
    >>> fleet |= fleet.admit("kitchen")
    >>> fleet.admits("kitchen", Version.of(kitchen, 61))
    True
    """

    __slots__ = ()
    what = "a membership"

    @property
    def retired(self) -> dict[str, Version]:
        """Device -> the version up to which it counts, of the retired, by device."""
        entries = self.entries
        if not entries:
            return {}  # most fleets have none, and sinks ask at each turn
        return {
            device: entries[device].version for device in sorted(entries) if entries[device].retired
        }

    @property
    def value(self) -> dict[str, Version]:
        """The devices that are retired, each with the last version that counts."""
        return self.retired

    def admits(self, device: str, version: Version) -> bool:
        """Return whether what `device` wrote at `version` counts for ever, retired or not."""
        member = self.entries.get(device)
        return member is None or not member.retired or version <= member.version

    def retire(self, device: str, version: Version, least: int = 1) -> Self:
        """Return the delta in which nothing counts that `device` wrote after `version`.

        Where it is retired already, at a greater version, that one stays. The decision's number is
        at least `least`.

        Raises:
            ValueError: `device` is not a valid name, or its control would reach 2**40.
        """
        standing = self.entries.get(device)
        if standing is not None and standing.retired:
            version = max(version, standing.version)
        return self._decided(device, version, least, retired=True)

    def admit(self, device: str, least: int = 1) -> Self:
        """Return the delta in which `device` counts again, whatever it writes; see `retire`.

        Raises:
            ValueError: `device` is not a valid name, or its control would reach 2**40.
        """
        standing = self.entries.get(device)
        version = standing.version if standing else NEVER
        return self._decided(device, version, least, retired=False)

    def _decided(self, device: str, version: Version, least: int, *, retired: bool) -> Self:
        need_text(device, "a device name", DEVICE_BYTES)
        known = self.entries.get(device)
        control = max(least, known.control + 1) if known else least
        return type(self)({device: Member.checked(control, retired, version)})

    @staticmethod
    def row(value: Member) -> tuple[Any, ...]:
        return (value.control, value.retired, *value.version)

    @staticmethod
    def value_of(row: Any) -> Member:
        control, retired, *version = need_tuple(row, "a member", 5)
        return Member.checked(control, retired, Version.checked(*version))
