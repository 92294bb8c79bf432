"""A gateway's core while operators change parameters: frames in batches, as they come."""

import pytest

from crdts import ControlLog, Replica
from device_agent.gateway.core import WaitingTerms
from device_agent.settings import SECOND_US as S
from device_agent.settings import Settings
from lasp_edge.protocol.acceptance import Record
from lasp_edge.protocol.control import ControlFrame
from lasp_edge.protocol.frontier import Listening
from lasp_edge.protocol.kinds import topic_of
from simulations.oracle import Reading, windows
from tests.device_agent.agents import NOW_US, Device
from tests.device_agent.gateway.support_gateway import GatewayUnderTest
from tests.lasp_edge.language.support_controlled import greenhouse

PLAN = greenhouse().plan()
SETTINGS = Settings(keep_readings=True, fence_wait_us=0, lateness_us=10 * S)
LOG = ControlLog().say("offset", "", NOW_US + 20 * S, "10", "ann")
ENTRY = ControlFrame.of(Replica(1, 5, "operator"), 1, "offset", "", LOG)


class Site:
    """One device, and a gateway that hears it."""

    def __init__(self, directory):
        self.device = Device(directory, PLAN, settings=SETTINGS, name="cellar")
        self.gateway = GatewayUnderTest(PLAN, terms=WaitingTerms(["cellar"], 600 * S))

    def live(self, steps, *, reads=False, told=()):
        """Let time pass; the last batch ends with what is told besides."""
        for step in range(steps):
            if reads:
                self.device.read([20.0 + step], [self.device.now_us], {"room": "hall"})
            batch = [(p.topic, p.payload) for p in self.device.tick(5) if p.payload]
            if step == steps - 1:
                batch += [
                    (topic_of(each, self.device.core.agent.topics), each.encode()) for each in told
                ]
            self.take(batch)

    def take(self, batch):
        now_us, core = self.device.now_us, self.gateway.core
        records = [Record(now_us, topic, False, payload) for topic, payload in batch]  # noqa: FBT003
        turn = core.take(records, Listening(now_us, NOW_US - 3_600 * S))
        self.gateway.keeper.commit(turn.changes)
        self.gateway.rows += turn.changes.rows
        core.replies.owe(turn.accepted, now_us)
        core.replies.answer(self.answer, now_us)

    def answer(self, frame):
        self.device.hear(frame)
        return True

    def truth(self):
        readings = [
            Reading("cellar", row["event"], row["value"], row["time_us"], row["tags"], stamped=True)
            for row in self.device.store.readings()
        ]
        return {
            (name, *at): tuple(each)
            for name in PLAN.windows
            for at, each in windows(PLAN, name, readings, LOG).items()
        }


@pytest.fixture
def site(tmp_path):
    site = Site(tmp_path)
    site.live(24, reads=True)
    assert [row for row in site.gateway.rows if row.status == "final"]
    yield site
    site.device.kill()


@pytest.mark.parametrize("steps", [1, 2, 6])
def test_panes_in_the_batch_that_brings_their_entry_are_refused_and_come_again(site, steps):
    site.device.hear(ENTRY)
    site.live(steps, told=[ENTRY])
    assert site.gateway.acceptance.control.log == LOG
    assert not [row for row in site.gateway.rows if row.status == "revised"]
    site.device.core.handle_end()
    site.live(60)
    assert site.device.core.done
    assert site.gateway.current() == site.truth()
    revised = [row.at for row in site.gateway.rows if row.status == "revised"]
    assert len(revised) == len(set(revised)) > 3, "each once, and never to nothing in between"
