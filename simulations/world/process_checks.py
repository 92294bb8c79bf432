"""What must hold of each process of an agent: no part of it fails, and what is counted stays.

- nothing that an agent runs under its guard ever raises: that is its own bug, whatever came
- a process reads nothing before a lander has said who the device was before, or has had the time
  for it: peers know less
- a process that goes on from a store knows at least what the one before it knew when it began
"""

from device_agent.settings import Settings
from simulations.world.device import VirtualDevice
from simulations.world.world import World

WAIT_US = Settings().fence_wait_us
"""Microseconds that a process gives to landers."""


def check_reading(world: World, device: VirtualDevice) -> None:
    """Look at a process that runs."""
    waited_us = world.now_us - device.begun_us
    if device.core.fence.lets_read and waited_us < WAIT_US and not device.is_vouched:
        world.trouble.append(f"{device.name} reads after {waited_us} us, and no lander has told it")


def check_process(world: World, device: VirtualDevice) -> None:
    """Look at a process that has just connected, or is about to end."""
    if device.uncounted:
        world.trouble.append(f"{device.name} has forgotten counts of: {min(device.uncounted)}")
    failed = device.core.agent.guard.reasons
    if failed:
        world.trouble.append(f"{device.name}: {failed[0]}")
