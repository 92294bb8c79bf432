"""Answers: the vouches of others for a device's own lives, in one round of hellos.

`device_agent.agent.fleet.fence` asks and decides; here is what can be concluded from the answers.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from crdts import Replica
from crdts.replica import INCARNATIONS
from device_agent.agent.state.counters import Counters
from lasp_edge.protocol.fencing import ProcessReport, SourceHigh, VouchFrame
from lasp_edge.protocol.limits import INCARNATIONS_AHEAD, INCARNATIONS_BELIEVED
from lasp_edge.protocol.lives import SILENT_US

MOST_VOUCHES: Final = 64
"""Answers of one round that are looked at, at most."""


class Answers:
    """Answering device -> its vouch.

    Args:
        lives: (incarnation, nonce) of the lives that the store knows.
        first: the incarnation with which the process began.

    Attributes:
        lives: see there; it grows with those that were met.
    """

    def __init__(self, lives: set[tuple[int, int]], first: int) -> None:
        self.lives, self._first = lives, first
        self._vouches: dict[str, VouchFrame] = {}
        self._far: dict[str, tuple[Replica, int]] = {}  # life too far ahead, since when

    def clear(self) -> None:
        """Begin a round."""
        self._vouches.clear()

    def has_room_for(self, voucher: str) -> bool:
        """Return whether the answer of somebody is looked at."""
        return voucher in self._vouches or len(self._vouches) < MOST_VOUCHES

    def add(self, frame: VouchFrame, now_us: int) -> None:
        """Take an answer; who answers twice knows more by then."""
        voucher, subject = frame.sender.device, frame.subject
        self._vouches[voucher] = frame
        life, since_us = self._far.pop(voucher, (subject, now_us))
        if self._is_far(subject.incarnation):
            self._far[voucher] = subject, min(since_us, now_us) if life == subject else now_us
            if len(self._far) > MOST_VOUCHES:
                del self._far[next(iter(self._far))]

    def namers_of(self, life: Replica) -> dict[str, bool]:
        """Return who names a process, and of each whether it keeps what it hears."""
        found = self._vouches.items()
        return {voucher: vouch.keeps for voucher, vouch in found if _names(vouch, life)}

    def is_denied(self, life: Replica) -> bool:
        """Return whether somebody who keeps what it hears has answered and does not name it."""
        return any(each.keeps and not _names(each, life) for each in self._vouches.values())

    def reports(self, own: int, *, is_young: bool) -> Iterator[ProcessReport]:
        """Yield the credible reports of other processes than the one with this nonce.

        A process learns nothing from its own reports. What a peer says alone is not believed: with
        one word it would have all readings of a device refused. Whoever keeps what it receives, as
        a lander does, is believed, and so are two peers: as far as the second one goes. What that
        one says of a process that the store knows confirms nothing of another process.

        Args:
            own: the nonce.
            is_young: the store is new: a peer that is the only one to answer is believed, too.
        """
        for vouch in self._vouches.values():
            is_believed = vouch.keeps or (is_young and len(self._vouches) == 1)
            for reporter, highs in vouch.reports:
                if reporter.nonce != own:
                    found = highs if is_believed else tuple(self._confirmed(vouch, reporter, highs))
                    if found:
                        yield ProcessReport(reporter, found)

    def _confirmed(
        self, vouch: VouchFrame, reporter: Replica, highs: Iterable[SourceHigh]
    ) -> Iterator[SourceHigh]:
        """Yield how far sources had come by a process, as far as another answer says so."""
        others = [
            {
                high.source: high
                for report in each.reports
                if report.reporter.nonce == reporter.nonce or not self.knows(report.reporter)
                for high in report.highs
            }
            for each in self._vouches.values()
            if each is not vouch
        ]
        for high in highs:
            known = [each[high.source] for each in others if high.source in each]
            if known:
                most_us = max(each.high_us for each in known)
                most = max(each.accepted for each in known)
                confirmed = min(high.high_us, most_us), min(high.accepted, most)
                yield SourceHigh(high.source, *confirmed)

    def knows(self, replica: Replica) -> bool:
        """Return whether the store knows a life of this device; nonce 0: it is not known which."""
        if replica.nonce:
            return replica[:2] in self.lives
        return any(incarnation == replica.incarnation for incarnation, _ in self.lives)

    def newest(
        self, me: Replica, counters: Counters, now_us: int, *, is_young: bool
    ) -> Replica | None:
        """Return the newest credible life that is vouched for and that the store does not know.

        None where this replica is later than all of them.

        Args:
            me: this replica.
            counters: count what cannot be believed.
            now_us: the time now.
            is_young: the store is new: several who tell of a long life are believed.
        """
        lives = sorted({vouch.subject for vouch in self._vouches.values()}, reverse=True)
        for replica in lives:
            if replica.incarnation < me.incarnation:
                break
            if not self._is_plausible(replica, now_us, is_young=is_young):
                counters.note("frame: own incarnation too far ahead")
            elif not self.knows(replica):
                return replica
        return None

    def _is_far(self, incarnation: int) -> bool:
        return incarnation - self._first > INCARNATIONS_AHEAD

    def _is_plausible(self, life: Replica, now_us: int, *, is_young: bool) -> bool:
        """Return whether a life is believed.

        One too far ahead may be a stranger's, taken for this device's by who never heard this one.
        There it stays the newest, and what is older is refused; so who goes on to vouch for it for
        two minutes is to hear a later one: one that only announced itself stands no longer.
        """
        incarnation = life.incarnation
        if incarnation + 1 >= INCARNATIONS:
            return False
        if not self._is_far(incarnation):
            return True
        if incarnation < INCARNATIONS_BELIEVED and any(
            far == life and now_us >= since_us + SILENT_US for far, since_us in self._far.values()
        ):
            return True
        subjects = [vouch.subject.incarnation for vouch in self._vouches.values()]
        near = [known for known in subjects if known >= incarnation - INCARNATIONS_AHEAD]
        return is_young and len(near) > 1

    def landers_of(self, me: Replica) -> Iterator[str]:
        """Yield the landers that have heard this replica, and so take no panes of earlier ones."""
        for lander, vouch in self._vouches.items():
            at = vouch.subject
            if vouch.keeps and (at.nonce == me.nonce or at.incarnation < me.incarnation):
                yield lander


def _names(vouch: VouchFrame, life: Replica) -> bool:
    """Return whether an answer names a process, be it by what that reported."""
    incarnation, nonce, _ = vouch.subject
    is_same = nonce == life.nonce if nonce else incarnation == life.incarnation
    return is_same or any(report.reporter.nonce == life.nonce for report in vouch.reports)


def is_ignorant(frame: VouchFrame, nonce: int) -> bool:
    """Return whether a peer's answer holds nothing but this process's own reports."""
    replica = frame.subject
    is_new = not replica.incarnation or replica.nonce == nonce
    others = any(report.reporter.nonce != nonce for report in frame.reports)
    return not frame.keeps and is_new and not others
