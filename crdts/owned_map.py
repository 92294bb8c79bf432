"""OwnedMap: device -> its newest entry, each written by its device alone.

This is how a dynamic variable is replicated. Only the owner writes its entry, and numbers what it
writes, so the greater **version** is simply the newer entry and replaces the older one whole: a sum
beside its count is never torn, and one that arrives twice is not counted twice.

Versions decide. Equal versions with different payloads exist only if a device was cloned; then the
greater encoding wins everywhere, so the join stays total, and `clashes` reports it. One entry is an
irreducible.

Cost: an entry is its payload, its device's name and 8 to 20 B for the version. A device's entry is
replaced, never added to, so nothing grows but the number of devices.

>>> from crdts import OwnedMap, Replica
>>> before, after = Replica(1, 7, "kitchen"), Replica(2, 9, "kitchen")
>>> means = OwnedMap()
>>> means |= means.put(before, 1, (3, 60))
>>> means |= means.put(before, 2, (4, 84))
>>> restarted = means | means.put(after, 1, (4, 88))
>>> (restarted | means).value
{'kitchen': (4, 88)}

Source: Paulo Sérgio Almeida, Ali Shoker, Carlos Baquero, "Delta State Replicated Data Types", JPDC
111, 2018 (lexicographic pairs); Christopher Meiklejohn, Seyed Hossein Haeri, Peter Van Roy,
"Declarative, Sliding Window Aggregations for Computations at the Edge", EdgeCom 2016 (dynamic
variables).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from crdts.lattice import Lattice
from crdts.plain import need_int, need_text, need_tuple, need_value, outranks
from crdts.replica import DEVICE_BYTES, SEQS, Replica, Version


class Entry(NamedTuple):
    """What a device last wrote, and how new that is."""

    version: Version
    payload: Any

    def is_newer_than(self, other: "Entry") -> bool:
        """Return whether this entry replaces `other`, wherever the two meet."""
        if self.version != other.version:
            return self.version > other.version
        return outranks(self.payload, other.payload)


@dataclass(slots=True)
class OwnedMap(Lattice):
    """Device -> its newest entry; payloads are plain values."""

    entries: dict[str, Entry] = field(default_factory=dict)

    @property
    def value(self) -> dict[str, Any]:
        """Device -> payload, in the order of the devices' names."""
        return {device: self.entries[device].payload for device in sorted(self.entries)}

    def put(self, replica: Replica, seq: int, payload: Any) -> Self:
        """Return the delta in which `replica`'s device says `payload`, its `seq`-th word.

        It changes nothing where a newer entry of the device is known.

        Raises:
            ValueError: the payload is no plain value, or `seq` is not from 1 to 2**40 - 1.
        """
        version = Version.of(replica, need_int(seq, "a seq", least=1, below=SEQS))
        return type(self)({replica.device: Entry(version, need_value(payload))})

    def __ior__(self, other: Self) -> Self:
        entries = self.entries
        for device, entry in other.entries.items():
            mine = entries.get(device)
            if mine is None or entry.is_newer_than(mine):
                entries[device] = entry
        return self

    def __le__(self, other: Self) -> bool:
        theirs = other.entries
        return all(
            device in theirs and not entry.is_newer_than(theirs[device])
            for device, entry in self.entries.items()
        )

    def __sub__(self, other: Self) -> Self:
        theirs = other.entries
        return type(self)(
            {
                device: entry
                for device, entry in self.entries.items()
                if device not in theirs or entry.is_newer_than(theirs[device])
            }
        )

    def irreducibles(self) -> Iterator[Self]:
        return (type(self)({device: self.entries[device]}) for device in sorted(self.entries))

    def to_plain(self) -> dict[str, tuple[Any, ...]]:
        entries = self.entries
        return {
            device: (*entries[device].version, entries[device].payload)
            for device in sorted(entries)
        }

    @classmethod
    def from_plain(cls, plain: Any) -> Self:
        if type(plain) is not dict:
            raise ValueError(f"an owned map needs a map by device, got {type(plain).__name__}")
        entries = {}
        for device, parts in plain.items():
            *version, payload = need_tuple(parts, "an entry", 4)
            need_text(device, "a device name", DEVICE_BYTES)
            entries[device] = Entry(Version.checked(*version), cls.need_payload(payload))
        return cls(entries)

    @staticmethod
    def need_payload(payload: Any) -> Any:
        """Return `payload` if an entry may hold it.

        Raises:
            ValueError: it is no plain value.
        """
        return need_value(payload)


def clashes(a: OwnedMap, b: OwnedMap) -> list[str]:
    """Return the devices that wrote two payloads under one version: each was cloned."""
    return sorted(
        device
        for device, entry in a.entries.items()
        if device in b.entries
        and entry.version == b.entries[device].version
        and entry.payload != b.entries[device].payload
    )
