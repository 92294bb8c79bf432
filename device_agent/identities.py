"""Which readings with an own time are known: a repeat is dropped where it enters.

A reading is known by (device, event, tags, own time, quantised value). Identities are kept in
blocks of two minutes per event and tags. A block in memory is a set of integers, an identity being
its offset in the block and its value side by side; stored, it is sorted, split into byte columns
and compressed, which takes 4 to 6 bytes an identity where a block holds some tens of them. Only
blocks of recent or recalled times are in memory.

    >>> block = {pack(1_000_000, 2157), pack(6_430_017, -40)}
    >>> packed_block(packed(block)) == block
    True
"""

from array import array
from collections.abc import Iterable
from sys import byteorder
from zlib import compress, decompress

from device_agent.changes import BlockId
from lasp_edge.numbers import LIMIT

BLOCK_US = 120_000_000
KEPT_IDENTITIES = 6_000
"""About this many identities stay in memory; older blocks are recalled when needed."""
BLOCK_WEIGHT = 8
"""An empty block takes the memory of so many identities."""


def pack(offset_us: int, quantised: int) -> int:
    """Return one identity within a block as an integer."""
    return offset_us << 32 | quantised + LIMIT


def packed(identities: set[int]) -> bytes:
    """Return a block's identities as bytes."""
    ordered = sorted(identities)
    words = array("I", [identity >> 32 for identity in ordered])
    words.extend([identity & 0xFFFFFFFF for identity in ordered])
    if byteorder == "big":
        words.byteswap()
    plain = words.tobytes()
    return compress(b"".join([plain[column::4] for column in range(4)]), 6)


def packed_block(stored: bytes) -> set[int]:
    """Return the identities that `packed` gave."""
    columns = decompress(stored)
    length = len(columns) // 4
    plain = bytearray(len(columns))
    for column in range(4):
        plain[column::4] = columns[column * length : (column + 1) * length]
    words = array("I", bytes(plain))
    if byteorder == "big":
        words.byteswap()
    half = len(words) // 2
    return {offset << 32 | value for offset, value in zip(words[:half], words[half:], strict=True)}


class Identities:
    """The blocks in memory, least recently used first.

    Args:
        highs: the last block that the store holds of each stream, as (event, tags, block).
    """

    __slots__ = ("_blocks", "_changed", "_highs")

    def __init__(self, highs: Iterable[tuple[str, str, int]] = ()) -> None:
        self._blocks: dict[BlockId, set[int]] = {}
        self._changed: set[BlockId] = set()
        self._highs = {(event, tags): block for event, tags, block in highs}

    @property
    def held(self) -> int:
        """How many identities are in memory."""
        return sum(map(len, self._blocks.values()))

    def wanted(self, block: BlockId) -> bool:
        """Return whether the store must be asked for this block before it is used."""
        last = self._highs.get((block.event, block.tags))
        return last is not None and block.block <= last and block not in self._blocks

    def recall(self, block: BlockId, stored: bytes | None) -> None:
        """Take a block's stored identities into memory."""
        if block not in self._blocks:
            self._blocks[block] = packed_block(stored) if stored else set()

    def block(self, block: BlockId) -> set[int]:
        """Return a block's identities, to be looked up and, by `touched`, added to."""
        assert not self.wanted(block), "a block is recalled before it is used"
        identities = self._blocks.pop(block, None)
        if identities is None:
            identities = set()
        self._blocks[block] = identities
        return identities

    def touched(self, block: BlockId) -> None:
        """Note that a block has new identities."""
        self._changed.add(block)

    def take_changed(self) -> dict[BlockId, bytes]:
        """Return the changed blocks as bytes."""
        taken = {block: packed(self._blocks[block]) for block in sorted(self._changed)}
        for block in taken:
            stream = (block.event, block.tags)
            self._highs[stream] = max(self._highs.get(stream, block.block), block.block)
        self._changed.clear()
        return taken

    def forget(self) -> None:
        """Let the blocks go that were not used for longest; the store holds them all."""
        held = self.held + BLOCK_WEIGHT * len(self._blocks)
        if held <= KEPT_IDENTITIES:
            return
        *older, _ = self._blocks
        for block in older:
            held -= len(self._blocks.pop(block)) + BLOCK_WEIGHT
            if held <= KEPT_IDENTITIES:
                return
