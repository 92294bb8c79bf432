"""What must hold after the broker has lost all that it retained, and everybody is connected again.

- what was retained is retained again: nobody has to live through something for it
- gateways show again what stands
- what is retained of a shared variable joins to what devices hold (`trace_checks`)
"""

from typing import Final

from simulations.world.faults import Fault
from simulations.world.gateway import VirtualGateway
from simulations.world.misfortunes import befall
from simulations.world.results_checks import wrong_results
from simulations.world.trace_checks import unshared
from simulations.world.world import World

AGAIN_STEPS = 20
"""Steps until everybody is connected again, and has published what is to be retained."""
_MAY_GO: Final = ("shared", "out")
"""Topics that need not be there again: a part of a shared variable may lie in another slot, and a
gateway shows no windows of long ago after a restart."""
_STRANGE: Final = frozenset({"hostile", "kept_beat"})
"""What makes brokers keep what nobody wanted to be kept."""


def check_again(world: World) -> None:
    """Let the broker of a world at rest forget all, and look at what is retained again."""
    before = dict(world.broker.retained)
    befall(world, Fault(world.step_number, "broker_forgets", "", 1))
    for _ in range(AGAIN_STEPS):
        world.step()
    places = len(world.topics.root.split("/"))
    if not _STRANGE & world.seen.keys():
        for topic in sorted(before.keys() - world.broker.retained.keys()):
            if not {*topic.split("/")[places : places + 2]} & {*_MAY_GO}:
                world.trouble.append(f"{topic} was retained, and is not again")
    for sink in world.sinks:
        if isinstance(sink, VirtualGateway):
            world.trouble += wrong_results(world, sink)
    world.trouble += unshared(world, world.running())
