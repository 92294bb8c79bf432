"""OwnedMap: device -> its newest entry, each written by its device alone.

This is how a dynamic variable is replicated. Only the owner writes its entry, and numbers what it
writes, so the greater **version** is simply the newer entry and replaces the older one whole: a sum
beside its count is never torn, and one that arrives twice is not counted twice.

Versions decide. Equal versions with different payloads exist only if a device was cloned; then the
greater encoding wins everywhere, so the join stays total. One entry is an irreducible.

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

from typing import Any, NamedTuple, Self

from crdts.chain_map import DeviceMap
from crdts.mutator import mutator
from crdts.plain import need_int, need_tuple, need_value, outranks
from crdts.replica import SEQS, Replica, Version


class Entry(NamedTuple):
    """What a device last wrote, and how new that is.

    >>> from crdts import OwnedMap, Replica
    >>> means = OwnedMap().put(Replica(1, 7, "kitchen"), 2, (3, 60))
    >>> means.entries["kitchen"].payload, means.entries["kitchen"].version.seq
    ((3, 60), 2)
    """

    version: Version
    payload: Any

    def __gt__(self, other: Any) -> bool:
        """Return whether this entry is newer than `other`; a clone's clash has a winner, too."""
        if self.version != other.version:
            return bool(self.version > other.version)
        return outranks(self.payload, other.payload)


class OwnedMap(DeviceMap[Entry]):
    """Device -> its newest entry; payloads are plain values.

    >>> from crdts import Replica
    >>> before, after = Replica(1, 7, "kitchen"), Replica(2, 9, "kitchen")
    >>> means = OwnedMap()
    >>> means |= means.put(before, 1, (3, 60))
    >>> restarted = means | means.put(after, 1, (4, 88))
    >>> (restarted | means).value
    {'kitchen': (4, 88)}
    """

    __slots__ = ()
    what = "an owned map"

    @property
    def value(self) -> dict[str, Any]:
        """Device -> payload, in the order of the devices' names."""
        return {device: self.entries[device].payload for device in sorted(self.entries)}

    @mutator
    def put(self, replica: Replica, seq: int, payload: Any) -> Self:
        """Return the delta in which `replica` replaces its device's entry by `payload`.

        `seq` is greater than that of every earlier write of the replica.

        It changes nothing where a newer entry of the device is known.

        Raises:
            ValueError: the payload is not a plain value, or `seq` is not from 1 to 2**40 - 1.
        """
        version = Version.of(replica, need_int(seq, "a seq", least=1, below=SEQS))
        return type(self)({replica.device: Entry(version, need_value(payload))})

    @staticmethod
    def row(value: Entry) -> tuple[Any, ...]:
        return (*value.version, value.payload)

    @staticmethod
    def value_of(row: Any) -> Entry:
        *version, payload = need_tuple(row, "an entry", 4)
        return Entry(Version.checked(*version), need_value(payload))
