"""Changes that a part gives later than it was asked for them are committed all the same."""

from lasp_edge.units import SECOND_US
from tests.device_agent.agents import Device


def test_a_part_that_raises_once_when_asked_for_its_changes_ends_no_agent(tmp_path, monkeypatch):
    device = Device(tmp_path)
    device.core.handle_connected(device.now_us)
    list(device.durable.tick(device.now_us))  # no notes are due for a while
    device.core.counters.add("something that must be durable")
    right, raised = device.core.counters.take_changes, []

    def take_changes():
        if raised:
            return right()
        raised.append(RuntimeError("nobody foresaw this"))
        raise raised[0]

    monkeypatch.setattr(device.core.counters, "take_changes", take_changes)
    list(device.durable.tick(device.now_us + SECOND_US))
    assert device.store.restored().counters["something that must be durable"] == 1
