"""Frontier: how far every device has come, from which follows what can still arrive.

Each device promises a **low watermark**: it will send no reading older than that. The frontier of
a fleet is the least promise of the devices that count, and a result about an earlier time is final.
Which devices count is for the reader to say (`lasp_edge.protocol`); this state holds what they
promised. A frontier that counted events up and down, as stream processors on reliable links do,
would be wrong for ever after one duplicate.

Promises of a device are ordered by their version. Two of one version exist only if the device was
cloned, and then the greater (low watermark, done) wins everywhere. One that came again was heard
when it first came: of two equal ones the earlier `heard_us` stands.

Cost: a device's name, at most 40 B for the version, the two times and the flag; nothing grows but
the number of devices.

>>> from crdts import Frontier, Replica
>>> kitchen, cellar = Replica(1, 7, "kitchen"), Replica(1, 9, "cellar")
>>> frontier = Frontier()
>>> frontier |= frontier.promise(kitchen, 1, low_us=60_000_000, heard_us=61_000_000)
>>> frontier |= frontier.promise(cellar, 1, low_us=50_000_000, heard_us=62_000_000)
>>> frontier |= frontier.promise(cellar, 1, low_us=50_000_000, heard_us=63_000_000)
>>> frontier.value
{'cellar': 50000000, 'kitchen': 60000000}
>>> frontier.entries["cellar"].heard_us
62000000

Source: Tyler Akidau et al., "The Dataflow Model", VLDB 2015 (watermarks); Derek Murray et al.,
"Naiad: A Timely Dataflow System", SOSP 2013 (frontiers).
"""

from typing import Any, NamedTuple, Self

from crdts.chain_map import DeviceMap
from crdts.mutator import mutator
from crdts.plain import INTEGERS, need_int, need_tuple
from crdts.replica import SEQS, Replica, Version

BOTTOM_US = -INTEGERS
"""The time below every other, in microseconds: the low watermark of who promises nothing."""


class Promise(NamedTuple):
    """A device's newest low watermark.

    >>> from crdts import Frontier, Replica
    >>> kitchen = Replica(1, 7, "kitchen")
    >>> frontier = Frontier().promise(kitchen, 1, low_us=60_000_000, heard_us=61_000_000)
    >>> promise = frontier.entries["kitchen"]
    >>> promise.low_us, promise.done
    (60000000, False)

    Attributes:
        version: how new the promise is.
        low_us: nothing older will come from the device; None where it cannot promise anything.
        done: nothing at all will come from it any more.
        heard_us: when this version was first heard.
    """

    version: Version
    low_us: int | None
    done: bool
    heard_us: int

    def __gt__(self, other: Any) -> bool:
        """Return whether this promise replaces `other`."""
        if self.version != other.version:
            return bool(self.version > other.version)
        return bool(self._among_equals() > other._among_equals())

    def _among_equals(self) -> tuple[int, bool, int]:
        return (BOTTOM_US if self.low_us is None else self.low_us, self.done, -self.heard_us)


class Frontier(DeviceMap[Promise]):
    """Device -> its newest promise.

    >>> from crdts import Replica
    >>> frontier = Frontier()
    >>> for name, low_us in (("kitchen", 60_000_000), ("cellar", 50_000_000)):
    ...     frontier |= frontier.promise(Replica(1, 7, name), 1, low_us, heard_us=70_000_000)
    >>> frontier.value  # nothing older than the least of these comes from any of them
    {'cellar': 50000000, 'kitchen': 60000000}
    """

    __slots__ = ()
    what = "a frontier"

    @property
    def value(self) -> dict[str, int | None]:
        """Device -> low watermark in µs since the epoch, in the order of the devices' names."""
        return {device: self.entries[device].low_us for device in sorted(self.entries)}

    @mutator
    def promise(
        self, replica: Replica, seq: int, low_us: int | None, heard_us: int, *, done: bool = False
    ) -> Self:
        """Return the delta in which `replica` promises to send nothing older than `low_us`.

        Raises:
            ValueError: a time is not an integer of 64 bits, or `seq` not from 1 to 2**40 - 1.
        """
        version = Version.of(replica, need_int(seq, "a seq", least=1, below=SEQS))
        return type(self)({replica.device: _checked(version, low_us, done, heard_us)})

    @staticmethod
    def row(value: Promise) -> tuple[Any, ...]:
        return (*value.version, value.low_us, value.done, value.heard_us)

    @staticmethod
    def value_of(row: Any) -> Promise:
        *version, low_us, done, heard_us = need_tuple(row, "a promise", 6)
        return _checked(Version.checked(*version), low_us, done, heard_us)


def _checked(version: Version, low_us: Any, done: Any, heard_us: Any) -> Promise:
    if low_us is not None:
        # The least integer would be as low as no promise, and two unequal promises would be level.
        need_int(low_us, "a low watermark", least=BOTTOM_US + 1)
    if type(done) is not bool:
        raise ValueError(f"a promise needs True or False for done, got {done!r}")
    return Promise(version, low_us, done, need_int(heard_us, "a time", least=BOTTOM_US))
