"""What a gateway keeps, what a turn changes of it, and what its core asks of whoever keeps it.

    entry    one replica's partial of one pane of a device: of a replica the greatest seq counts
    row      one revision of one window: the greatest revision of (window, key, start) is current
    promise  how far a device has come; a member command, and what was heard of each device

All changes of a turn become durable together, and the frontier with them. So a row is never final
without the panes that it was made from.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from crdts import ControlLog, Frontier, Member, Membership
from crdts.frontier import Promise
from lasp_edge.folds.columns import Partial
from lasp_edge.language.fleet_regimes import StartSpan
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


@dataclass
class FleetChanges:
    """What a turn changes, all of it or nothing.

    Attributes:
        entries: that came or grew.
        rows: that are new; each is the current one of its window now.
        promises: by device.
        members: the commands that were not known.
        heard: device -> what was heard of it, as a line (`lasp_edge.protocol.witness`).
        frontier_us: if it has moved.
        served: the streams of the windows over which it was moved, if they are others than before.
        control: what operators said of parameters, if something is new.
        held: starts of windows that wait until all devices have promised anew, if they changed.
        panes_below: stream -> entries of panes that start below are of no use any more.
        others_below: the same of streams that are not there: of windows that are no more, or that
            meant something else before an operator said something.
        rows_below: rows of windows that end below are forgotten.
        steps: of the promises by which it is told since when windows wait; those that are new.
        steps_gone: those that are of no use any more.
    """

    entries: list[KeptEntry] = field(default_factory=list)
    rows: list[FleetRow] = field(default_factory=list)
    promises: dict[str, Promise] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    heard: dict[str, str] = field(default_factory=dict)
    frontier_us: int | None = None
    served: frozenset[int] | None = None
    control: ControlLog | None = None
    held: tuple[StartSpan, ...] | None = None
    panes_below: Mapping[int, int] = field(default_factory=dict)
    others_below: int | None = None
    rows_below: int | None = None
    steps: frozenset[Step] = frozenset()
    steps_gone: frozenset[Step] = frozenset()

    def __bool__(self) -> bool:
        """Return whether there is anything to write."""
        changed = (self.entries, self.rows, self.promises, self.members, self.heard, self.steps)
        said = (self.frontier_us, self.control, self.held)
        return any(changed) or any(each is not None for each in said)


class RestoredFleet(NamedTuple):
    """What a core starts with.

    Attributes:
        frontier_us: how far results are final; None for nothing yet.
        promises: the newest of each device.
        membership: all member commands.
        heard: lines on what was heard of the devices.
        steps: by which it is told since when windows wait.
        control: what operators said of parameters.
        held: starts of windows that wait until all devices have promised anew.
        served: the streams of the windows over which the frontier was moved last; None for all.
    """

    frontier_us: int | None
    promises: Frontier
    membership: Membership
    heard: tuple[str, ...]
    steps: tuple[Step, ...] = ()
    control: ControlLog = ControlLog()
    held: tuple[StartSpan, ...] = ()
    served: frozenset[int] | None = None


class FleetKeeper(Protocol):
    """What keeps a gateway's state: `store.FleetStore`, or a simulated one."""

    def restored(self) -> RestoredFleet:
        """Return what a core starts with."""

    def entries(self, stream: int, first_us: int, last_us: int) -> Iterable[KeptEntry]:
        """Return the entries of the panes of a stream from one start to another, both included."""

    def places(self, stream: int, first_us: int, last_us: int) -> Iterable[tuple[int, str]]:
        """Return start and key of the panes with entries, from one start to another, included."""

    def row(self, at: WindowStart) -> FleetRow | None:
        """Return the current row of a window; None before it has one."""

    def current(self, window: str, first_us: int, last_us: int) -> Iterable[FleetRow]:
        """Return the current rows of a window, of starts from one to another, both included."""

    def commit(self, changes: FleetChanges) -> None:
        """Make all changes durable, or none."""
