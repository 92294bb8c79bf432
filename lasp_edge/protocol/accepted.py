"""The outcome of a sink's messages: rows, promises, answers that are owed, and what was refused."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from crdts import Frontier, Lattice
from lasp_edge.protocol.acks import Answer
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.commands import CommandLog
from lasp_edge.protocol.fencing import HelloFrame
from lasp_edge.protocol.frames import VariableFrame


class Record(NamedTuple):
    """One message as it came in.

    Attributes:
        received_us: when, on the lander's clock.
        retained: the broker had kept it: it may be old.
    """

    received_us: int
    topic: str
    retained: bool
    payload: bytes


class PaneRows(NamedTuple):
    """Pane entries of one replica of a device: one row each."""

    device: str
    block: PaneEntries
    received_us: int


class EntryRows(NamedTuple):
    """A device's entry of a variable's shard: one row a key, or one that says it is empty."""

    frame: VariableFrame
    received_us: int


class CommandRows(NamedTuple):
    """What operators decided of one device or parameter, that was not known yet.

    Attributes:
        owed_us: a retired device -> up to which time it may have sent to others what it has not
            sent here (`lasp_edge.protocol.owed`).
    """

    commands: CommandLog
    received_us: int
    owed_us: Mapping[str, int] = MappingProxyType({})


Rows = PaneRows | EntryRows | CommandRows
Begun = tuple[tuple[int, int], ...]
"""Streams of windows, and from when on all readings of a device are in their panes."""


class SharedNews(NamedTuple):
    """A part of a shared variable's state that was not known yet."""

    variable: str
    stream: int
    state: Lattice
    received_us: int


class Refusal(NamedTuple):
    """The first message of a topic that was refused for some reason, and how many there were."""

    first: Record
    records: int


@dataclass
class Accepted:
    """What came of some messages.

    Attributes:
        rows: in the order of their messages.
        shared: what is news of shared variables, in the same order.
        promises: the newest of each device, with the time at which its version first came.
        begun: with the newest promise of each device, the windows that lack readings of it, and
            from when on all are there.
        begun_before: the same, as frames with panes of a device state it before its next promise.
        unsent: device -> the windows to which it sends nothing, as its presence says.
        answers: to each device about its pane entries, once they have landed.
        heard: the devices whose beats came, and whether they name this sink's store.
        known: the devices of which an entry or presence came, or was kept by the broker.
        hellos: those to be answered with the state known then, by asker and subject.
        commands: those of operators that were not known yet.
        owed_us: of these, see `CommandRows`.
        overtaken: the devices of which an earlier life speaks that may be alive: they are to ask.
        refused: by topic and reason.
        lost: the greatest commit of this store that a device repeats and that is not in it; 0 for
            none.
    """

    rows: list[Rows] = field(default_factory=list)
    shared: list[SharedNews] = field(default_factory=list)
    promises: Frontier = field(default_factory=Frontier)
    begun: dict[str, Begun] = field(default_factory=dict)
    begun_before: dict[str, Begun] = field(default_factory=dict)
    unsent: dict[str, Begun] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    heard: dict[str, bool] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    hellos: dict[tuple[str, str], HelloFrame] = field(default_factory=dict)
    commands: CommandLog = field(default_factory=CommandLog)
    owed_us: dict[str, int] = field(default_factory=dict)
    overtaken: set[str] = field(default_factory=set)
    refused: dict[tuple[str, str], Refusal] = field(default_factory=dict)
    lost: int = 0

    def refuse(self, record: Record, reason: str) -> None:
        """Count a message of which something, or all, is not taken."""
        at = (record.topic, reason)
        first, records = self.refused.get(at, (record, 0))
        self.refused[at] = Refusal(first, records + 1)
