"""Claims: lives of this device that others name, and that its store does not know.

Problem: one member of a fleet may lie, or be wrong, and say for ever that another process of this
device runs. What a device reports of that must be true, or name who reported it. Sketch: a life is
confirmed by whoever keeps what it hears, as a lander or gateway does, and by two peers. It is
denied where one who keeps it has answered and named another one: nothing of that life has landed
there, and a sink that was not heard yet is asked when it is. Then it is a notice that names who
reported it, and when last, and it ends when nobody reports it any more. Where nobody who keeps
anything answers, one peer is all that the device has, and is believed.
"""

from dataclasses import dataclass, field

from crdts import Replica
from device_agent.agent.agent import Agent
from device_agent.agent.fleet.answers import Answers
from device_agent.agent.fleet.clones import CloneAlarm
from device_agent.agent.intake.peer_reports import PeerReports
from device_agent.agent.notices import CLONED_US
from lasp_edge.timers import has_passed
from lasp_edge.tool.times import shown_time
from lasp_edge.units import SECOND_US

MOST_CLAIMS = 16
"""Processes whose claims are remembered, at most: a device becomes later than eight at once, and
then than one in two minutes."""


@dataclass(slots=True)
class _Claim:
    """One process that others name.

    Attributes:
        life: its newest replica.
        since_us: when the device began to ask about it.
        by: who has named it.
        is_kept: one who keeps what it hears has.
        is_denied: one who keeps what it hears named another one.
        is_uncounted: nobody reported which readings it accepted, and none is counted for it yet.
    """

    life: Replica
    since_us: int
    by: set[str] = field(default_factory=set)
    is_kept: bool = False
    is_denied: bool = False
    is_uncounted: bool = False

    @property
    def is_confirmed(self) -> bool:
        return self.is_kept or len(self.by) > 1

    @property
    def is_doubted(self) -> bool:
        return self.is_denied and not self.is_confirmed


class Claims:
    """The lives that others name: which are confirmed, and which are only reported.

    Args:
        agent: what all parts share.
        answers: of the present round.
        reports: count what may count twice.
        clones: raises the alarm.
    """

    def __init__(
        self, agent: Agent, answers: Answers, reports: PeerReports, clones: CloneAlarm
    ) -> None:
        self._agent, self._answers, self._reports, self._clones = agent, answers, reports, clones
        self._claims: dict[int, _Claim] = {}  # nonce -> it

    def hear(self, life: Replica, since_us: int, *, has_report: bool) -> None:
        """Take the newest life that the answers name, and that the store does not know.

        Args:
            life: it.
            since_us: when the device began to ask.
            has_report: somebody who is believed says which readings it accepted.
        """
        claim = self._claims.setdefault(life.nonce, _Claim(life, since_us))
        claim.life = max(claim.life, life)
        claim.is_uncounted = claim.is_uncounted or not has_report
        if len(self._claims) > MOST_CLAIMS:
            del self._claims[next(iter(self._claims))]

    def tick(self, now_us: int, wait_us: int) -> None:
        """Count what nobody has denied for long enough, while the device asks."""
        if any(each.is_uncounted and not each.is_denied for each in self._claims.values()):
            self.look(now_us, wait_us)

    def look(self, now_us: int, wait_us: int) -> None:
        """Weigh the present answers; who keeps something has `wait_us` to answer."""
        for claim in self._claims.values():
            named_by = self._answers.namers_of(claim.life)
            claim.by.update(named_by)
            claim.is_kept = claim.is_kept or any(named_by.values())
            was_denied = claim.is_denied
            claim.is_denied = was_denied or self._answers.is_denied(claim.life)
            is_over = not claim.is_denied and has_passed(claim.since_us, wait_us, now_us)
            if claim.is_uncounted and (claim.is_confirmed or is_over):
                claim.is_uncounted = False
                self._reports.learn_of_lost_life()
            if claim.is_doubted and (named_by or not was_denied):
                text = (
                    f"not confirmed: {self._reported(claim, now_us)} that another process has this "
                    "name; no lander, no gateway and no other device says so"
                )
                self._agent.notices.begin(
                    f"claim of {sorted(claim.by)}", text, now_us=now_us, lasts_us=CLONED_US
                )

    def goes_on(self, nonce: int, now_us: int) -> None:
        """Raise the alarm for a process that others name again as a later one."""
        claim = self._claims[nonce]
        if not claim.is_doubted:
            self._clones.met(nonce, now_us, by=self._reported(claim, now_us))

    def _reported(self, claim: _Claim, now_us: int) -> str:
        by = " and ".join(sorted(claim.by)[:3])
        at_us = self._agent.clock.time_us(now_us) // SECOND_US * SECOND_US
        return f"{by} reported at {shown_time(at_us)} UTC"
