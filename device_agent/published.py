"""One local fold over the fleet: each device's newest partial, and their combination.

The combination and the digest are kept up to date entry by entry: with an inverse a replaced
partial is retracted, without one (min, max) the total is made anew, in the order of devices, when
somebody asks for it.
"""

from crdts import Entry, OwnedMap, Replica, Version
from lasp_edge.declarations import LocalFold
from lasp_edge.fold import Partial
from lasp_edge.inputs import MODULUS, entry_hash, text_hash
from lasp_edge.messages import VariableFrame


class Published:
    """The entries of one local fold.

    Attributes:
        fold: the local fold.
        seq: this device's newest word in this life.
    """

    __slots__ = ("_entries", "_hash_sum", "_hashes", "_total", "fold", "seq")

    def __init__(self, fold: LocalFold) -> None:
        self.fold = fold
        self.seq = 0
        self._entries = OwnedMap()
        self._hashes: dict[str, int] = {}
        self._hash_sum = 0
        self._total: Partial | None = fold.fold.zero

    @property
    def devices(self) -> list[str]:
        """The devices that have an entry, sorted."""
        return sorted(self._entries.entries)

    @property
    def digest(self) -> int:
        """What tells these entries from others; nobody was retired yet."""
        return (self._hash_sum + text_hash("")) % MODULUS

    def version(self, device: str) -> Version | None:
        """Return the version of a device's entry."""
        entry = self._entries.entries.get(device)
        return entry.version if entry else None

    def put_own(self, replica: Replica, partial: Partial) -> None:
        """Replace this device's own entry."""
        self.seq += 1
        self.put(replica.device, Version.of(replica, self.seq), partial)

    def put(self, device: str, version: Version, partial: Partial) -> bool:
        """Join one entry; return whether it was news."""
        before, entry = self._entries.entries.get(device), Entry(version, partial)
        if before is not None and not entry.is_newer_than(before):
            return False
        self._entries |= self._entries.put(version.replica(device), version.seq, partial)
        changed = entry_hash("", device, version, partial)
        self._hash_sum += changed - self._hashes.get(device, 0)
        self._hashes[device] = changed
        self._retotal(before, partial)
        return True

    def _retotal(self, before: Entry | None, partial: Partial) -> None:
        fold = self.fold.fold
        if self._total is None or not fold.invertible:
            self._total = None
            return
        gone = before.payload if before else fold.zero
        self._total = fold.combine(fold.retract(self._total, gone), partial)

    def combined(self) -> Partial:
        """Return the combination of all entries."""
        if self._total is None:
            total = self.fold.fold.zero
            for partial in self._entries.value.values():
                total = self.fold.fold.combine(total, partial)
            self._total = total
        return self._total

    def frame(self, replica: Replica) -> VariableFrame:
        """Return this device's entry as it is published."""
        partial: Partial = self._entries.entries[replica.device].payload
        return VariableFrame(replica, self.seq, self.fold.name, self.fold.stream, partial)
