"""Hello and vouch: a new replica asks for its former lives, and peers and landers answer.

A device whose store was lost, or is an older image, does not know its own later lives. So before a
replica publishes anything else it says hello, and the landers and some peers answer with the newest
replica of that device that they have heard of and, for each source whose readings carry their own
time, how far it had come. A vouch echoes the hello's challenge, so it counts for nobody who did not
ask. `device_agent.agent.fleet.fence` is who asks, `lasp_edge.protocol.witness` what is known of
others.

    >>> asker = Replica(1, 7, "pi-1")
    >>> hello = HelloFrame(asker, 1, "pi-1", challenge=4711, attempt=1)
    >>> known = Replica(5, 9, "pi-1")
    >>> vouch = VouchFrame.of(Replica(1, 3, "lander"), 1, hello, known)
    >>> (vouch.about, vouch.subject == known, vouch.challenge)
    ('pi-1', True, 4711)
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from operator import attrgetter
from typing import Any, Final, NamedTuple, Self

from crdts import Replica
from crdts.replica import SEQS
from lasp_edge.protocol import checks
from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.envelope import Envelope, Frame
from lasp_edge.protocol.limits import TIME_LIMIT_US

MOST_REPORTS: Final = 4
"""Processes of a device whose reports are kept apart; those of still older ones are joined."""
MOST_SOURCES: Final = 64
"""Sources with own times of which a frame tells, at most: 64 times 20 bytes."""
CHALLENGES: Final = 1 << 48
"""A challenge is below it: a stranger who does not hear the hello guesses it hardly ever."""
_REPORTS: Final = "told"
"""Key of a vouch's extra element: the reports one by one, where there are several."""
HINT: Final = 0
"""The challenge of a vouch that answers no hello: it only says that it is time to ask."""
ATTEMPTS: Final = 16
"""Attempts are below it."""


class SourceHigh(NamedTuple):
    """How far a device has come with a source whose readings carry their own time.

    Attributes:
        source: `source_id` of its name.
        high_us: the greatest own time that was accepted.
        accepted: how many readings of it the device had accepted, over all its lives.
    """

    source: int
    high_us: int
    accepted: int


def source_id(name: str) -> int:
    """Return 32 bits that stand for a source's name, which may be a long path."""
    return int.from_bytes(sha256(name.encode()).digest()[:4], "big")


def joined(*several: Iterable[SourceHigh]) -> tuple[SourceHigh, ...]:
    """Return the furthest of each source, by source; of too many sources the furthest ones."""
    found: dict[int, SourceHigh] = {}
    for highs in several:
        for high in highs:
            known = found.get(high.source)
            if known is None:
                found[high.source] = high
            elif known != high:
                furthest = (max(known[1], high[1]), max(known[2], high[2]))
                found[high.source] = SourceHigh(high.source, *furthest)
    if len(found) > MOST_SOURCES:
        kept = sorted(found.values(), key=attrgetter("high_us"))[-MOST_SOURCES:]
        return tuple(sorted(kept))
    return tuple([found[source] for source in sorted(found)])


def source_highs(plain: Any) -> tuple[SourceHigh, ...]:
    """Return the progress of the sender's sources from a frame's body.

    Raises:
        FrameError, TypeError: it says nothing of the kind.
    """
    if len(checks.array(plain)) > MOST_SOURCES:
        raise FrameError("too many sources")
    return tuple([_high(*checks.array(each)) for each in plain])


def _high(source: Any, high_us: Any, accepted: Any) -> SourceHigh:
    return SourceHigh(
        checks.integer(source, 0, 1 << 32),
        checks.integer(high_us, -TIME_LIMIT_US, TIME_LIMIT_US),
        checks.integer(accepted, 0, SEQS),
    )


class ProcessReport(NamedTuple):
    """The report of one process of a device: how far its sources had come, over all lives it knew.

    Attributes:
        reporter: the newest replica of the process.
        highs: how far that was.
    """

    reporter: Replica
    highs: tuple[SourceHigh, ...]

    def joined(self, other: Self) -> Self:
        """Return the join of two reports of one process."""
        return type(self)(max(self.reporter, other.reporter), joined(self.highs, other.highs))

    def plain(self) -> list[Any]:
        """Return it as msgpack and JSON take it, without the device."""
        return [*self.reporter[:2], list(map(list, self.highs))]


def process_reports(plain: Any, device: str) -> tuple[ProcessReport, ...]:
    """Return the reports of a device from their plain form.

    Raises:
        FrameError, TypeError, ValueError: it never returns that.
    """
    if len(checks.array(plain)) > MOST_REPORTS:
        raise FrameError("too many reports")
    found = []
    for incarnation, nonce, highs in plain:
        reported = source_highs(highs)
        if reported:
            found.append(ProcessReport(checks.replica(incarnation, nonce, device), reported))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class HelloFrame(Frame):
    """A device asks everybody what they know of the device `about`, most often itself.

    Attributes:
        challenge: what the answers must repeat.
        attempt: how often it has asked with this challenge, from 1; more peers answer each time.
    """

    about: str = field()  # the base class's property is not its default
    challenge: int
    attempt: int

    kind = 8

    def body(self) -> list[Any]:
        return [self.challenge, self.attempt]

    @classmethod
    def from_envelope(cls, envelope: Envelope) -> Self:
        challenge, attempt = envelope.body
        checks.integer(challenge, 1, CHALLENGES)
        checks.integer(attempt, 1, ATTEMPTS)
        return cls(envelope.sender, envelope.number, envelope.about, challenge, attempt)


@dataclass(frozen=True, slots=True)
class VouchFrame(Frame):
    """The answer to a hello of the device `about`: its newest life and progress, as known here.

    Attributes:
        challenge: of the hello that it answers; `HINT`: of none.
        subject: the newest known replica of the device that was asked about; incarnation 0: none.
        reporter: the newest replica of it that reports how far its sources had come; see `subject`.
        highs: how far that was, over all lives that its process knew.
        keeps: the sender keeps what it hears over its own restarts, as a lander does.
        others: the reports of other processes, the newest first.
    """

    about: str = field()  # the base class's property is not its default
    challenge: int
    subject: Replica
    reporter: Replica
    highs: tuple[SourceHigh, ...]
    keeps: bool = False
    others: tuple[ProcessReport, ...] = ()

    kind = 9

    @classmethod
    def of(
        cls,
        sender: Replica,
        number: int,
        hello: HelloFrame,
        subject: Replica | None,
        reporter: Replica | None = None,
        highs: tuple[SourceHigh, ...] = (),
        *,
        keeps: bool = False,
        others: tuple[ProcessReport, ...] = (),
    ) -> Self:
        """Return the answer to a hello; None for a replica that is not known."""
        nobody = Replica(0, 0, hello.about)
        known = (subject or nobody, reporter or nobody, highs, keeps, others)
        return cls(sender, number, hello.sender.device, hello.challenge, *known)

    @classmethod
    def hint(cls, sender: Replica, number: int, device: str) -> Self:
        """Return the answer to a device of which a later replica than its present one is known."""
        nobody = Replica(0, 0, device)
        return cls(sender, number, device, HINT, nobody, nobody, ())

    @property
    def reports(self) -> tuple[ProcessReport, ...]:
        """The reports of the last processes, the newest first."""
        own = (ProcessReport(self.reporter, self.highs),) if self.highs else ()
        return *own, *self.others

    def body(self) -> list[Any]:
        device = self.subject.device
        subject = None if device == self.about else device
        # A reader that ignores the extra element takes all of it for the newest one's report.
        several = self.others and joined(self.highs, *(each.highs for each in self.others))
        newest = [*self.reporter[:2], list(map(list, several or self.highs)), self.keeps]
        return [self.challenge, subject, *self.subject[:2], *newest]

    def extra(self) -> dict[str, Any]:
        return {_REPORTS: [each.plain() for each in self.reports]} if self.others else {}

    @classmethod
    def from_envelope(cls, envelope: Envelope) -> Self:
        challenge, subject, incarnation, nonce, first, second, highs, keeps = envelope.body
        checks.integer(challenge, 0, CHALLENGES)
        device = envelope.about if subject is None else subject
        known = checks.replica(incarnation, nonce, device)
        newest = ProcessReport(checks.replica(first, second, device), source_highs(highs))
        others: list[ProcessReport] = []
        if _REPORTS in envelope.extra:
            newest, *others = process_reports(envelope.extra[_REPORTS], device)
        fields = (*newest, checks.flag(keeps), tuple(others))
        return cls(envelope.sender, envelope.number, envelope.about, challenge, known, *fields)
