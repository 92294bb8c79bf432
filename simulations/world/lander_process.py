"""A lander's process in a simulated world: its real run, over a log and a lake that outlive it.

The run is that of the process (`cloud_tier.lander.run`), with a link, a clock, a log and a lake of
the world's. Its power may go **between any two calls**: before a message leaves, before the log is
synced, before and after a commit. What the broker had given it and was not synced is lost with it.
What a run has taken from segments of devices, the next one knows: a device reports once how far its
sources had come, and may ask for it when its store is lost.
"""

import logging
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from random import Random
from types import MappingProxyType
from typing import NamedTuple

from cloud_tier.lander.run import LanderRun
from crdts import Replica
from device_agent.agent.stored_rows import EntryKey
from device_agent.gateway.core import WaitingTerms
from lasp_edge.language.fleet_regimes import FleetRegimes
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.acceptance import Acceptance
from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.fencing import joined
from lasp_edge.protocol.kinds import FRAME_KINDS
from lasp_edge.protocol.listening import ListeningClock
from lasp_edge.protocol.topics import Topics, topic_of
from lasp_edge.protocol.witness import Testimony, Witness
from simulations.world.decoding import decoded
from simulations.world.lake import MemoryLog, RowsAsTheyAre, SimulatedLake
from simulations.world.lander import overheard
from simulations.world.landing import Inbox, SinkMessage
from simulations.world.sent_checks import wrong_answer
from simulations.world.sink_process import SinkProcess

logging.getLogger("cloud_tier").addHandler(logging.NullHandler())
"""Nobody reads its log."""
LOG_LOST = 0.25
"""How often its segments are gone where a lander crashes."""
IMAGES = 4
"""Earlier states of the lake that are kept, to go back to one."""


class _Heard(NamedTuple):
    """What a run with some program had taken of devices."""

    plan: Plan
    devices: Mapping[str, Testimony] = MappingProxyType({})

    @classmethod
    def of(cls, plan: Plan, witness: Witness) -> "_Heard":
        every = {device: witness.of(device) for device in witness.heard_since(0)}
        return cls(plan, {device: known for device, known in every.items() if known is not None})


def _forgotten(name: str, heard: Mapping[str, Testimony], witness: Witness) -> Iterator[str]:
    """Yield the devices of which a run does not know what the one before had taken."""
    for device, known in heard.items():
        found = witness.of(device) or Testimony(known.replica._replace(incarnation=0))
        is_later = found.replica.incarnation >= known.replica.incarnation
        if not is_later or joined(found.highs, known.highs) != found.highs:
            yield f"{name} had heard {known}, and its next run knows {found}"


class VirtualLanderProcess(SinkProcess[SimulatedLake, LanderRun]):
    """One lander's process with its log and lake, which is one sink.

    Args:
        plan: the program whose panes it takes.
        sink: the sink's name.
        terms: for whom windows wait.
        seed: of the ids that it draws.
        start_us: when it begins.
    """

    def __init__(
        self, plan: Plan, sink: str, terms: WaitingTerms, seed: int, start_us: int
    ) -> None:
        super().__init__(plan, sink, f"lander of {sink}", terms, start_us)
        self._random, self._lakes = Random(f"{seed} lander of {sink}"), 1
        self.log = MemoryLog(self.power, lambda: self.lander.landed)
        self._images: deque[SimulatedLake] = deque(maxlen=IMAGES)
        self._not_taken_of: dict[str, dict[str, set[EntryKey]]] = {}
        self.lander = SimulatedLake(self._file, plan, sink, terms, self.power)
        self._acceptance: Acceptance | None = None
        self._heard = _Heard(plan)

    @property
    def _file(self) -> str:
        return f"{self.sink}-{self._lakes}"

    def _begin(self) -> LanderRun:
        """Start a run, which lands what the log has."""
        plan, lake = self.running, self.lander
        lake.run_program(plan)
        acceptance = Acceptance(
            plan.sent_streams,
            plan.published_folds.values(),
            Topics(plan.name),
            (self.sink, lake.lake_id),
            lake.incarnations(),
            lake.membership.copy(),
            overheard=overheard(plan, dict(lake.shared)),
            control=FleetRegimes(plan, lake.control_log()) if plan.parameters else None,
        )
        acceptance.decode = decoded
        self._acceptance = acceptance
        run = LanderRun(
            log_=self.log,
            landing=lake,
            acceptance=acceptance,
            columns=RowsAsTheyAre(),
            sender=Replica(1, self._random.getrandbits(32), self.name),
            clock=ListeningClock(0, self._wall_us, lambda: self._true_us),
        )
        run.recover()
        if self._heard.plan is plan:
            lake.kept.wrong += _forgotten(self.name, self._heard.devices, acceptance.witness)
        return run

    def _publish(self, frame: Frame) -> bool:
        topic, is_kept = (
            topic_of(frame, Topics(self.running.name)),
            FRAME_KINDS[frame.kind].retained,
        )
        return self.publish(topic, frame.encode(), retain=is_kept)

    def _turn(self, run: LanderRun, inbox: Inbox) -> None:
        run.look()
        self._hear(run, inbox)
        self.log.sync()
        run.land_due()
        run.reply(self._publish)
        lake, now_us = self.lander, self._wall_us()
        for message in self._sent:
            if isinstance(message.frame, AckFrame):
                at = (message.frame, lake.lake_id, now_us, (0, lake.newest))
                self.wrong += wrong_answer(self, *at)
        self.wrong += self.log.wrong
        self.log.wrong.clear()
        if run.must_restart:
            run.finish(self._publish)
            self.end()

    def take(self, inbox: Inbox, now_us: int) -> Iterator[SinkMessage]:
        self.lander.true_us = now_us
        return super().take(inbox, now_us)

    def crash(self, until: int) -> int:
        is_lost = self._random.random() < LOG_LOST
        if is_lost:
            self.log.lose()
        found = super().crash(until)
        if is_lost:
            self._heard = _Heard(self.running)
        return found

    def _lose_memory(self) -> None:
        if self._run is not None and self._acceptance is not None:
            self._heard = _Heard.of(self.running, self._acceptance.witness)
        self.log.crash()

    def lose_store(self) -> None:
        """Put an empty lake in place of this one."""
        self._not_taken_of[self.lander.lake] = self.not_taken
        self.not_taken = defaultdict(set)
        terms = (self.terms, self.power, self.lander.membership)
        self._change_lake()
        self.lander = SimulatedLake(self._file, self.running, self.sink, *terms)

    def keep_image(self) -> None:
        self._images.append(self.lander.copied(self.lander.file))

    def go_back(self) -> bool:
        """Put an earlier state of the lake in place of it; return whether there is one."""
        if not self._images:
            return False
        image = self._random.choice((self._images[0], self._images[-1]))
        self._change_lake()
        # It may be of a lake that was lost: what that one had since is missing, not the present's.
        before = [each for each in self.former if each.lake_id == image.lake_id] or self.former
        self.lander = before[-1].put_back(self._file, image)
        self.not_taken = self._not_taken_of.get(self.lander.lake, self.not_taken)
        return True

    def _change_lake(self) -> None:
        self._lakes += 1
        self.former.append(self.lander)
        self.inbox.clear()
        self.end()
