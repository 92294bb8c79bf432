"""What must hold of each process of an agent: no part of it fails, and what is counted stays.

- nothing that an agent runs under its guard ever raises: that is its own bug, whatever came
- a process that goes on from a store knows at least what the one before it knew when it began
"""

from simulations.world.device import VirtualDevice
from simulations.world.world import World


def check_process(world: World, device: VirtualDevice) -> None:
    """Look at a process that has just connected, or is about to end."""
    if device.uncounted:
        world.trouble.append(f"{device.name} has forgotten counts of: {min(device.uncounted)}")
    failed = device.core.agent.guard.reasons
    if failed:
        world.trouble.append(f"{device.name}: {failed[0]}")
