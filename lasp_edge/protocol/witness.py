"""The witness: the newest lives of the others as a device or lander saw them, to vouch for them.

It keeps the newest replica of each device and how far its sources had come, as each of its last
processes reported: what one counted must not hide what another one did. From that it also judges
who may be heard. A life with an incarnation that its device cannot have, as far as is known, is
held back until somebody vouches for it, or until it has gone on to speak for a minute in which no
known life of its device spoke. A stranger's single frame does not go on to speak. The number of
devices is bounded, so that inventing names helps nobody.

    >>> witness = Witness(most=1)
    >>> beat = BeatFrame(Replica(2_000, 7, "attic"), 1, (), False, ())
    >>> sender_refusal(beat, witness.known("attic", 0, nonce=7))
    'first contact with an incarnation too far ahead'
    >>> witness.hold(beat.sender, 0)
    >>> sender_refusal(beat, witness.known("attic", HELD_US, nonce=7))
    >>> witness.take(beat, HELD_US)
    >>> witness.of("attic").replica.incarnation
    2000
    >>> sender_refusal(beat, witness.known("cellar", 5))
    'too many devices'
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from crdts import Replica
from lasp_edge.protocol.admission import Known, sender_refusal
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.fencing import (
    MOST_REPORTS,
    HelloFrame,
    ProcessReport,
    SourceHigh,
    VouchFrame,
    joined,
    process_reports,
)
from lasp_edge.protocol.frames import BeatFrame, PaneFrame

__all__ = ["HELD_US", "Testimony", "Witness", "sender_refusal"]

HELD_US: Final = 60_000_000
"""Microseconds for which an unlikely life is held back: time for all of a fleet to answer, and for
its device to speak, also after a broker's restart."""
_ONE_REPORT: Final = 3
"""Elements of a report."""
MOST_HELD: Final = 100
"""Lives that are held back at the same time, at most: those that spoke last."""


class Testimony(NamedTuple):
    """The newest life of a device as it was seen.

    Attributes:
        replica: the newest one.
        reports: how far its sources had come, of its last processes, the newest first.
        heard_us: when its last beat came; 0: none came.
    """

    replica: Replica
    reports: tuple[ProcessReport, ...] = ()
    heard_us: int = 0

    @property
    def highs(self) -> tuple[SourceHigh, ...]:
        """How far its sources had come, whichever process reported it."""
        return joined(*(report.highs for report in self.reports))


class Witness:
    """Device -> its newest life as it was seen.

    Args:
        most: the number of devices that are known, at most.
        incarnations: the greatest known of each device, where no more is known.
        keeps: it is kept over restarts.

    Attributes:
        changed: the devices of which it knows more; whoever keeps their lines clears it.
    """

    def __init__(
        self, most: int, incarnations: Mapping[str, int] | None = None, *, keeps: bool = False
    ) -> None:
        self._most, self._keeps = most, keeps
        self.changed: set[str] = set()
        self._known: dict[str, Testimony] = {}
        self._held_us: dict[tuple[str, int], int] = {}  # (device, nonce), who spoke last at the end
        self._texts: dict[str, tuple[tuple[Any, ...], str]] = {}
        for device, incarnation in (incarnations or {}).items():
            self.learn(Replica(incarnation, 0, device))

    def of(self, device: str) -> Testimony | None:
        """Return the newest life of a device as it was seen; None before the first."""
        return self._known.get(device)

    def heard_since(self, time_us: int) -> Iterator[str]:
        """Yield the devices of which a beat came at this time or later."""
        return (device for device, each in self._known.items() if each.heard_us >= time_us)

    def known(self, device: str, now_us: int, *, nonce: int = 0) -> Known:
        """Return what the rules of admission must know before a frame is taken.

        Args:
            device: which the frame is about.
            now_us: when it came.
            nonce: of the life that sent it, where that speaks of itself.
        """
        held_us = self._held_us.get((device, nonce)) if self._held_us else None
        waited = held_us is not None and now_us >= held_us + HELD_US
        found = self._known.get(device)
        if found is not None:
            return Known(found.replica.incarnation, waited=waited)
        return Known(None, waited=waited, full=len(self._known) >= self._most)

    def hold(self, sender: Replica, now_us: int) -> None:
        """Note that a life speaks and is held back; by a clock that was set back, from now on."""
        key = sender.device, sender.nonce
        since_us = min(self._held_us.pop(key, now_us), now_us)
        if len(self._held_us) >= MOST_HELD:
            del self._held_us[next(iter(self._held_us))]
        self._held_us[key] = since_us

    def learn(
        self,
        replica: Replica,
        reports: Iterable[ProcessReport] = (),
        heard_us: int = 0,
    ) -> None:
        """Take over what somebody knows of a device."""
        device = replica.device
        found = self._known.get(device)
        if found is None:
            if len(self._known) >= self._most:
                return
            found = Testimony(replica)
            self.changed.add(device)
        if self._held_us:  # a life that counts speaks, or somebody vouches for one
            self._held_us = {key: us for key, us in self._held_us.items() if key[0] != device}
        known = found.reports
        for report in reports:
            if report not in known:
                known = _joined(known, report)
        if known is not found.reports or replica > found.replica:
            self.changed.add(device)
        heard_us = max(heard_us, found.heard_us)
        self._known[device] = Testimony(max(replica, found.replica), known, heard_us)

    def take(self, frame: Frame, now_us: int) -> None:
        """Take a frame in which a device speaks of itself, and that is admitted."""
        highs: tuple[SourceHigh, ...] = ()
        heard_us = 0
        if type(frame) is BeatFrame:  # frames have no subclasses, and a fleet sends many
            highs, heard_us = frame.highs, now_us
        elif type(frame) is PaneFrame:
            highs = frame.highs
        self.learn(frame.sender, (ProcessReport(frame.sender, highs),) if highs else (), heard_us)

    def vouch(self, sender: Replica, number: int, hello: HelloFrame) -> VouchFrame:
        """Return the answer to a hello, which may be that nothing is known."""
        found = self._known.get(hello.about)
        if found is None:
            return VouchFrame.of(sender, number, hello, None, keeps=self._keeps)
        newest, others = (
            (found.reports[0], found.reports[1:]) if found.reports else ((None, ()), ())
        )
        known = (found.replica, *newest)
        return VouchFrame.of(sender, number, hello, *known, keeps=self._keeps, others=others)

    def lines(self) -> Iterator[str]:
        """Yield a line of JSON for each device: what `read` takes."""
        return (self._line(known) for known in self._known.values())

    def line(self, device: str) -> str | None:
        """Return the line of a device; None if nothing was heard of it."""
        known = self._known.get(device)
        if known is None:
            return None
        content = (known.replica, known.reports)
        made = self._texts.get(device)
        if made is None or made[0] != content:  # most beats say nothing new of it
            made = self._texts[device] = (content, self._line(known))
        return made[1]

    def _line(self, known: Testimony) -> str:
        reports = [each.plain() for each in known.reports]
        return json.dumps([known.replica.device, *known.replica[:2], reports])

    def read(self, lines: Iterable[str]) -> None:
        """Take over what `lines` gave; a line that is damaged is left out."""
        for line in lines:
            try:
                device, incarnation, nonce, *plain = json.loads(line)
                known = Replica.checked(incarnation, nonce, device)
                # A former release wrote one more element, and one before it one report alone.
                reports = [plain] if len(plain) == _ONE_REPORT else plain[0]
                self.learn(known, process_reports(reports, device))
            except (ValueError, TypeError, IndexError):
                continue


def _joined(known: tuple[ProcessReport, ...], new: ProcessReport) -> tuple[ProcessReport, ...]:
    """Return the reports of the last processes, the newest first, with a new one."""
    by_process = {report.reporter.nonce: report for report in known}
    before = by_process.get(new.reporter.nonce)
    by_process[new.reporter.nonce] = new if before is None else before.joined(new)
    reports = sorted(by_process.values(), reverse=True)
    while len(reports) > MOST_REPORTS:
        oldest = reports.pop()
        last = reports[-1]
        reports[-1] = ProcessReport(last.reporter, joined(last.highs, oldest.highs))
    return tuple(reports)
