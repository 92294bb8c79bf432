"""The fleet fold: every device's newest partials by key, and their combination over the devices.

The state is an `OwnedMap` a shard of the keys: a device's **entry** of a shard holds its rows (key,
seq, partial), in the order of the keys, and the greater version replaces it whole. So a key that is
not in the newer entry is gone, and a sum is never torn from its count. Whoever holds the same
entries, under the same membership, has the same totals and the same digest.

Totals and digests are kept up to date row by row, so a change costs what its rows cost and not what
all keys, or all devices, would. Entries of retired devices stay, and count again when they are
admitted; until then they are in no total, digest or list of devices.

    >>> from crdts import Replica
    >>> from lasp_edge import folds
    >>> kitchen, cellar = Replica(1, 7, "kitchen"), Replica(1, 9, "cellar")
    >>> here, there = FleetFold(folds.mean()), FleetFold(folds.mean())
    >>> _ = here.put_own(kitchen, "", (3, 60)), there.put_own(cellar, "", (1, 24))
    >>> here.join(0, there.state(0)), here.join(0, there.state(0))
    (True, False)
    >>> here.total("").partial, here.total("").devices
    ((4, 84), 2)

Source: Christopher Meiklejohn, Seyed Hossein Haeri, Peter Van Roy, "Declarative, Sliding Window
Aggregations for Computations at the Edge", EdgeCom 2016 (dynamic variables).
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cached_property
from operator import itemgetter
from sys import intern
from typing import NamedTuple

from crdts import Entry, Membership, OwnedMap, Replica, Version
from lasp_edge.aggregates.sliding import Keyed, keyed
from lasp_edge.folds.bounds import devices_in, gives_zero
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.fold import Fold
from lasp_edge.protocol.entries import EntryRows, VersionedPartial
from lasp_edge.protocol.inputs import MODULUS, entry_hash, membership_text, text_hash
from lasp_edge.protocol.shards import KEY_SHARDS, key_shard

_key = itemgetter(0)


class OutOfRangeError(ValueError):
    """A device's entry holds a partial that no device can have."""


class Total(NamedTuple):
    """One key over the fleet.

    Attributes:
        digest: of the entries that it was made from, under the membership.
        devices: how many devices have the key, and samples of it.
    """

    partial: Partial
    digest: int
    devices: int


class _HashedMembership:
    """A membership and its hash: made when it is asked for, once for many commands."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership

    @cached_property
    def hash(self) -> int:
        return text_hash(membership_text(self._membership))


class _Key:
    """One key's partials by device, and the sum of their hashes."""

    __slots__ = ("hashes", "partials")

    def __init__(self, partials: Keyed) -> None:
        self.partials = partials
        self.hashes = 0


class FleetFold:
    """The entries of one local fold.

    Args:
        keyed: whether it has keys; one without has the only key "".

    Attributes:
        seq: the number of this device's newest row in this life.
        moves: how often the entries, or the membership, have changed.
    """

    __slots__ = (
        "_counted",
        "_device_hashes",
        "_empty",
        "_entries",
        "_hash_sum",
        "_keyed",
        "_keys",
        "_membership",
        "_newest",
        "_retired",
        "fold",
        "moves",
        "seq",
    )

    def __init__(self, fold: Fold, *, keyed: bool = False) -> None:
        self.fold = fold
        self.seq = self.moves = 0
        self._keyed = keyed
        # With keys a device without samples has not the key; where 0 adds nothing nobody can tell.
        self._empty: set[str] | None = None if keyed or gives_zero(fold) else set()
        self._entries = [OwnedMap() for _ in range(KEY_SHARDS if keyed else 1)]
        self._newest: dict[str, Version] = {}
        self._counted: list[str] | None = None
        self._device_hashes: dict[str, int] = {}
        self._keys: dict[str, _Key] = {}
        self._hash_sum = 0
        self._retired: set[str] = set()
        self._membership = _HashedMembership(Membership())

    @property
    def shards(self) -> range:
        """The shards that its keys can be in."""
        return range(len(self._entries))

    @property
    def devices(self) -> list[str]:
        """The devices that have an entry and are not retired, sorted; not to be changed."""
        if self._counted is None:
            self._counted = sorted(self._newest.keys() - self._retired)
        return self._counted

    @property
    def keys(self) -> list[str]:
        """The keys that some device has, sorted."""
        return sorted(self._keys)

    @property
    def digest(self) -> int:
        """A digest of these entries and this membership."""
        return (self._hash_sum + self._membership.hash) % MODULUS

    def device_digest(self, device: str) -> int:
        """Return a digest of one device's entries, whether it is retired or not."""
        return self._device_hashes.get(device, 0) % MODULUS

    def version(self, device: str) -> Version | None:
        """Return the newest version of a device's entries."""
        return self._newest.get(device)

    def entry(self, device: str, shard: int) -> Entry | None:
        """Return a device's entry of a shard."""
        return self._entries[shard].entries.get(device)

    def state(self, shard: int) -> OwnedMap:
        """Return all devices' entries of a shard; they share nothing with those that are here."""
        return self._entries[shard].copy()

    def total(self, key: str) -> Total:
        """Return the combination over the devices for one key."""
        known = self._keys.get(key)
        if known is None:
            return Total(self.fold.zero, self._membership.hash, 0)
        digest = (known.hashes + self._membership.hash) % MODULUS
        total = known.partials.total
        having = len(known.partials) - len(self._empty or ())
        return Total(total, digest, devices_in(self.fold, total, having))

    def set_membership(self, membership: Membership, about: Iterable[str] | None = None) -> None:
        """Count the entries of retired devices no more, and those of all others.

        Args:
            membership: of the fleet.
            about: the devices on which it has something new; None: perhaps on any.
        """
        self._membership = _HashedMembership(membership)
        self.moves += 1
        entries = membership.entries
        for device in sorted(self._retired | entries.keys()) if about is None else about:
            member = entries.get(device)
            if (member is not None and member.retired) != (device in self._retired):
                self._turn(device)

    def _turn(self, device: str) -> None:
        """Let a device count that did not, or count no more."""
        counts = device in self._retired
        self._retired ^= {device}
        self._counted = None
        for shard in self._entries:
            entry = shard.entries.get(device)
            if entry is None:
                continue
            for row in entry.payload:
                hashed = row_hash(device, entry, row)
                if counts:
                    self._count(device, row, hashed)
                else:
                    self._discount(device, row[0], hashed)

    def begin(self, replica: Replica) -> list[int]:
        """Write all own entries again in the name of `replica`; return their shards.

        A fold with keys writes all its shards, empty ones too: an earlier life may have filled
        them.
        """
        self.seq = 0
        device, written = replica.device, []
        for shard in self.shards:
            known = self._entries[shard].entries.get(device)
            if known is None and not self._keyed:
                continue
            rows: EntryRows = known.payload if known is not None else ()
            first = self.seq + 1
            rows = tuple([(key, seq, partial) for seq, (key, _, partial) in enumerate(rows, first)])
            self.seq += len(rows) or 1
            self._replace(device, shard, Entry(Version.of(replica, self.seq), rows))
            written.append(shard)
        return written

    def put_own(self, replica: Replica, key: str, partial: Partial | None) -> int:
        """Replace this device's own partial of a key; None takes it away. Return its shard."""
        shard = key_shard(key) if self._keyed else 0
        self.seq += 1
        device, version = replica.device, Version.of(replica, self.seq)
        row = None if partial is None else (intern(key), self.seq, partial)
        known = self._entries[shard].entries.get(device)
        if known is None or known.version[:2] != version[:2]:
            self._replace(device, shard, Entry(version, () if row is None else (row,)))
            return shard
        rows: EntryRows = known.payload
        at, old = bisect_left(rows, key, key=_key), _row(rows, key)
        rest = rows[at + (old is not None) :]
        entry = Entry(version, (*rows[:at], *(() if row is None else (row,)), *rest))
        self._change(device, (known, old), (entry, row))
        self.moves += 1
        self._entries[shard].entries[device] = entry
        self._newest[device] = version
        return shard

    def join(self, shard: int, delta: OwnedMap) -> bool:
        """Join devices' entries of a shard, whose payloads are rows; return whether one was news.

        Raises:
            OutOfRangeError: an entry holds a partial that no device can have; nothing is joined.
        """
        entries = self._entries[shard].entries
        news = [
            (device, entry)
            for device, entry in delta.entries.items()
            if device not in entries or entry > entries[device]
        ]
        for device, entry in news:
            self._need_range(entries.get(device), device, entry)
        for device, entry in news:
            self._replace(device, shard, entry)
        return bool(news)

    def _need_range(self, known: Entry | None, device: str, entry: Entry) -> None:
        checked = set(known.payload) if known is not None else ()
        within = self.fold.within_limits
        for row in entry.payload:
            if row not in checked and not within(row[2]):
                raise OutOfRangeError(
                    f"{self.fold} needs its partials, got {row[2]!r} of {device!r}"
                )

    def _replace(self, device: str, shard: int, entry: Entry) -> None:
        """Put a device's whole entry of a shard in place of the one that is known."""
        entries = self._entries[shard].entries
        known = entries.get(device, entry)
        before = {row[0]: row for row in known.payload} if known is not entry else {}
        same_life = known.version[:2] == entry.version[:2]
        for row in entry.payload:
            old = before.pop(row[0], None)
            if not same_life or old != row:
                self._change(device, (known, old), (entry, row))
        for old in before.values():
            self._change(device, (known, old), (entry, None))
        entries[device] = entry
        self.moves += 1
        newest = self._newest.get(device)
        if newest is None:
            self._counted = None
        if newest is None or newest < entry.version:
            self._newest[device] = entry.version

    def _change(
        self,
        device: str,
        before: tuple[Entry, VersionedPartial | None],
        after: tuple[Entry, VersionedPartial | None],
    ) -> None:
        """Take one row of a device out of the sums, and the row of the same key in."""
        (_, old), (_, new) = before, after
        gone, come = row_hash(device, *before), row_hash(device, *after)
        self._device_hashes[device] = self._device_hashes.get(device, 0) + come - gone
        if device in self._retired:
            return
        if new is None:
            if old is not None:
                self._discount(device, old[0], gone)
        elif old is None or old[2] != new[2]:
            self._count(device, new, come - gone)
        else:
            self._keys[new[0]].hashes += come - gone
            self._hash_sum += come - gone

    def _count(self, device: str, row: VersionedPartial, hashed: int) -> None:
        key, _, partial = row
        known = self._keys.get(key)
        if known is None:
            known = self._keys[key] = _Key(keyed(self.fold))
        known.partials.put(device, partial)
        if self._empty is not None:
            (self._empty.add if partial == self.fold.zero else self._empty.discard)(device)
        known.hashes += hashed
        self._hash_sum += hashed

    def _discount(self, device: str, key: str, hashed: int) -> None:
        known = self._keys[key]
        known.partials.discard(device)
        if self._empty is not None:
            self._empty.discard(device)
        known.hashes -= hashed
        self._hash_sum -= hashed
        if not len(known.partials):
            del self._keys[key]


def counting(fold: FleetFold) -> Iterator[tuple[str, int, Entry]]:
    """Yield the entries of the devices that are not retired, each with its device and shard."""
    for shard, entries in enumerate(fold._entries):  # noqa: SLF001 - of this module
        for device, entry in entries.entries.items():
            if device not in fold._retired:  # noqa: SLF001 - of this module
                yield device, shard, entry


def partial_of(fold: FleetFold, device: str, key: str) -> Partial | None:
    """Return a device's partial of a key; None where it does not have the key."""
    entry = fold.entry(device, key_shard(key) if len(fold.shards) > 1 else 0)
    row = None if entry is None else _row(entry.payload, key)
    return None if row is None else row[2]


def holders(fold: FleetFold, key: str) -> list[str]:
    """Return the devices that have a key of a fold and are not retired, sorted."""
    return [device for device in fold.devices if partial_of(fold, device, key) is not None]


def _row(rows: EntryRows, key: str) -> VersionedPartial | None:
    """Return the row of a key, if there is one."""
    at = bisect_left(rows, key, key=_key)
    return rows[at] if at < len(rows) and rows[at][0] == key else None


def row_hash(device: str, entry: Entry, row: VersionedPartial | None) -> int:
    """Return what a device's row adds to the digest; no row adds 0."""
    if row is None:
        return 0
    key, seq, partial = row
    return entry_hash(key, device, entry.version._replace(seq=seq), partial)
