"""A gateway that ends once nothing new comes, whatever happens to its wall clock meanwhile."""

from device_agent.gateway import process as process_module
from device_agent.gateway.core import WaitingTerms
from device_agent.gateway.process import GatewayProcess
from device_agent.gateway.run import GatewaySettings
from lasp_edge.link import BrokerUrl
from lasp_edge.units import SECOND_US
from tests.cloud_tier.support_devices import rooms
from tests.device_agent.gateway.test_full_disk import BrokerLink
from tests.lasp_edge.protocol.support_frames import BEGIN_US

HOUR_US = 3_600 * SECOND_US


class StepLink(BrokerLink):
    """A link that waits for a second at each look; the clock is set after ten of them."""

    def __init__(self, machine):
        super().__init__()
        self.machine = machine

    def poll(self, timeout_s):
        self.machine.passed_us += SECOND_US
        if self.machine.passed_us == 10 * SECOND_US:
            self.machine.off_us = HOUR_US
        return super().poll(timeout_s)


class Machine:
    """A machine whose clock is set, and how many runs it has seen begin, and when."""

    def __init__(self):
        self.passed_us = self.off_us = 0
        self.began_us = []

    def wall_us(self):
        return BEGIN_US + self.passed_us + self.off_us

    def link(self, *_, **__):
        self.began_us.append(self.passed_us)
        return StepLink(self)


def test_a_step_of_the_clock_is_no_time_in_which_nothing_came(tmp_path, monkeypatch):
    machine = Machine()
    monkeypatch.setattr(process_module, "Link", machine.link)
    monkeypatch.setattr(process_module, "_monotonic_us", lambda: machine.passed_us)
    monkeypatch.setattr(process_module, "_wall_us", machine.wall_us)
    settings = GatewaySettings("gateway", "", WaitingTerms(), 0, 0, until_idle_us=60 * SECOND_US)
    broker = BrokerUrl.parse("mqtt://127.0.0.1:1")
    GatewayProcess(rooms(), broker, tmp_path, settings, say=lambda _: None).run()
    assert machine.began_us == [0, 10 * SECOND_US], "it starts over, and goes on"
    assert machine.passed_us >= 70 * SECOND_US
