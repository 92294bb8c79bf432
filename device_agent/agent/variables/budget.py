"""Frame budgets: an update that would make a shard's frame too large is refused beforehand.

A shard of a variable with keys is sent as one frame. The bytes of each key are bounded from above
by the number of its samples, so a shard's bound is a sum of one number for each key: it is kept up
to date without making a frame.
"""

from collections.abc import Sequence

from lasp_edge.folds.columns import Column, Op
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.packed import MAX_BINARY_BYTES
from lasp_edge.protocol.shards import KEY_SHARDS, key_shard
from lasp_edge.protocol.sizes import MAX_FRAME_BYTES, SHARD_OVERHEAD_BYTES, entry_bytes

SHARD_BYTES = MAX_FRAME_BYTES - SHARD_OVERHEAD_BYTES
"""Bytes of all entries of a shard, at most."""

_HLL_OVERHEAD_BYTES = 40
"""Bytes of a sketch beside its registers, at most."""
_PACKED_BYTES = 8
"""Bytes that one more sample adds: an entry of packed counts; a sketch's coupon takes fewer."""


class FrameBudget:
    """An upper bound of the bytes that the keys of one variable take in their shards' frames.

    Args:
        variable: its name, for errors.
        folds: the published folds over it; each has frames of its own.
    """

    def __init__(self, variable: str, folds: Sequence[Fold]) -> None:
        self._variable = variable
        self._folds = [(fold, fold.is_built_in) for fold in folds]
        self._fixed = not any(column.binary for fold in folds for column in fold.columns)
        self._needs: dict[str, int] = {}
        self._samples: dict[str, int] = {}  # of keys with samples that are not joined yet
        self._used = [0] * KEY_SHARDS

    def used(self, shard: int) -> int:
        """Return the bytes that a shard's entries may come to."""
        return self._used[shard]

    def reserve(self, key: str, held: int) -> None:
        """Reserve bytes for one more sample of a key.

        Args:
            key: the key.
            held: how many samples it has.

        Raises:
            ValueError: the shard's frame could become too large.
        """
        if self._fixed and key in self._needs:
            return  # integers take the same bytes for any number of samples
        samples = self._samples.get(key, held) + 1
        need, known, shard = self._need(key, samples), self._needs.get(key, 0), key_shard(key)
        more = need - known
        if more > 0:
            if self._used[shard] + more > SHARD_BYTES:
                raise ValueError(
                    f"variable {self._variable!r}: its keys of one shard would not fit into a "
                    f"frame of {MAX_FRAME_BYTES} B; use fewer or shorter keys, or smaller folds"
                )
            self._needs[key] = need
            self._used[shard] += more
        self._samples[key] = samples

    def take_reserved(self) -> list[str]:
        """Return the keys for which bytes were reserved since the last time, sorted."""
        keys, self._samples = sorted(self._samples), {}
        return keys

    def settle(self, key: str, held: int) -> None:
        """Note how many samples a key has: the reserved bytes become what these need."""
        need = self._need(key, held) if held else 0
        self._used[key_shard(key)] += need - self._needs.get(key, 0)
        if need:
            self._needs[key] = need
        else:
            self._needs.pop(key, None)

    def _need(self, key: str, samples: int) -> int:
        needs = [
            entry_bytes(
                key,
                len(fold.columns),
                sum(_binary_bytes(column, samples if bounded else 0) for column in fold.columns),
            )
            for fold, bounded in self._folds
        ]
        return max(needs, default=0)


def _binary_bytes(column: Column, samples: int) -> int:
    """Return the most bytes of a binary column's value; 0 samples: of any number of samples."""
    if not column.binary:
        return 0
    most = _PACKED_BYTES * samples if samples else MAX_BINARY_BYTES
    if column.op is Op.TOP:
        most = min(most, 4 * column.size)
    if column.op is Op.HLL:
        most = _HLL_OVERHEAD_BYTES + min(most, 1 << column.size)
    return min(most, MAX_BINARY_BYTES)
