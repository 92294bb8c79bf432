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


@_planted
def what_others_know_already_is_not_left_again() -> Iterator[None]:
    """Who lost its card hears from others what it had removed, and then what it had left of it."""
    right = SharedState.recover

    def recover(self: SharedState, state: Lattice, incarnation: int) -> None:
        right(self, state - self.whole, incarnation)

    with replaced(SharedState, "recover", recover):
        yield


@_planted
def what_is_recovered_is_not_left_again() -> Iterator[None]:
    """A slot that an earlier life left is written again without what stood only there."""
    right = SharedState.recover

    def recover(self: SharedState, state: Lattice, incarnation: int) -> None:
        known, add = self.whole.copy(), self.trace.add
        self.trace.add = lambda part: add(part - known)  # type: ignore[method-assign]
        right(self, state, incarnation)
        self.trace.add = add  # type: ignore[method-assign]

    with replaced(SharedState, "recover", recover):
        yield


@_planted
def what_others_removed_is_left_before_it_is_stored() -> Iterator[None]:
    """A device publishes that an element of its own is gone, and its power goes before it is so."""
    right = SharedState.hear

    def hear(self: SharedState, state: Lattice) -> None:
        self._store_heard = lambda: None  # type: ignore[method-assign]
        right(self, state)
        del self._store_heard

    with replaced(SharedState, "hear", hear):
        yield
