"""Acknowledgements: which entries a sink has taken, and which it has not, with the reason.

An entry is named by the replica that wrote it and by its seq, which no other entry of that replica
ever has. So an acknowledgement counts whenever it comes, whatever frames the device has given up.
Seqs of neighbours are most often neighbours: they travel as runs, by difference.

    >>> named = Seqs.of(2, 77, [5, 3, 4, 9])
    >>> named.runs, [seq for seq in range(11) if seq in named]
    (((3, 5), (9, 9)), [3, 4, 5, 9])
    >>> Seqs.unpacked(named.packed()) == named
    True
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import islice
from typing import Any, Final, NamedTuple, Self

from crdts import Replica, Version
from crdts.replica import SEQS
from lasp_edge.protocol import checks
from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.envelope import Envelope, Frame
from lasp_edge.protocol.sinks import SINK_BYTES, sink_name

RUNS_IN_AN_ACK: Final = 3_000
"""Runs of seqs in one frame: 12 bytes each in a replica that wrote a million entries, so 36 kB."""

FORMER_STORES: Final = 16
"""Stores from which one follows and that it names, at most: who delivered to one before them sends
everything again."""

Run = tuple[int, int]
"""The first and the last of some seqs without a gap."""


class NotTaken(IntEnum):
    """Why a sink did not take an entry. The device keeps it, and sends it again ever less often."""

    UNKNOWN_STREAM = 1
    OTHER_LENGTH = 2
    LATER_REPLICA = 3
    BEFORE_1900 = 4
    FAR_FUTURE = 5
    RETIRED = 6
    NOT_IN_FORM = 7

    @property
    def text(self) -> str:
        """The reason under which a lander counts the frame."""
        return _TEXTS[self]

    @property
    def advice(self) -> str:
        """What it means to the owner of the device, after the sink's name, and what to do."""
        return _ADVICE[self]


_TEXTS: Final = {
    NotTaken.UNKNOWN_STREAM: "unknown stream",
    NotTaken.OTHER_LENGTH: "panes of another length",
    NotTaken.LATER_REPLICA: "panes of a later replica",
    NotTaken.BEFORE_1900: "panes before the year 1900",
    NotTaken.FAR_FUTURE: "panes from the far future",
    NotTaken.RETIRED: "of a retired device",
    NotTaken.NOT_IN_FORM: "partial not in its form",
}
_ADVICE: Final = {
    NotTaken.UNKNOWN_STREAM: "it has no such window or stream: start it with the program and the "
    "release of this device",
    NotTaken.OTHER_LENGTH: "its window has panes of another length: use one program",
    NotTaken.LATER_REPLICA: "they name a later start of this device",
    NotTaken.BEFORE_1900: "their time is before 1900: look at the source's clock",
    NotTaken.FAR_FUTURE: "their time is far ahead of its clock: they land when it has come. If now "
    "is that time, its clock is wrong: type timedatectl on its machine",
    NotTaken.RETIRED: "this device is retired: lasp-edge admit lets it count again",
    NotTaken.NOT_IN_FORM: "it cannot read them: use one release everywhere",
}


class Seqs(NamedTuple):
    """Entries of one replica, by seq.

    Attributes:
        incarnation: with `nonce` the replica that wrote them.
        nonce: see `incarnation`.
        runs: of their seqs, ascending.
    """

    incarnation: int
    nonce: int
    runs: tuple[Run, ...]

    @classmethod
    def of(cls, incarnation: int, nonce: int, seqs: Iterable[int]) -> Self:
        """Return the entries with these seqs, in any order."""
        runs: list[Run] = []
        for seq in sorted(set(seqs)):
            if runs and runs[-1][1] == seq - 1:
                runs[-1] = (runs[-1][0], seq)
            else:
                runs.append((seq, seq))
        return cls(incarnation, nonce, tuple(runs))

    def __contains__(self, seq: object) -> bool:
        at = bisect_right(self.runs, (seq, SEQS))
        return at > 0 and bool(seq <= self.runs[at - 1][1])  # type: ignore[operator]

    def total(self) -> int:
        """Return how many entries they are."""
        return sum(last - first + 1 for first, last in self.runs)

    def packed(self) -> list[Any]:
        """Return them as msgpack takes them: a gap and a length for each run."""
        steps: list[int] = []
        at = 0
        for first, last in self.runs:
            steps += (first - at, last - first)
            at = last
        return [self.incarnation, self.nonce, steps]

    @classmethod
    def unpacked(cls, plain: Any) -> Self:
        """Return what `packed` was called of.

        Raises:
            FrameError, TypeError, ValueError: it is no such list.
        """
        incarnation, nonce, steps = checks.array(plain)
        Version.checked(incarnation, nonce, 0)
        numbers = checks.integers(steps, 0, SEQS)
        if len(numbers) % 2 or 0 in numbers[2::2]:
            raise FrameError("not runs of seqs")
        runs: list[Run] = []
        at = 0
        for gap, more in zip(numbers[::2], numbers[1::2], strict=True):
            runs.append((at + gap, at + gap + more))
            at += gap + more
        checks.integer(at, 0, SEQS)
        return cls(incarnation, nonce, tuple(runs))


class FormerStore(NamedTuple):
    """A store from which another one follows, and up to which of its commits that one has it."""

    store: str
    commit: int


def former_stores(plain: Any) -> tuple[FormerStore, ...]:
    """Return the stores from which a store follows.

    Raises:
        FrameError, ValueError: they are not of that form.
    """
    rows = [checks.array(row) for row in checks.array(plain)]
    if len(rows) > FORMER_STORES:
        raise FrameError("too many former stores")
    return tuple(
        [
            FormerStore(checks.text(store, SINK_BYTES), checks.integer(commit, 0, SEQS))
            for store, commit in rows
        ]
    )


class Untaken(NamedTuple):
    """Entries that a sink did not take, for one reason; see `NotTaken`, which may grow."""

    reason: int
    seqs: Seqs


REASONS: Final = 16
"""Numbers of reasons are below it."""


def reason_text(reason: int) -> str:
    """Return the words for a reason; a later release may have others."""
    known = {each.value: each.advice for each in NotTaken}
    return known.get(reason, f"reason {reason}, which a later release knows")


@dataclass(frozen=True, slots=True)
class AckFrame(Frame):
    """A sink tells the device `about` which of its pane entries have landed, and which have not.

    One that names no entry says only which store the sink has. A gateway's store has a new id at
    each start, and names those from which it follows: what it lacks of one shows, whether its file
    was cut, copied or put back (`device_agent.agent.panes.sinks`).

    Attributes:
        number: of the commit after which it was sent, where the store follows others.
        sink: the sink's name.
        store: the id of the store in which they have landed.
        taken: the entries that have landed, by replica.
        not_taken: those that have not, by reason and replica.
        clock_s: the lander's clock, seconds since the epoch; None where it does not say.
        control: what tells the log of parameters that the sink knows from others.
        former: the stores from which this one follows, to a device that may not know it yet.
        commit: a lake's, after which it was sent; the device repeats the greatest after which
            something was taken (`SinkLow.commit`). 0 of a store with an id for each start.
    """

    about: str = field()  # the base class's property is not its default
    sink: str
    store: str
    taken: tuple[Seqs, ...] = ()
    not_taken: tuple[Untaken, ...] = ()
    clock_s: int | None = None
    control: int = 0
    former: tuple["FormerStore", ...] = ()
    commit: int = 0

    kind = 5

    def body(self) -> list[Any]:
        untaken = [[reason, *seqs.packed()] for reason, seqs in self.not_taken]
        taken = [seqs.packed() for seqs in self.taken]
        return [self.sink, self.store, taken, untaken, self.clock_s]

    def extra(self) -> dict[str, Any]:
        former = {"former": list(map(list, self.former))} if self.former else {}
        known = {"control": self.control, "commit": self.commit}
        return former | {name: number for name, number in known.items() if number}

    @classmethod
    def from_envelope(cls, envelope: Envelope) -> Self:
        sink, store, taken, not_taken, clock_s = envelope.body
        known = tuple([Seqs.unpacked(seqs) for seqs in checks.array(taken)])
        untaken = tuple([_untaken(*checks.array(each)) for each in checks.array(not_taken)])
        store = checks.text(store, SINK_BYTES)
        if not store:
            raise FrameError("bad text")
        control = checks.integer(envelope.extra.get("control", 0), 0)
        former = former_stores(envelope.extra.get("former", []))
        commit = checks.integer(envelope.extra.get("commit", 0), 0, SEQS)
        rest = (checks.clock_s(clock_s), control, former, commit)
        fields = (sink_name(sink), store, known, untaken, *rest)
        return cls(envelope.sender, envelope.number, envelope.about, *fields)


def _untaken(reason: Any, *seqs: Any) -> Untaken:
    return Untaken(checks.integer(reason, 1, REASONS), Seqs.unpacked(list(seqs)))


class Answer:
    """The answers that a sink owes one device; they are collected, and sent in bounded frames.

    Attributes:
        taken: the seqs that have landed, by replica.
        not_taken: the others, by reason and replica.
    """

    __slots__ = ("not_taken", "taken")

    def __init__(self) -> None:
        self.taken: dict[tuple[int, int], set[int]] = {}
        self.not_taken: dict[tuple[int, int, int], set[int]] = {}

    def add(self, other: "Answer") -> None:
        """Join another answer: an entry that landed stays so, whatever the other one has of it."""
        for (incarnation, nonce), seqs in other.taken.items():
            self.take(incarnation, nonce, seqs)
        for (reason, incarnation, nonce), seqs in other.not_taken.items():
            self.refuse(reason, incarnation, nonce, seqs)

    def take(self, incarnation: int, nonce: int, seqs: Iterable[int]) -> None:
        """Say that entries have landed."""
        self.taken.setdefault((incarnation, nonce), set()).update(seqs)

    def refuse(self, reason: int, incarnation: int, nonce: int, seqs: Iterable[int]) -> None:
        """Say that entries were not taken."""
        self.not_taken.setdefault((reason, incarnation, nonce), set()).update(seqs)

    def frames(
        self,
        sender: Replica,
        number: int,
        about: str,
        sink: tuple[str, str],
        clock_s: int | None = None,
        control: int = 0,
        former: tuple[FormerStore, ...] = (),
        commit: int = 0,
    ) -> Iterator[AckFrame]:
        """Yield the frames that say it, at least one.

        Args:
            sender: who says it.
            number: of the frames: of the last commit, where the store follows others.
            about: the device.
            sink: the sink's name, and the id of its store.
            clock_s: the sender's clock.
            control: what tells the log of parameters that the sink knows from others.
            former: the stores from which the sink's follows, if the device may not know it yet.
            commit: a lake's last one; 0 of another sink.
        """
        rest = self._pieces()
        some = list(islice(rest, RUNS_IN_AN_ACK))
        while True:
            seqs = _by_replica(some)
            yield AckFrame(sender, number, about, *sink, *seqs, clock_s, control, former, commit)
            some = list(islice(rest, RUNS_IN_AN_ACK))
            if not some:
                return

    def _pieces(self) -> Iterator[tuple[int, int, int, Run]]:
        """Yield (reason or 0, incarnation, nonce, run) of all entries."""
        for (incarnation, nonce), seqs in self.taken.items():
            for run in Seqs.of(incarnation, nonce, seqs).runs:
                yield 0, incarnation, nonce, run
        for (reason, incarnation, nonce), seqs in self.not_taken.items():
            for run in Seqs.of(incarnation, nonce, seqs).runs:
                yield reason, incarnation, nonce, run


def _by_replica(
    pieces: Iterable[tuple[int, int, int, Run]],
) -> tuple[tuple[Seqs, ...], tuple[Untaken, ...]]:
    found: dict[tuple[int, int, int], list[Run]] = {}
    for reason, incarnation, nonce, run in pieces:
        found.setdefault((reason, incarnation, nonce), []).append(run)
    taken = [Seqs(*at[1:], tuple(runs)) for at, runs in found.items() if not at[0]]
    untaken = [Untaken(at[0], Seqs(*at[1:], tuple(runs))) for at, runs in found.items() if at[0]]
    return tuple(taken), tuple(untaken)
