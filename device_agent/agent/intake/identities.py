"""Which readings with an own time are known: a repeat is dropped where it enters.

A reading is known by (device, event, tags, own time, quantised value), and by the topic that it
came on where its tags do not tell that: two sensors may agree. Identities are kept in
blocks of two minutes per event and tags. A block in memory is two columns, times and values, in
the order in which they came: a reading later than all of its block is new without a look-up, and
only a block that is asked about an earlier time makes a set of what it holds. Stored, a block is
sorted by time, and times and values become small differences of as few bytes as hold them: 4 to 6
bytes an identity where a block holds some tens of them. Only blocks of recent or recalled times
are in memory.

    >>> block = Block(BlockId("temperature", "", 13_288_320))
    >>> at_us = block.start_us + 1_000_000
    >>> block.add(at_us, 2157), block.add(at_us + 5_430_017, -40), block.add(at_us, 2157)
    (True, True, False)
    >>> Block(block.name, block.packed()).identities == block.identities
    True
    >>> len(block.packed())
    16
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice, repeat
from operator import attrgetter, itemgetter, lt, sub
from struct import Struct
from sys import byteorder

from device_agent.agent.parts import StoreReader
from device_agent.agent.stored_rows import BLOCK_US, BlockId
from lasp_edge.event import tags_of_stream, tags_text, text_of_stream

KEPT_IDENTITIES = 6_000
"""Identities in memory, about: 0.5 MB; older blocks are recalled when they are needed."""
KEPT_TAGS = 1_000
"""Texts of tags in memory, at most: more than a device's sensors have; then all are dropped."""
KEPT_STREAMS = 2_000
"""Streams (an event and tags) of which the last stored block is remembered, at most: more than a
device's sensors have, in 0.5 MB. Of any other stream the store is asked."""
STAMPED = "stamped "
"""What the tags of blocks begin with that hold readings which were stamped on arrival, so that they
are never taken for repeats of others; tags are JSON, or empty."""
TAKEN_BACK = "taken back "
"""What the tags of blocks begin with that hold readings which were taken back: they are known, and
count no more."""
BLOCK_WEIGHT = 8
"""Identities that take as much memory as an empty block."""

_HEAD = Struct("<BBi")
_BEFORE_US = -(2**62)

Identity = tuple[int, int]
"""Own time in microseconds, and quantised value."""
_NONE: frozenset[Identity] = frozenset()


def ascends(times_us: Sequence[int]) -> bool:
    """Return whether each time is later than the one before it."""
    return all(map(lt, times_us, islice(times_us, 1, None)))


def tags_of_blocks(text: str) -> str:
    r"""Return the tags of the readings in blocks whose tags are this text.

    >>> tags_of_blocks('sensors/attic\n{"floor":"2"}'), tags_of_blocks('stamped {"floor":"2"}')
    ('{"floor":"2"}', '{"floor":"2"}')
    """
    return tags_of_stream(text).removeprefix(STAMPED)


class Block:
    """The identities of one event and one set of tags in two minutes.

    Args:
        name: of which event, tags and two minutes.
        stored: what `packed` gave, if the store holds the block.

    Attributes:
        start_us: where its two minutes begin.
        times_us: the times, as they came.
        last_us: the greatest of them; before all times while it is empty.
        changed: it holds what the store does not.
    """

    __slots__ = (
        "_in_order",
        "_known",
        "_loaded",
        "_stored",
        "_values",
        "changed",
        "last_us",
        "name",
        "start_us",
        "times_us",
    )

    def __init__(self, name: BlockId, stored: bytes | None = None) -> None:
        self.name = name
        self.start_us = name.block * BLOCK_US
        self.changed = False
        self.times_us: list[int] = []
        self._values: list[int] = []
        self._known: set[Identity] | None = None
        self._in_order = True
        self.last_us = _BEFORE_US
        self._loaded, self._stored = 0, _NONE
        if stored:
            offsets_us, values = _unpacked(stored)
            self.times_us.extend([self.start_us + offset_us for offset_us in offsets_us])
            self._values.extend(values)
            self.last_us = self.times_us[-1]
            self._loaded = len(values)

    def __len__(self) -> int:
        return len(self.times_us)

    @property
    def readings(self) -> Iterable[Identity]:
        """Time and value of each reading, as they came."""
        return zip(self.times_us, self._values, strict=True)

    @property
    def values(self) -> list[int]:
        """Value of each reading, as they came."""
        return self._values

    @property
    def identities(self) -> set[Identity]:
        """Time and value of each reading in the block."""
        return set(zip(self.times_us, self._values, strict=True))

    def add(self, time_us: int, quantised: int) -> bool:
        """Add an identity; return whether it was new."""
        if self.holds(time_us, quantised):
            return False
        self.put(time_us, quantised)
        return True

    def holds(self, time_us: int, quantised: int) -> bool:
        """Return whether an identity is here."""
        if time_us > self.last_us:
            return False
        if self._known is None:
            self._known = self.identities
        return (time_us, quantised) in self._known

    def has_come(self, time_us: int, quantised: int) -> bool:
        """Return whether an identity that is here has come since the block was loaded."""
        if len(self._stored) < self._loaded:
            count = self._loaded
            self._stored = frozenset(zip(self.times_us[:count], self._values[:count], strict=True))
        return (time_us, quantised) not in self._stored

    def put(self, time_us: int, quantised: int) -> None:
        """Add an identity that is not here yet."""
        self.times_us.append(time_us)
        self._values.append(quantised)
        if time_us > self.last_us:
            self.last_us = time_us
        else:
            self._in_order = False
        if self._known is not None:
            self._known.add((time_us, quantised))

    def put_later(
        self, times_us: Sequence[int], values: Sequence[int], *, strict: bool = True
    ) -> None:
        """Add identities by time, all later than `last_us`; `strict`: no two have one time."""
        self._in_order = self._in_order and strict
        self.times_us.extend(times_us)
        self._values.extend(values)
        self.last_us = times_us[-1]
        if self._known is not None:
            self._known.update(zip(times_us, values, strict=True))

    def packed(self) -> bytes:
        """Return a block that is not empty as bytes: equal identities, equal bytes."""
        times_us, values = self.times_us, self._values
        if not self._in_order:
            ordered = sorted(zip(times_us, values, strict=True))
            times_us, values = list(map(itemgetter(0), ordered)), list(map(itemgetter(1), ordered))
        steps = list(map(sub, times_us, chain((self.start_us,), times_us)))
        of_steps, least = _columns(steps) or [bytes(len(steps))], min(values)
        # Most often they are few steps apart, or all the same.
        is_even = values.count(least) == len(values)
        of_values = [] if is_even else _columns_of_small(list(map(sub, values, repeat(least))))
        return b"".join([_HEAD.pack(len(of_steps), len(of_values), least), *of_steps, *of_values])


def _columns(numbers: list[int]) -> list[bytes]:
    """Return numbers as columns of bytes, the least first, without those that are all zero."""
    words = array("I", numbers)
    if byteorder == "big":
        words.byteswap()
    plain = words.tobytes()
    columns = [plain[0::4], plain[1::4], plain[2::4], plain[3::4]]
    while columns and not columns[-1].strip(b"\0"):
        columns.pop()
    return columns


def _columns_of_small(numbers: list[int]) -> list[bytes]:
    """Return what `_columns` does, by a shorter way where each number fits into a byte.

    One of them at least is not zero.
    """
    try:
        return [bytes(numbers)]
    except ValueError:
        return _columns(numbers)


def _unpacked(stored: bytes) -> tuple[list[int], list[int]]:
    """Return offsets and values, sorted."""
    of_steps, of_values, least = _HEAD.unpack_from(stored)
    count = (len(stored) - _HEAD.size) // (of_steps + of_values)
    split = _HEAD.size + of_steps * count
    offset_us, offsets_us = 0, []
    for step_us in _numbers(stored[_HEAD.size : split], of_steps, count):
        offset_us += step_us
        offsets_us.append(offset_us)
    return offsets_us, [least + more for more in _numbers(stored[split:], of_values, count)]


def _numbers(plain: bytes, width: int, count: int) -> Sequence[int]:
    """Return the numbers that `_columns` gave."""
    filled = bytearray(4 * count)
    for column in range(width):
        filled[column::4] = plain[column * count : (column + 1) * count]
    words = array("I", bytes(filled))
    if byteorder == "big":
        words.byteswap()
    return words


class Identities:
    """The blocks of identities in memory, least recently used first.

    Args:
        highs: the last block that the store holds of each stream, as (event, tags, block).
        complete: no other stream is in the store.
    """

    __slots__ = ("_blocks", "_changed", "_complete", "_highs", "_latest", "_texts")

    def __init__(
        self, highs: Iterable[tuple[str, str, int]] = (), *, complete: bool = True
    ) -> None:
        self._complete = complete
        self._texts: dict[tuple[tuple[str, str], ...], str] = {}
        self._blocks: dict[BlockId, Block] = {}
        self._latest: dict[tuple[str, str], Block] = {}  # of each stream
        self._changed: list[Block] = []
        self._highs = {(event, tags): block for event, tags, block in highs}

    def stream_of(self, tags: Mapping[str, str], place: str = "") -> str:
        """Return the text of the tags of blocks, for readings that came on a place."""
        return text_of_stream(place, self.text_of(tags))

    def text_of(self, tags: Mapping[str, str]) -> str:
        """Return what `tags_text` returns, most often made before."""
        if not tags:
            return ""
        items = tuple(tags.items())
        text = self._texts.get(items)
        if text is None:
            if len(self._texts) >= KEPT_TAGS:
                self._texts.clear()
            text = self._texts[items] = tags_text(tags)
        return text

    @property
    def held(self) -> int:
        """The number of identities in memory."""
        return sum([len(block.times_us) for block in self._blocks.values()])

    def high(self, event: str, tags: str) -> int | None:
        """Return the last block that the store holds of a stream; None for an unknown one."""
        return self._highs.get((event, tags))

    def may_be_stored(self, block: BlockId) -> bool:
        """Return whether the store may hold a block that is not in memory."""
        last = self._highs.get((block.event, block.tags))
        return not self._complete if last is None else block.block <= last

    def between(self, event: str, first: int, last: int) -> dict[BlockId, Block]:
        """Return the blocks of an event that are in memory, from one number to another."""
        return {
            name: block
            for name, block in self._blocks.items()
            if name.event == event and first <= name.block <= last
        }

    def block(self, name: BlockId, store: StoreReader) -> Block:
        """Return the block of this name, which becomes the one that was used last."""
        found = self._blocks.pop(name, None)
        if found is None:
            stored = store.identities(name) if self.may_be_stored(name) else None
            found = Block(name, stored)
        self._blocks[name] = found
        return found

    def at(self, event: str, tags: str, time_us: int, store: StoreReader) -> Block:
        """Return the block that a time lies in: most often, the one that its stream used last."""
        block = self._latest.get((event, tags))
        number = time_us // BLOCK_US
        if block is None or block.name.block != number:
            block = self._latest[event, tags] = self.block(BlockId(event, tags, number), store)
        return block

    def touched(self, block: Block) -> None:
        """Note that a block has identities that the store does not hold."""
        if not block.changed:
            block.changed = True
            self._changed.append(block)

    def take_changed(self) -> dict[BlockId, bytes]:
        """Return the blocks that changed since the last time, as bytes."""
        taken, last, highs = {}, dict[tuple[str, str], int](), self._highs
        for block in sorted(self._changed, key=attrgetter("name")):
            event, tags, number = name = block.name
            taken[name] = block.packed()
            last[event, tags] = number
            block.changed = False
        for stream, number in last.items():
            # The stream that changed last stands last, so that the first are the least in use.
            highs[stream] = max(highs.pop(stream, number), number)
        self._changed.clear()
        if len(self._highs) > KEPT_STREAMS:
            self._complete = False
            for stream in list(self._highs)[: -KEPT_STREAMS // 2]:
                del self._highs[stream]
        return taken

    def forget(self) -> None:
        """Drop the blocks that were not used for longest; the store must hold them all."""
        held = self.held + BLOCK_WEIGHT * len(self._blocks)
        if held <= KEPT_IDENTITIES:
            return
        for block in self._latest.values():
            self._blocks[block.name] = self._blocks.pop(block.name)  # used since it was asked for
        self._latest.clear()
        *older, _ = self._blocks
        for name in older:
            held -= len(self._blocks.pop(name).times_us) + BLOCK_WEIGHT
            if held <= KEPT_IDENTITIES:
                return
