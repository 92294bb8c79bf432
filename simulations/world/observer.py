"""Who looks at a simulated world while it runs."""

from typing import Protocol, TypeVar

from lasp_edge.protocol.publication import Publication
from simulations.world.device import VirtualDevice

Seen_contra = TypeVar("Seen_contra", contravariant=True)


class Observer(Protocol[Seen_contra]):
    """Who looks at a run."""

    def published(
        self, world: Seen_contra, device: VirtualDevice, publication: Publication
    ) -> None:
        """A device publishes something."""

    def ticked(self, world: Seen_contra, device: VirtualDevice, unsent: Publication | None) -> None:
        """A device's agent has ticked, and published all but what its link did not take."""

    def connected(self, world: Seen_contra, device: VirtualDevice) -> None:
        """A device's agent has a new connection."""

    def ended(self, world: Seen_contra, device: VirtualDevice) -> None:
        """A device's process is about to end without warning."""

    def stepped(self, world: Seen_contra) -> None:
        """A step is over."""
