"""A graph of streams: stages one after the other, from events to results.

A batch of changes goes through all stages once, each after those that it is made from. So a stage
that hears of one event on two ways is replayed once. There are no cycles: what feeds back does so
within one key (`lasp_edge.scans.loop`).

    >>> from lasp_edge import Event
    >>> from lasp_edge.ordered.places import reading_place
    >>> from lasp_edge.ordered.stages import FilterStage, ScanStage
    >>> from lasp_edge.scans import differences
    >>> graph = StreamGraph([
    ...     StreamNode("used", ScanStage(differences(), "used"), ("litres",)),
    ...     StreamNode("much", FilterStage(lambda event: event.value > 50), ("used",)),
    ... ])
    >>> def read(*values):
    ...     return {
    ...         reading_place("litres", "", value, n): (None, Event("litres", value, n, "m", {}))
    ...         for n, value in values
    ...     }
    >>> changes = graph.update({"litres": read((1, 100), (2, 130), (4, 200))})
    >>> [new.value for old, new in changes["used"].values()], sorted(changes["much"].values())
    ([30, 70], [(None, Event(name='used', value=70, time_us=4, device='m', tags={}, key=''))])
    >>> late = graph.update({"litres": read((3, 160))})
    >>> [(old and old.value, new and new.value) for _, (old, new) in sorted(late["used"].items())]
    [(None, 30), (70, 40)]
"""

from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple

from lasp_edge.event import Event
from lasp_edge.ordered.deltas import Delta, compose_into
from lasp_edge.ordered.log import Checkpoint
from lasp_edge.ordered.parted import LeafStage
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.plain import decoded, encoded
from lasp_edge.ordered.stages import ScanStage, StreamStage


class StreamNode(NamedTuple):
    """A stream: its name, what makes it, and of which events and streams."""

    name: str
    stage: StreamStage
    sources: tuple[str, ...]


class StreamGraph:
    """Streams, each after those that it is made from.

    Attributes:
        nodes: the streams.
        frontier_us: nothing older is expected; None before the first word of it.
    """

    def __init__(self, nodes: Sequence[StreamNode]) -> None:
        self.nodes = tuple(nodes)
        self.frontier_us: int | None = None

    def update(
        self, changes: Mapping[str, Delta], frontier_us: int | None = None
    ) -> dict[str, Delta]:
        """Take how events change, and how far they have come; return how each stream changes.

        Args:
            changes: by event.
            frontier_us: nothing older is expected; it never goes back.
        """
        if frontier_us is not None and (self.frontier_us is None or frontier_us > self.frontier_us):
            self.frontier_us = frontier_us
        frontier_us = self.frontier_us
        found = dict(changes)
        for name, stage, sources in self.nodes:
            deltas = [found.get(source, {}) for source in sources]
            is_changed = stage.has_inserted or any(deltas)
            delta = stage.push(deltas, frontier_us) if is_changed else {}
            if frontier_us is not None:
                brought = stage.advance(frontier_us)
                if delta and brought:
                    compose_into(delta, brought)  # what a stage with timers gives is nobody else's
                delta = delta or brought
            if delta:
                found[name] = delta
        return found

    def insert(self, name: str, places: list[Place], events: list[Event[Any]]) -> None:
        """Insert new readings that only devices' halves take, in order; `update` steps them."""
        for _, stage, sources in self.nodes:
            if name in sources:
                assert isinstance(stage, LeafStage)
                stage.insert(places, events)

    @property
    def due_us(self) -> int | None:
        """When the next timer of any stage rings, if nothing comes before; None: never."""
        found = [node.stage.due_us for node in self.nodes if isinstance(node.stage, ScanStage)]
        return min([due_us for due_us in found if due_us is not None], default=None)

    def horizon_us(self, high_us: int) -> int:
        """Return a time by which all timers that are set now have rung, if nothing comes more."""
        return max(high_us, self.due_us or high_us) + 1

    @property
    def failing(self) -> dict[tuple[str, Place], str]:
        """Stream and place -> why a function fails there now."""
        return {
            (node.name, place): why
            for node in self.nodes
            for place, why in node.stage.failures.places.items()
        }

    def cut(self, time_us: int) -> bytes:
        """Let go what lies before a time that the frontier has passed.

        Returns:
            Where all keys go on, for `begin` of an equal graph; equal bytes, equal states.
        """
        cuts = [(name, tuple(stage.cut(time_us).items())) for name, stage, _ in self.nodes]
        return encoded(tuple(each for each in cuts if each[1]))

    def begin(self, cut: bytes, names: Container[str] | None = None) -> None:
        """Go on where another graph was cut; nothing was taken yet.

        Args:
            cut: where that was.
            names: of the streams that go on, if the graph was another one; the others begin again.
        """
        stages = {name: stage for name, stage, _ in self.nodes}
        for name, keys in decoded(cut):
            if names is not None and name not in names:
                continue
            stage = stages[name]
            assert isinstance(stage, ScanStage)
            for key, base in keys:
                stage.log(key, Checkpoint(*base))
