"""What must hold of a device's own entries that come back to it, as the broker has kept them.

- one that is older than what the device holds is to leave again: who joins reads what stands
"""

from collections.abc import Iterator
from typing import Final

from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.frames import VariableFrame
from lasp_edge.protocol.kinds import FRAME_KINDS
from simulations.world.decoding import decoded
from simulations.world.device import VirtualDevice

ENTRIES: Final = f"/{FRAME_KINDS[VariableFrame.kind].topic}/"
"""Stands in the topics of entries."""


def not_replaced(device: VirtualDevice, payload: bytes) -> Iterator[str]:
    """Yield the own entry that a device has just heard, if it is older and does not leave again."""
    try:
        frame = decoded(payload)
    except FrameError:
        return  # nobody knows what it was to be
    if not isinstance(frame, VariableFrame) or frame.sender.device != device.name:
        return
    variable = device.core.exchange.variables.get(frame.variable)
    if variable is None or variable.fold.stream != frame.stream:
        return
    held = variable.version(frame.shard)
    if held and frame.version < held and frame.shard not in variable.unsent:
        yield f"{device.name} leaves its entry {frame.version} of {frame.variable} at the broker"
