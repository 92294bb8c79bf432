"""Key shards: the same cut on every tier, and all of them used."""

from collections import Counter
from hashlib import sha256

from lasp_edge.protocol.shards import KEY_SHARDS, key_shard


def test_the_shard_is_a_hash_of_the_key_alone():
    for key in ("", "kitchen", "Küche", "x" * 255):
        assert key_shard(key) == int(sha256(key.encode()).hexdigest()[:2], 16) % 16


def test_shards_are_evenly_filled():
    shards = Counter(key_shard(f"room-{number}") for number in range(16_000))
    assert sorted(shards) == list(range(KEY_SHARDS))
    assert max(shards.values()) < 1_150
    assert min(shards.values()) > 850
