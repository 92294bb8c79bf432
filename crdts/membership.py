"""Membership: which devices were retired, up to which of their writes, and which came back.

A device counts from its first word on; nobody has to admit it. One that is broken, sold or cloned
is **retired** at a version: what it wrote up to there counts for ever, also when it arrives late,
and nothing after it until the device is **admitted** again. So membership is data, and a result
over a fleet is a function of the entries and of it: no clock decides who is gone.

An operator's word is numbered by `control`, one more than the greatest known, and the greater one
wins. Two operators who did not know of each other may give one number; then a retirement wins over
an admission, and of two retirements the one that lets more count: (control, retired, version) is
the order, it is total, and one device's entry is an irreducible.

While a device stays retired its version never sinks: what was said to count for ever does. After an
admission, under which everything counts, the next retirement says anew up to where.

Cost: an entry is its device's name and 6 to 22 B on the wire, some 300 B in memory, and only
devices of which an operator ever spoke have one. A device's entry is replaced, never added to, so
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
Infection-style Process Group Membership Protocol", DSN 2002 (numbered words on members override
each other in one total order); here operators speak, and never a failure detector.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from crdts.lattice import Lattice
from crdts.plain import need_int, need_text, need_tuple
from crdts.replica import DEVICE_BYTES, SEQS, Version

NEVER = Version(0, 0, 0)  # below every write: of a device that is retired here nothing counts


class Member(NamedTuple):
    """An operator's word on a device; of two, the greater (control, retired, version) stands.

    `version` is up to where the device's writes count while it is retired.
    """

    control: int
    retired: bool
    version: Version

    @classmethod
    def checked(cls, control: Any, retired: Any, version: Version) -> Self:
        """Return the word.

        Raises:
            ValueError: `control` is not from 1 to 2**40 - 1, or `retired` no bool.
        """
        if type(retired) is not bool:
            raise ValueError(f"a member needs True or False for retired, got {retired!r}")
        return cls(need_int(control, "a control", least=1, below=SEQS), retired, version)


@dataclass(slots=True)
class Membership(Lattice):
    """Device -> what operators last said of it; absent means nothing, and then it counts."""

    members: dict[str, Member] = field(default_factory=dict)

    @property
    def retired(self) -> dict[str, Version]:
        """Device -> the version up to which it counts, of the retired, by device."""
        members = self.members
        return {
            device: members[device].version for device in sorted(members) if members[device].retired
        }

    @property
    def value(self) -> dict[str, Version]:
        """What `retired` says."""
        return self.retired

    def admits(self, device: str, version: Version) -> bool:
        """Return whether what `device` wrote at `version` counts for ever, retired or not."""
        member = self.members.get(device)
        return member is None or not member.retired or version <= member.version

    def retire(self, device: str, version: Version) -> Self:
        """Return the delta in which nothing counts that `device` wrote after `version`.

        Where it is retired already, at a greater version, that one stays.

        Raises:
            ValueError: the device's name is none, or its control would reach 2**40.
        """
        standing = self.members.get(device)
        if standing is not None and standing.retired:
            version = max(version, standing.version)
        return self._said(device, version, retired=True)

    def admit(self, device: str) -> Self:
        """Return the delta in which `device` counts again, whatever it writes.

        Raises:
            ValueError: the device's name is none, or its control would reach 2**40.
        """
        standing = self.members.get(device)
        return self._said(device, standing.version if standing else NEVER, retired=False)

    def _said(self, device: str, version: Version, *, retired: bool) -> Self:
        need_text(device, "a device name", DEVICE_BYTES)
        known = self.members.get(device)
        control = known.control + 1 if known else 1
        return type(self)({device: Member.checked(control, retired, version)})

    def __ior__(self, other: Self) -> Self:
        members = self.members
        for device, member in other.members.items():
            mine = members.get(device)
            if mine is None or member > mine:
                members[device] = member
        return self

    def __le__(self, other: Self) -> bool:
        theirs = other.members
        return all(
            device in theirs and member <= theirs[device] for device, member in self.members.items()
        )

    def __sub__(self, other: Self) -> Self:
        theirs = other.members
        return type(self)(
            {
                device: member
                for device, member in self.members.items()
                if device not in theirs or member > theirs[device]
            }
        )

    def irreducibles(self) -> Iterator[Self]:
        return (type(self)({device: self.members[device]}) for device in sorted(self.members))

    def to_plain(self) -> dict[str, tuple[Any, ...]]:
        members = self.members
        return {
            device: (members[device].control, members[device].retired, *members[device].version)
            for device in sorted(members)
        }

    @classmethod
    def from_plain(cls, plain: Any) -> Self:
        if type(plain) is not dict:
            raise ValueError(f"a membership needs a map by device, got {type(plain).__name__}")
        members = {}
        for device, parts in plain.items():
            control, retired, *version = need_tuple(parts, "a member", 5)
            need_text(device, "a device name", DEVICE_BYTES)
            members[device] = Member.checked(control, retired, Version.checked(*version))
        return cls(members)
