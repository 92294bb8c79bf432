"""The state of a gateway, the changes of a turn, and the reads of its core.

    entry  one replica's partial of one pane of a device: of a replica the greatest seq counts
    row    one revision of one window: the greatest revision of (window, key, start) is current
    state  the frontier, and all that is known of devices and operators

All changes of a turn become durable together, and the frontier with them. So a row is never final
without the panes that it was made from.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, Protocol

from crdts import ControlLog, Frontier, Membership
from lasp_edge.evaluation.stored import HistoryId, HistoryRow, RowsPartId
from lasp_edge.folds.columns import Partial
from lasp_edge.language.fleet_regimes import StartSpan
from lasp_edge.protocol.acceptance import Begun
from lasp_edge.protocol.lost_stores import EarlierLives
from lasp_edge.protocol.waiting import Step
from lasp_edge.protocol.window_rows import FleetRow, WindowStart


class WriterOfPanes(NamedTuple):
    """A replica of a device: the only one that writes its entries."""

    device: str
    incarnation: int
    nonce: int


class KeptEntry(NamedTuple):
    """One replica's partial of one pane.

    Attributes:
        stream: of the window.
        pane_us: start of the pane.
        key: what the window is kept by; "" without a key.
    """

    stream: int
    pane_us: int
    key: str
    writer: WriterOfPanes
    seq: int
    partial: Partial


class FleetState(NamedTuple):
    """The state of a gateway beside its entries and rows: small, and whole in memory.

    Attributes:
        frontier_us: how far results are final; None for nothing yet.
        promises: the newest of each device.
        membership: all member commands.
        witnessed: device -> its line of the witness (`lasp_edge.protocol.witness`).
        steps: of the promises by which it is known since when windows wait.
        control: the log of the parameters.
        held: starts of windows that wait until all devices have promised under the present log.
        served: the definitions of the windows that are as the frontier says, and the streams of the
            results over the fleet; None for all.
        begun: device -> the windows that lack readings of it, and from when on all are there.
        lost: device -> up to which time it had promised before it came with another store, and
            from when on that has all its readings.
        owed: retired device -> up to which time windows lack what it may still send.
        earlier: device -> its lives before the present one.
        furthest: device -> how far it had promised, where it promises less now.
    """

    frontier_us: int | None = None
    promises: Frontier = Frontier()
    membership: Membership = Membership()
    witnessed: Mapping[str, str] = MappingProxyType({})
    steps: frozenset[Step] = frozenset()
    control: ControlLog = ControlLog()
    held: tuple[StartSpan, ...] = ()
    served: frozenset[int] | None = None
    begun: Mapping[str, Begun] = MappingProxyType({})
    lost: Mapping[str, tuple[int, int]] = MappingProxyType({})
    owed: Mapping[str, int] = MappingProxyType({})
    earlier: Mapping[str, EarlierLives] = MappingProxyType({})
    furthest: Mapping[str, int] = MappingProxyType({})


@dataclass
class FleetChanges:
    """The changes of a turn, all of them or nothing.

    Attributes:
        entries: that are new or grew.
        rows: that are new; each is the current one of its window now.
        history: what streams over the fleet keep of their states.
        result_parts: parts of the rows of their results; None: it is gone.
        state: after the turn; None if it is the one before.
        panes_below: stream -> entries of panes that start below are of no use any more.
        others_below: the same of streams that are not there: of windows that are no more, or of
            their meaning before an operator changed something.
        rows_below: rows of windows that end below are forgotten.
        facts: further ones, by name, as text.
    """

    entries: list[KeptEntry] = field(default_factory=list)
    rows: list[FleetRow] = field(default_factory=list)
    state: FleetState | None = None
    panes_below: Mapping[int, int] = field(default_factory=dict)
    others_below: int | None = None
    rows_below: int | None = None
    history: dict[HistoryId, HistoryRow] = field(default_factory=dict)
    result_parts: dict[RowsPartId, bytes | None] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Return whether there is anything to write."""
        written = (self.entries, self.rows, self.history, self.result_parts, self.facts)
        return any(written) or self.state is not None


class FleetKeeper(Protocol):
    """Keeps a gateway's entries, rows and state: `store.FleetStore`, or a simulated one."""

    def restored(self) -> FleetState:
        """Return the state that a core starts with."""

    def entries(self, stream: int, first_us: int, last_us: int) -> Iterable[KeptEntry]:
        """Return the entries of the panes of a stream from one start to another, both included."""

    def places(self, stream: int, first_us: int, last_us: int) -> Iterable[tuple[int, str]]:
        """Return start and key of the panes with entries, from one start to another, included."""

    def history(self, stream: int, least_us: int, end_us: int) -> Iterable[tuple[int, HistoryRow]]:
        """Return what is kept of a stream with least_us <= time < end_us, each with its time."""

    def result_parts(
        self, stream: int, least_us: int, end_us: int
    ) -> Iterable[tuple[int, int, bytes]]:
        """Return cell, number and content of the parts of rows with least_us <= cell < end_us.

        In the order of cells and numbers.
        """

    def row(self, at: WindowStart) -> FleetRow | None:
        """Return the current row of a window; None before it has one."""

    def current(self, window: str, first_us: int, last_us: int) -> Iterable[FleetRow]:
        """Return the current rows of a window, of starts from one to another, both included."""

    def commit(self, changes: FleetChanges) -> None:
        """Make all changes durable, or none."""
