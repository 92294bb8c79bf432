"""One local fold over the fleet: each device's newest partials, and their combination by key.

(shard, device) is the versioned entry: the greater version replaces it whole, so a key that is not
in the newer one is gone. The combinations and the digest are kept up to date partial by partial, so
a change costs what its keys cost and not what all keys, or all devices, would.

Entries of retired devices stay, and count again when they are admitted; until then they are in no
combination, digest or list of devices.
"""

from collections.abc import Collection, Iterable, Iterator
from sys import intern
from typing import NamedTuple

from crdts import Entry, Replica, Version
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.sliding import Keyed, keyed
from lasp_edge.language.declarations import LocalFold
from lasp_edge.protocol.frames import VariableFrame
from lasp_edge.protocol.inputs import MODULUS, entry_hash, text_hash
from lasp_edge.protocol.shards import KEY_SHARDS, key_shard

Word = tuple[int, Partial]
"""The seq at which a device last changed a key, and what it said."""


class Total(NamedTuple):
    """One key over the fleet.

    Attributes:
        partial: the combination.
        digest: of the entries that it was made from, under the membership.
        devices: how many devices have the key.
    """

    partial: Partial
    digest: int
    devices: int


class _Shard:
    """A device's entry of one shard."""

    __slots__ = ("version", "words")

    def __init__(self, version: Version, words: dict[str, Word]) -> None:
        self.version = version
        self.words = words

    def is_newer_than(self, other: "_Shard") -> bool:
        """Return whether it replaces `other`; equal versions with other words are a clone's."""
        if self.version != other.version:
            return self.version > other.version
        return self.words != other.words and self.entry() > other.entry()

    def entry(self) -> Entry:
        """Return it as a plain entry."""
        return Entry(self.version, tuple([(key, *self.words[key]) for key in sorted(self.words)]))


class _Key:
    """One key's partials by device, and the sum of their hashes."""

    __slots__ = ("hashes", "partials")

    def __init__(self, partials: Keyed) -> None:
        self.partials = partials
        self.hashes = 0


class Published:
    """The entries of one local fold.

    Attributes:
        fold: the local fold.
        seq: this device's newest word in this life.
    """

    __slots__ = (
        "_device_hashes",
        "_hash_sum",
        "_keys",
        "_membership_hash",
        "_newest",
        "_retired",
        "_shards",
        "fold",
        "seq",
    )

    def __init__(self, fold: LocalFold) -> None:
        self.fold = fold
        self.seq = 0
        self._shards: dict[tuple[str, int], _Shard] = {}
        self._newest: dict[str, Version] = {}
        self._device_hashes: dict[str, int] = {}
        self._keys: dict[str, _Key] = {}
        self._hash_sum = 0
        self._retired: frozenset[str] = frozenset()
        self._membership_hash = text_hash("")

    @property
    def shards(self) -> range:
        """The shards that its keys can be in."""
        return range(KEY_SHARDS if self.fold.keyed else 1)

    @property
    def devices(self) -> list[str]:
        """The devices that have an entry and are not retired, sorted."""
        return sorted(self._newest.keys() - self._retired)

    @property
    def keys(self) -> list[str]:
        """The keys that some device has, sorted."""
        return sorted(self._keys)

    @property
    def digest(self) -> int:
        """What tells these entries and this membership from others."""
        return (self._hash_sum + self._membership_hash) % MODULUS

    def device_digest(self, device: str) -> int:
        """Return what tells one device's entries from others, whether it is retired or not."""
        return self._device_hashes.get(device, 0) % MODULUS

    def version(self, device: str) -> Version | None:
        """Return the newest version of a device's entries."""
        return self._newest.get(device)

    def shard_version(self, device: str, shard: int) -> Version | None:
        """Return the version of one of a device's entries."""
        known = self._shards.get((device, shard))
        return known.version if known else None

    def total(self, key: str) -> Total:
        """Return what is known of one key."""
        known = self._keys.get(key)
        if known is None:
            return Total(self.fold.fold.zero, self._membership_hash, 0)
        digest = (known.hashes + self._membership_hash) % MODULUS
        return Total(known.partials.total, digest, len(known.partials))

    def retire(self, retired: Collection[str], membership: str) -> None:
        """Count the entries of these devices no more, and those of all others.

        Args:
            retired: all that are retired.
            membership: what `inputs.membership_text` says of them.
        """
        before, self._retired = self._retired, frozenset(retired)
        self._membership_hash = text_hash(membership)
        for (device, _), entry in self._shards.items():
            if (device in before) != (device in self._retired):
                for key, word in entry.words.items():
                    found = self._hash(key, device, entry.version, word)
                    if device in before:
                        self._count(key, device, word[1], found)
                    else:
                        self._discount(key, device, found)

    def begin(self, replica: Replica) -> Iterable[int]:
        """Say all own entries anew under the name of `replica`; return their shards.

        What has keys says all its shards, empty ones too: an earlier life may have filled them.
        """
        self.seq = 0
        shards = [n for n in self.shards if self.fold.keyed or (replica.device, n) in self._shards]
        for shard in shards:
            known = self._shards.get((replica.device, shard))
            words = {}
            for key in sorted(known.words if known else ()):
                self.seq += 1
                words[key] = (self.seq, known.words[key][1] if known else self.fold.fold.zero)
            self.seq += not words
            self._replace(replica.device, shard, Version.of(replica, self.seq), words)
        return shards

    def put_own(self, replica: Replica, key: str, partial: Partial | None) -> int:
        """Replace this device's own word on a key; None takes it back. Return its shard."""
        shard = key_shard(key) if self.fold.keyed else 0
        self.seq += 1
        version = Version.of(replica, self.seq)
        known = self._shards.get((replica.device, shard))
        if known is None or (known.version.incarnation, known.version.nonce) != replica[:2]:
            words = {} if partial is None else {key: (self.seq, partial)}
            self._replace(replica.device, shard, version, words)
            return shard
        word = None if partial is None else (self.seq, partial)
        self._say(key, replica.device, (known.version, known.words.get(key)), (version, word))
        if word is None:
            known.words.pop(key, None)
        else:
            known.words[intern(key)] = word
        known.version = self._newest[replica.device] = version
        return shard

    def put(self, frame: VariableFrame) -> str:
        """Join a device's entry.

        Returns:
            "news", "known", or "out of range", and then nothing was joined.
        """
        device, shard = frame.sender.device, frame.shard
        known = self._shards.get((device, shard))
        words = dict(zip(map(intern, frame.keys), _words(frame), strict=True))
        entry = _Shard(frame.version, words)
        if known is not None and not entry.is_newer_than(known):
            return "known"
        within = self.fold.fold.within_limits
        before = known.words if known else {}
        if not all(word == before.get(key) or within(word[1]) for key, word in words.items()):
            return "out of range"
        self._replace(device, shard, frame.version, words)
        return "news"

    def frame(self, replica: Replica, shard: int) -> VariableFrame:
        """Return one of this device's entries as it is published."""
        own = self._shards[replica.device, shard]
        keys = tuple(sorted(own.words))
        seqs, partials = zip(*[own.words[key] for key in keys], strict=True) if keys else ((), ())
        columns = tuple(zip(*partials, strict=True))
        fold, number = self.fold, own.version.seq
        return VariableFrame(replica, number, fold.name, fold.stream, shard, keys, seqs, columns)

    def _replace(self, device: str, shard: int, version: Version, words: dict[str, Word]) -> None:
        """Put a device's whole entry of a shard in place of the one that is known."""
        known = self._shards.get((device, shard))
        before = known.words if known else {}
        old = known.version if known else version
        same_life = old[:2] == version[:2]
        for key in [key for key in before if key not in words]:
            self._say(key, device, (old, before[key]), (version, None))
        for key, word in words.items():
            if not same_life or before.get(key) != word:
                self._say(key, device, (old, before.get(key)), (version, word))
        self._shards[device, shard] = _Shard(version, words)
        newest = self._newest.get(device)
        if newest is None or newest < version:
            self._newest[device] = version

    def _say(
        self,
        key: str,
        device: str,
        before: tuple[Version, Word | None],
        after: tuple[Version, Word | None],
    ) -> None:
        """Take one word of a device out of the sums, and another one in."""
        gone, come = self._hash(key, device, *before), self._hash(key, device, *after)
        self._device_hashes[device] = self._device_hashes.get(device, 0) + come - gone
        if device in self._retired:
            return
        if after[1] is None:
            self._discount(key, device, gone)
        elif before[1] is None or before[1][1] != after[1][1]:
            self._count(key, device, after[1][1], come - gone)
        else:
            self._keys[key].hashes += come - gone
            self._hash_sum += come - gone

    def _hash(self, key: str, device: str, version: Version, word: Word | None) -> int:
        return entry_hash(key, device, version._replace(seq=word[0]), word[1]) if word else 0

    def _count(self, key: str, device: str, partial: Partial, hashes: int) -> None:
        known = self._keys.get(key)
        if known is None:
            known = self._keys[key] = _Key(keyed(self.fold.fold))
        known.partials.put(device, partial)
        known.hashes += hashes
        self._hash_sum += hashes

    def _discount(self, key: str, device: str, hashes: int) -> None:
        known = self._keys.get(key)
        if known is None:
            return
        known.partials.discard(device)
        known.hashes -= hashes
        self._hash_sum -= hashes
        if not len(known.partials):
            del self._keys[key]


def _words(frame: VariableFrame) -> Iterator[Word]:
    partials = zip(*frame.columns, strict=True) if frame.keys else ()
    return zip(frame.seqs, partials, strict=True)
