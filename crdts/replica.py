"""Who writes: replicas, and the dots and versions that they number their writes with.

A **replica** is one life of a writer: every process start is a new one, and its id is never used
twice, whatever was restored, cloned or forgotten. Its `incarnation` is one more than the greatest
its device knows of; its `nonce` is 32 random bits, so that two copies of one disk image differ.
Replicas are ordered by (incarnation, nonce): the later life is the greater.

A **dot** names one write of one replica; a **version** is a dot whose device is known from where it
stands, as the key of a map.

>>> before, after = Replica(1, 0xC0FFEE, "pi-3"), Replica(2, 0xBEEF, "pi-3")
>>> before < after
True
>>> Version.of(before, 60) < Version.of(after, 1)
True

Source: Paulo Sérgio Almeida, Carlos Baquero, Ricardo Gonçalves, Nuno Preguiça, Victor Fonte,
"Scalable and Accurate Causality Tracking for Eventually Consistent Stores", DAIS 2014 (dots).
"""

from typing import Any, NamedTuple, Self

from crdts.plain import need_int, need_text

INCARNATIONS = 1 << 30  # incarnation < INCARNATIONS: more starts than a device can live through
NONCES = 1 << 32
SEQS = 1 << 40  # seq < SEQS: a thousand writes a second for 34 years
DEVICE_BYTES = 255


class Replica(NamedTuple):
    """One life of a writer: `incarnation` < 2**30, `nonce` < 2**32, its device's name.

    >>> before, after = Replica(1, 0xC0FFEE, "pi-3"), Replica(2, 0xBEEF, "pi-3")
    >>> before < after
    True
    """

    incarnation: int
    nonce: int
    device: str

    @classmethod
    def checked(cls, incarnation: Any, nonce: Any, device: Any) -> Self:
        """Return the replica.

        Raises:
            ValueError: a number is out of range, or `device` is not a name of at most 255 bytes.
        """
        _check_life(incarnation, nonce)
        return cls(incarnation, nonce, need_text(device, "a device name", DEVICE_BYTES))


def _check_life(incarnation: Any, nonce: Any) -> None:
    """Check the two numbers of a life, which stand in all that is sent."""
    if type(incarnation) is not int or not 0 <= incarnation < INCARNATIONS:
        need_int(incarnation, "an incarnation", below=INCARNATIONS)  # says what is wrong
    if type(nonce) is not int or not 0 <= nonce < NONCES:
        need_int(nonce, "a nonce", below=NONCES)


NOBODY = Replica(0, 0, "")  # below every replica: the writer of what was never written


class Dot(NamedTuple):
    """One write: the `seq`-th of `replica`, counted from 1.

    >>> from crdts import Replica
    >>> kitchen = Replica(1, 7, "kitchen")
    >>> Dot(kitchen, 1) < Dot(kitchen, 2)
    True
    """

    replica: Replica
    seq: int


class Version(NamedTuple):
    """How new an entry of a known device is; the greater version is the newer entry.

    >>> from crdts import Replica
    >>> before, after = Replica(1, 0xC0FFEE, "pi-3"), Replica(2, 0xBEEF, "pi-3")
    >>> Version.of(before, 60) < Version.of(after, 1)
    True
    """

    incarnation: int
    nonce: int
    seq: int

    @classmethod
    def of(cls, replica: Replica, seq: int) -> Self:
        """Return the version that `replica` gives to its `seq`-th write."""
        return cls(replica.incarnation, replica.nonce, seq)

    @classmethod
    def checked(cls, incarnation: Any, nonce: Any, seq: Any) -> Self:
        """Return the version.

        Raises:
            ValueError: a part is not an integer in its range.
        """
        _check_life(incarnation, nonce)
        return cls(incarnation, nonce, need_int(seq, "a seq", below=SEQS))

    def replica(self, device: str) -> Replica:
        """Return the replica of `device` that gave this version."""
        return Replica(self.incarnation, self.nonce, device)


def by_device(columns: dict[Replica, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    """Return replica -> integers as device -> (incarnation, nonce, *integers, ...), both sorted.

    A device's name is written once however often it was started, so that a start costs some 12 B.
    """
    devices: dict[str, tuple[Any, ...]] = {}
    for replica in sorted(columns, key=lambda replica: (replica.device, replica)):
        row = (replica.incarnation, replica.nonce, *columns[replica])
        devices[replica.device] = devices.get(replica.device, ()) + row
    return devices


def from_devices(plain: Any, what: str, width: int) -> dict[Replica, tuple[Any, ...]]:
    """Return what `by_device` was given; the `width` integers a replica are still unchecked.

    Raises:
        ValueError: `plain` is not what `by_device` returns.
    """
    if type(plain) is not dict:
        raise ValueError(f"{what} needs a map by device, got {type(plain).__name__}")
    columns = {}
    step = width + 2
    for device, flat in plain.items():
        if type(flat) is not tuple or not flat or len(flat) % step:
            raise ValueError(f"{what} needs {step} integers a replica of {device!r}, got {flat!r}")
        for at in range(0, len(flat), step):
            replica = Replica.checked(flat[at], flat[at + 1], device)
            columns[replica] = flat[at + 2 : at + step]
    return columns
