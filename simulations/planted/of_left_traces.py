"""Bugs of what is left of shared sets at a broker: they break the law of `simulations.left_traces`.

They cannot show in the worlds of the other bugs, which share a counter.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

from crdts import Lattice
from device_agent.agent.variables.states import SharedState
from simulations.planted.bug import planted, replaced

LAW: Final = "left_traces"
"""What these bugs need: a seed of that law, and no scenario."""
_planted = partial(planted, needs=LAW)


@_planted
def anybody_confirms_what_was_removed_of_others() -> Iterator[None]:
    """Two devices remove an element of one that is off, and each trusts the other to keep that."""

    def confirm(self: SharedState, _device: str, state: Lattice) -> None:
        rest = self._pending - state
        if rest != self._pending:
            self._pending, self._pending_shrank = rest, True
            self.trace.shrank()

    with replaced(SharedState, "confirm", confirm):
        yield
