"""Sinks: who holds panes and acknowledges them, named by (name, id of its store).

A lake is a sink, and there may be others. A device delivers to each sink that it knows, and keeps
what it delivered to one apart from what it delivered to another: ids are compared within one name
only. A beat has one row for each sink. It names the store by a tag, so that it stays short.

    >>> row = SinkLow("lake", store_tag("6b0c"), 120)
    >>> (row.is_of("lake", "6b0c"), row.is_of("lake", "77aa"), row.is_of("archive", "6b0c"))
    (True, False, False)
    >>> SinkLow("lake", UNKNOWN_STORE, 120).is_of("lake", "6b0c")
    True
"""

from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, NamedTuple, Self

from crdts.replica import SEQS
from lasp_edge.protocol import checks
from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.limits import TIME_LIMIT_US

DEFAULT_SINK: Final = "lake"
"""The sink that every device expects from the start, and a lander's name by default."""
MAX_SINKS: Final = 8
"""Sinks that a device delivers to at most: a bit of a stored byte for each."""
SINK_BYTES: Final = 64
"""Bytes of a sink's name and of its store's id, at most."""
LEFT_US: Final = 600_000_000
"""Microseconds of silence after which a store may be one that a device had left before: ten
minutes, in which a lander greets twice (`lasp_edge.protocol.greetings`)."""
UNKNOWN_STORE: Final = 0
"""The tag of a store whose id is not known yet."""
_TAGS: Final = 1 << 32


@lru_cache(maxsize=64)
def store_tag(store: str) -> int:
    """Return 32 bits that stand for a store's id; `UNKNOWN_STORE` for the empty id."""
    return int.from_bytes(sha256(store.encode()).digest()[:4], "big") or 1 if store else 0


class SinkLow(NamedTuple):
    """What a device promises to one sink.

    Attributes:
        sink: the sink's name.
        store: the tag of the store that the device delivers to; `UNKNOWN_STORE` before the first
            acknowledgement, when nothing has landed in any store of that name.
        low_us: the low watermark: all older panes have landed there. None where it cannot promise.
        commit: the greatest of a lake after which it has taken an entry (`AckFrame.commit`): a lake
            that has not come so far was put back, and lacks what it had acknowledged. 0 for none.
    """

    sink: str
    store: int
    low_us: int | None
    commit: int = 0

    def is_of(self, sink: str, store: str) -> bool:
        """Return whether the promise is made to this sink and store."""
        return self.sink == sink and self.store in {UNKNOWN_STORE, store_tag(store)}

    def packed(self) -> list[Any]:
        """Return it as msgpack takes it; the default sink's name and the commit are left out."""
        return [None if self.sink == DEFAULT_SINK else self.sink, self.store, self.low_us]

    @classmethod
    def unpacked(cls, plain: Any, commit: int = 0) -> Self:
        """Return what `packed` was called of.

        Raises:
            FrameError, ValueError: it is no such row.
        """
        name, store, low_us = checks.array(plain)
        if low_us is not None:
            checks.integer(low_us, -TIME_LIMIT_US, TIME_LIMIT_US)
        sink = DEFAULT_SINK if name is None else sink_name(name)
        return cls(sink, checks.integer(store, 0, _TAGS), low_us, commit)


def sink_name(value: Any) -> str:
    """Return a sink's name.

    Raises:
        FrameError: it cannot be a name of a sink.
    """
    if not checks.text(value, SINK_BYTES) or not value.isprintable():
        raise FrameError("bad text")
    return str(value)


def low_rows(plain: Any, commits: Any = ()) -> tuple[SinkLow, ...]:
    """Return the rows of a beat, one for each sink, and their commits where it has them.

    Raises:
        FrameError, ValueError: they are no such rows.
    """
    lows = checks.array(plain)
    known = checks.integers(commits, 0, SEQS) or [0] * len(lows)
    if len(known) != len(lows):
        raise FrameError("not one commit for each sink")
    rows = tuple([SinkLow.unpacked(*row) for row in zip(lows, known, strict=True)])
    if len(rows) > MAX_SINKS or len({row.sink for row in rows}) < len(rows):
        raise FrameError("not one row for each sink")
    return rows
