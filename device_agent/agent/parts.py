"""Parts: what the agent's core is made of, and the one contract that all of them keep.

Problem: a feature of the agent needs frames, time, durable state, publications and a place in the
report. If the core knew each feature by name, each new one would be an edit in ten places. Sketch:
a feature is one `Part`; the core is a list of parts, and calls all of them in the same order:

1. The constructor takes the `Agent` first: what all parts share. All that is durable comes from it,
   or from what the store held (`Restored`).
2. `handlers`: a frame goes to every part that takes its kind, in the order of the list. A part that
   cannot use a frame raises `FrameRefusedError`; the core counts it.
   `listens`: so are messages of other programs, by topic.
3. `read`: once before each commit, it reads of the store what the changes in that commit need.
   `is_due` asks for a commit though nothing has changed yet. What is due at a tick is
   read before the tick, so that all parts see it.
4. `tick`: what time alone brings. A part states with `due_us` from when on it has work; until then
   neither `tick` nor `publications` is called. It is due at once after a frame that it takes or
   refuses; and all parts are after a connection, what the link did not take, a later replica, the
   end of a source, or a clock that was set back. What it needs of the changes of other parts, it
   states when they are `committed`.
5. `take_changes`: what must be durable before anything leaves. It is the only way to the store. The
   core adds up the changes of all parts, and its driver commits them in one transaction.
6. `take_notes`: what is worth no commit of its own. The core asks for it in a tick with a commit,
   and at least every ten seconds.
7. `committed`: memory may let go what the store can give back.
8. `recall`: at each tick, when nothing is uncommitted: memory takes back of the store what it is to
   look at.
9. `publications`: only now, in the order of the list. The core asserts that nothing is uncommitted.

A part may be a gate for the others: while it is `closed`, no part after it publishes anything; and
what it gives as `refusal` of a frame is counted, and no part takes that frame.

`connected`, `unsent` and `succeed` are the three events that concern all parts. A part reads no
clock and draws from no random source but the one it was given. Whatever it raises, in any of these,
is counted with its reason and place (`device_agent.agent.state.counters`), and all parts go on.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol

from device_agent.agent.changes import Changes
from device_agent.agent.stored_rows import (
    BlockId,
    EntryKey,
    PaneId,
    PaneRow,
    Undelivered,
    WaitingRow,
)
from lasp_edge.evaluation.stored import HistoryRow
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.publication import Publication
from lasp_edge.timers import ALWAYS_US

Handler = Callable[[Any, int], None]
"""Takes a frame of one kind, and the time in microseconds."""


class FrameRefusedError(ValueError):
    """A valid frame that this device cannot use; its text is the reason that is counted."""


class StoreReader(Protocol):
    """What a part may read of the store, right before a commit."""

    def identities(self, block: BlockId) -> bytes | None:
        """Return a block's packed identities; None where there is no such block."""

    def identity_blocks(self, event: str, first: int, last: int) -> Iterable[tuple[BlockId, bytes]]:
        """Return the blocks of an event from one number to another, both included."""

    def panes_named(self, panes: Iterable[PaneId]) -> list[tuple[PaneId, PaneRow]]:
        """Return those of these entries that are here."""

    def history(self, stream: int, least_us: int, end_us: int) -> list[tuple[int, HistoryRow]]:
        """Return what is kept of a stream with least_us <= time < end_us, each with its time."""

    def newest_panes(self, stream: int, span_us: int) -> list[tuple[PaneId, PaneRow]]:
        """Return all replicas' entries of a stream that start within a span before its last one."""

    def panes_between(
        self, stream: int, first_us: int, end_us: int
    ) -> list[tuple[PaneId, PaneRow]]:
        """Return all replicas' entries of a stream with first_us <= start < end_us."""

    def waiting(self, packed_bytes: int) -> list[WaitingRow]:
        """Return the first batches that wait for the clock: one, or more of these bytes."""


class StoreKeeper(Protocol):
    """What a part may ask of the store when nothing is uncommitted."""

    def undelivered(self) -> list[Undelivered]:
        """Return how many entries are dirty, by stream, and for whom."""

    def dirty_panes(
        self, after: EntryKey, limit: int, *, refused_too: bool
    ) -> list[tuple[PaneId, PaneRow]]:
        """Return the next dirty entries after a place, in the order in which they were written."""

    def prune(self, floor_us: int, pruned_us: int) -> int:
        """Delete what lies wholly below a floor; return the greatest end of all that is deleted."""


class AgentStore(StoreReader, StoreKeeper, Protocol):
    """The store of an agent, as the core and its driver use it."""

    path: Path

    def commit(self, changes: Changes) -> None:
        """Make all changes durable, or none."""

    def readings(self) -> Iterator[dict[str, Any]]:
        """Yield the kept readings in the order of their acceptance."""

    def put_aside(self) -> None:
        """Put the file aside, after it was found to be damaged, and close it."""

    def close(self) -> None:
        """Close the file."""


class Part:
    """One feature of an agent. A part overrides what it has something to do for.

    Attributes:
        name: what its failures are counted under.
        is_changed: `take_changes` is asked only where this is so; a part that does not set it is
            always asked.
        has_notes: the same for `take_notes`; each frame that it takes may bring some.
        due_us: from this time of the driver's clock on, `is_due`, `tick` and `publications` are
            called; a part that does not set it is called at every tick.
    """

    name: ClassVar[str] = "part"
    is_changed: bool = True
    has_notes: bool = True
    due_us: int = ALWAYS_US

    @property
    def handlers(self) -> Mapping[type[Frame], Handler]:
        """The frame kinds that it takes."""
        return {}

    @property
    def listens(self) -> Mapping[str, Callable[[bytes, int], None]]:
        """Topics of other programs, and what takes a message on each, with the time."""
        return {}

    @property
    def closed(self) -> bool:
        """Whether no part after it may publish anything yet."""
        return False

    def refusal(self, frame: Frame, now_us: int) -> str | None:  # noqa: ARG002 - the contract
        """Return why no part may take a frame; None if it may be taken."""
        return None

    def connected(self, now_us: int) -> None:
        """A new connection: the broker may have lost all that was published before."""

    def unsent(self, publication: Publication) -> None:
        """The link did not take this publication, and none that came after it."""

    def succeed(self) -> None:
        """Go on as the agent's present replica: a later one of this device is known."""

    def is_due(self, now_us: int) -> bool:  # noqa: ARG002 - the contract
        """Return whether a commit is to come though nothing has changed yet."""
        return False

    def read(self, store: StoreReader, now_us: int) -> None:
        """Read what the changes of the coming commit need."""

    def give_up(self) -> None:
        """`read` has raised: store nothing of what it was at."""

    def tick(self, now_us: int) -> None:
        """Do what is due by now."""

    def take_changes(self) -> Changes | None:
        """Return what must be committed and was not taken yet; None if there is nothing."""
        return None

    def take_notes(self) -> Changes | None:
        """Return what may wait for another commit and was not taken yet; None if nothing."""
        return None

    def committed(self) -> None:
        """All that was taken is durable."""

    def recall(self, store: StoreKeeper, now_us: int) -> None:
        """Take back of the store what memory is to look at; nothing is uncommitted."""

    def publications(self, now_us: int) -> Iterator[Publication]:  # noqa: ARG002 - the contract
        """Yield what is to be published now."""
        return iter(())

    def report(self) -> dict[str, Any]:
        """Return its report, as plain data by name; names of all parts differ."""
        return {}
