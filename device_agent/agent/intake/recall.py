"""Which pane entries must come back from the store before readings are folded into them.

Memory holds the recent entries; an entry whose pane ended before the newest evicted one may be in
the store alone. It is named by window, key and pane, so that one reading recalls at most one entry
a window, however many keys its pane has. The key is asked from the user's function here, before the
reading is taken in, and again there: a function that changes its mind in between has its reading
refused, for the entry that it then names was not looked up.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from device_agent.agent.agent import Agent
from device_agent.agent.changes import PaneId
from device_agent.agent.intake.routes import Route, WindowTarget
from device_agent.agent.panes.panes import Panes
from lasp_edge.errors import pass_interrupt
from lasp_edge.event import Event


class OldReading(NamedTuple):
    """A reading whose panes may have been evicted."""

    name: str
    time_us: int
    value: Any
    tags: Mapping[str, str]


class PaneRecall:
    """Names the entries that readings need from the store.

    Args:
        agent: what all parts share.
        routes: where the readings of each event go.
        panes: the entries in memory.
    """

    def __init__(self, agent: Agent, routes: Mapping[str, Route], panes: Panes) -> None:
        self._functions, self._device = agent.plan.functions, agent.replica.device
        self._routes, self._panes = routes, panes
        self._asked: Collection[PaneId] = ()

    def wanted(self, readings: Iterable[OldReading]) -> list[PaneId]:
        """Return the entries that readings change, and that may be in the store alone."""
        wanted: dict[PaneId, None] = {}
        for reading in readings:
            for target in self._routes[reading.name].targets:
                start_us = reading.time_us - reading.time_us % target.span_us
                if start_us + target.span_us <= self._panes.evicted_us:
                    for key in self._keys(target, reading):
                        wanted[self._panes.own(target.stream, key, start_us)] = None
        self._asked = wanted.keys()
        return [pane for pane in wanted if pane not in self._panes.entries]

    def is_known(self, pane: PaneId, span_us: int) -> bool:
        """Return whether an entry that is not in memory is surely not in the store either."""
        return pane.pane_us + span_us > self._panes.evicted_us or pane in self._asked

    def _keys(self, target: WindowTarget, reading: OldReading) -> Iterator[str]:
        """Yield the key of a reading; nothing where the reading will be refused."""
        window = target.window
        if not window.keyed:
            yield ""
            return
        try:
            resolution = self._routes[reading.name].event.resolution
            real = resolution.real(resolution.quantise(reading.value))
            shown = MappingProxyType(reading.tags)
            event = Event(reading.name, real, reading.time_us, self._device, shown)
            key = self._functions.key(window.name, event)
        except BaseException as error:  # noqa: BLE001 - it is raised and counted again
            pass_interrupt(error)
            return
        yield key
