"""What must hold of the answers of sinks.

- whoever delivers gets an answer for each entry soon: it is taken, or the answer says why not
"""

from collections.abc import Iterator
from typing import Final

from simulations.world.sinks import AnySink
from simulations.world.world import World

_STRANGE: Final = frozenset({"hostile", "forged_hello", "clone"})
"""What makes sinks take what a device says for that of an earlier life of it."""
TURNS = 2
"""Turns of a sink in which a frame is committed and answered, at most: a second, and a clock that
is slow."""


def unanswered(world: World, sink: AnySink, step: int) -> Iterator[str]:
    """Yield the frames of devices that sinks have left without an answer.

    A device of which a store was lost or copied may have another life, which is to be answered.
    """
    if step < max(sink.full_until, sink.slow_until) or _STRANGE & world.seen.keys():
        return
    for (sender, number), turns in sink.questions.turns.items():
        device = world.devices.get(sender.device)
        if device is None or device.durable is None or device.forgot or turns <= TURNS:
            continue
        if device.core.replica == sender:
            yield f"{sink.name} has not answered for all of frame {number} of {device.name}"
