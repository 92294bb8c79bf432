"""Key shards: a variable's keys are divided into a fixed number of parts, and each travels alone.

One key's change makes its device publish one shard's entry, not all keys: (variable, shard, device)
is the versioned entry. The shard is a hash of the key alone, so it is the same on every tier.

    >>> key_shard("kitchen"), key_shard("cellar")
    (1, 9)
"""

from functools import lru_cache
from hashlib import sha256

KEY_SHARDS = 16
"""Parts of a variable with keys: one key's change makes a device publish a 16th of its keys."""
KEY_BYTES = 255
"""The most bytes that a key has in UTF-8: it must fit into a topic level and a frame."""


@lru_cache(1_024)
def key_shard(key: str) -> int:
    """Return the shard of a key, from 0 to `KEY_SHARDS` - 1."""
    return sha256(key.encode()).digest()[0] % KEY_SHARDS
