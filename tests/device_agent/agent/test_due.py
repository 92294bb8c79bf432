"""Parts are asked only when they are due, and a device does the same as if they always were."""

from itertools import islice
from typing import Any

from device_agent.agent.settings import Settings
from lasp_edge.timers import ALWAYS_US
from lasp_edge.units import SECOND_US
from tests.device_agent.agent.test_parts import PARTS, program
from tests.device_agent.agents import Device


def history(directory, *, always: bool) -> list[Any]:
    """Return all that a device publishes while everything happens to it, and then nothing.

    Args:
        directory: its store's.
        always: all parts are asked at every tick.
    """
    settings = Settings(results_us=SECOND_US, home_assistant="homeassistant", commit_every_us=0)
    device = Device(directory, program().plan(), settings=settings, nonce=7)
    if always:
        asked = {"due_us": property(lambda _: ALWAYS_US, lambda *_: None)}
        for part in device.core.part_list.parts:
            part.__class__ = type(part.name, (type(part),), asked)  # type: ignore[assignment]
    for index, case in enumerate(PARTS.values()):
        for frame in case.frames(device):
            device.hear(frame)
        device.read([18.0 + index])
        device.sent += islice(device.durable.tick(device.now_us), 2)
        if index % 5 == 2:
            device.core.handle_unsent(device.sent[-1])
        elif index % 5 == 4:
            device.core.handle_disconnected()
            device.tick(0.5)
            device.core.handle_connected(device.now_us)
        rest(device, index)
    for _ in range(3):
        rest(device, 100)
        device.read([20.0])
    device.core.handle_end()
    rest(device, 60)
    return [(publication.topic, publication.payload) for publication in device.sent]


def rest(device: Device, ticks: int) -> None:
    """Let time pass, with a sink that takes everything."""
    for _ in range(ticks):
        device.land(0.5)


def test_a_device_publishes_the_same_if_all_parts_are_asked_at_each_tick(tmp_path):
    found = [history(tmp_path / str(always), always=always) for always in (False, True)]
    assert len(found[0]) > 400
    assert found[0] == found[1]
