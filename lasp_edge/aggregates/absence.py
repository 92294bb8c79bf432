"""Absence: which devices were silent for too long, and a fold's entries without theirs.

A device that is broken sends nothing any more, and its last entry would count for ever. A device
that misses it notes down up to which version it was heard. Such a note is an entry of the device
that makes it, and travels like all entries; so every tier has the same notes, and none asks a
clock. Of all notes on a device the greatest version stands. While the device has written nothing
after that version none of its entries counts. Its next entry is greater, so it counts again when it
is heard.

What counts is a function of the entries, the notes and the membership. The digest is that of the
entries that count, so equal `inputs` mean equal results here, too.

    >>> from crdts import Replica
    >>> from lasp_edge import folds
    >>> kitchen, cellar = Replica(1, 7, "kitchen"), Replica(1, 9, "cellar")
    >>> entries, notes = FleetFold(folds.mean()), FleetFold(Absent(), keyed=True)
    >>> _ = entries.put_own(kitchen, "", (3, 60)), entries.put_own(cellar, "", (1, 45))
    >>> present = PresentFold(entries, notes)
    >>> _ = notes.put_own(kitchen, "cellar", tuple(entries.version("cellar")))
    >>> present.total("").partial, present.devices
    ((3, 60), ['kitchen'])

Source: Abhinandan Das, Indranil Gupta, Ashish Motivala, "SWIM: Scalable Weakly-consistent
Infection-style Process Group Membership Protocol", DSN 2002 (a member refutes its suspicion by a
message of its own that is greater).
"""

from functools import reduce

from crdts import Version
from lasp_edge.aggregates.fleet import FleetFold, Total, counting, holders, partial_of, row_hash
from lasp_edge.folds.bounds import devices_in, is_of_no_sample
from lasp_edge.folds.columns import Column, Op, Partial
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import Resolution
from lasp_edge.protocol.inputs import MODULUS


class Absent(Fold):
    """The form of a note: the last version that was heard of a device, which is its key."""

    name = "absent"
    columns = (
        Column("absent_incarnation", Op.MAX),
        Column("absent_nonce", Op.MAX),
        Column("absent_seq", Op.MAX),
    )
    parts = ()

    def lift(self, value: int, time_us: int = 0) -> Partial:  # noqa: ARG002 - the signature
        raise TypeError("a note is made from no reading")

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:  # noqa: ARG002 - the signature
        return {}


def noted(notes: FleetFold) -> dict[str, Version]:
    """Return device -> the greatest version in the notes on it that count."""
    found: dict[str, Version] = {}
    if not notes.keys:
        return found  # nobody is absent, most of the time
    for _, _, entry in counting(notes):
        for absent, _, partial in entry.payload:
            version = Version(*partial)
            found[absent] = max(version, found.get(absent, version))
    return found


class PresentFold:
    """The entries of a fold, without those of absent devices.

    Args:
        entries: of all devices.
        notes: of the absent ones.
    """

    def __init__(self, entries: FleetFold, notes: FleetFold) -> None:
        self._entries, self._notes = entries, notes

    @property
    def absent(self) -> list[str]:
        """The devices whose entries do not count since they are absent, sorted."""
        found = []
        for device, version in sorted(noted(self._notes).items()):
            newest = self._entries.version(device)
            if newest is not None and newest <= version:
                found.append(device)
        return found

    @property
    def devices(self) -> list[str]:
        """The devices that have an entry and count, sorted."""
        gone = frozenset(self.absent)
        return [device for device in self._entries.devices if device not in gone]

    @property
    def keys(self) -> list[str]:
        """The keys that some device has that counts, sorted."""
        if not self._left_out():
            return self._entries.keys
        return [key for key in self._entries.keys if self.holders(key)]

    @property
    def digest(self) -> int:
        """A digest of the entries that count, and of the membership."""
        hashes = [hashed for rows in self._left_out().values() for hashed in rows.values()]
        return (self._entries.digest - sum(hashes)) % MODULUS

    def holders(self, key: str) -> list[str]:
        """Return the devices that have a key and count, sorted."""
        gone = frozenset(self.absent)
        return [device for device in holders(self._entries, key) if device not in gone]

    def total(self, key: str) -> Total:
        """Return the combination over the devices that count for one key."""
        whole = self._entries.total(key)
        hashes = [rows[key] for rows in self._left_out().values() if key in rows]
        if not hashes:
            return whole
        found = [self.partial(device, key) for device in self.holders(key)]
        partials = [partial for partial in found if partial is not None]
        fold = self._entries.fold
        digest = (whole.digest - sum(hashes)) % MODULUS
        total = reduce(fold.combine, partials, fold.zero)
        having = sum(bool(key) or not is_of_no_sample(fold, each) for each in partials)
        return Total(total, digest, devices_in(fold, total, having))

    def partial(self, device: str, key: str) -> Partial | None:
        """Return a device's partial of a key, absent or not; None where the key is unknown."""
        return partial_of(self._entries, device, key)

    def _left_out(self) -> dict[str, dict[str, int]]:
        """Return absent device -> key -> hash of its row, of those that are not retired."""
        members = frozenset(self._entries.devices)
        found: dict[str, dict[str, int]] = {}
        for device in self.absent:
            if device in members:
                for shard in self._entries.shards:
                    entry = self._entries.entry(device, shard)
                    if entry is not None:
                        hashes = {row[0]: row_hash(device, entry, row) for row in entry.payload}
                        found.setdefault(device, {}).update(hashes)
        return found
