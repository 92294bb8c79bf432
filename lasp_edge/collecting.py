"""Python's collector of reference cycles, in a process that holds many items.

It looks at everything that is new whenever 700 objects are, and again and again at all that stays.
An item is a dozen objects without a cycle among them, so that took a third of a
gateway's time, and as much of an agent's that takes in a long file.
"""

import gc
from typing import Final

OF_A_DEVICE: Final = 50_000
"""New objects before the collector looks at them: some 4,000 items, or 5 MB that is not freed yet
where there are cycles."""
OF_A_FLEET: Final = 400_000
"""The same where the items of a fleet are evaluated: some 30,000 items, or 40 MB.

A turn there takes in 4,000 items, whose dozens of objects are mostly freed when it ends. The
collector would look at them before that, and at those that stay again with each sixth look.
"""
_OFTEN, _SELDOM = 5, 400
"""How many of its looks are at the newest objects alone, before one at older ones, or at all.

A look at older ones takes as long as there are new ones since the last such look: with 20 in place
of 5 it took longer than a turn of 4,000 items.
"""


def collect_rarely(objects: int = OF_A_DEVICE) -> None:
    """Let the collector of this process look for cycles less often.

    Args:
        objects: new ones before a look at them.
    """
    gc.set_threshold(objects, _OFTEN, _SELDOM)
