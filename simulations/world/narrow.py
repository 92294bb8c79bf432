"""Narrow limits: those of memory and of pages, so small that a run of a minute comes to them.

What lies beyond a limit that only weeks reach is in no short run: entries that leave memory and
come back from the store, pages of them, blocks of identities, several frames in place of one,
deltas that are replaced by the whole. So some seeds run with limits that a minute reaches.

Source: Zhou et al., "FoundationDB: A Distributed Unbundled Transactional Key Value Store", SIGMOD
2021, section 4 (a simulation draws the tuning parameters, too).

    >>> from device_agent.agent.panes import cache
    >>> with narrowed():
    ...     cache.KEPT_ENTRIES
    6
    >>> cache.KEPT_ENTRIES
    1000
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Final

from device_agent.agent.intake import identities, intake
from device_agent.agent.panes import cache, sender
from device_agent.agent.rebuilding import missing
from device_agent.agent.scans import leaving
from device_agent.agent.state import stored
from device_agent.agent.timing import waiting
from device_agent.agent.variables import samples, states
from device_agent.gateway import core as fleet_core
from device_agent.gateway import fleet_history
from device_agent.gateway import panes as fleet_panes
from device_agent.gateway import streams as fleet_streams
from lasp_edge.aggregates import local
from lasp_edge.evaluation import history
from lasp_edge.protocol import acks
from lasp_edge.units import SECOND_US

NARROW: Final[tuple[tuple[ModuleType, str, int], ...]] = (
    (cache, "KEPT_ENTRIES", 6),
    (cache, "PAGE", 4),
    (cache, "ASKED_US", 30 * SECOND_US),
    (waiting, "PAGE_BYTES", 1),
    (intake, "PRUNE_US", 5 * SECOND_US),
    (identities, "KEPT_IDENTITIES", 24),
    (sender, "FRAME_BYTES", 3_600),
    (stored, "DELTAS_PER_STATE", 2),
    (stored, "DELTAS_PER_KEY", 2),
    (states, "TAIL_BYTES", 48),
    (states, "PIECE_BYTES", 96),
    (history, "_LOOK_US", 20 * SECOND_US),
)
"""Module, name of the limit, and what it is in place of what a device has. Each is read when it is
needed, so that a run has its own."""

OF_PANES: Final[tuple[tuple[ModuleType, str, int], ...]] = (
    (fleet_panes, "MOST_ENTRIES", 6),
    (fleet_panes, "MOST_TOTALS", 4),
    (missing, "BUILT_AT_ONCE_US", SECOND_US),
)
"""What lets panes leave a sink's memory: in narrow worlds, and where operators change what they
mean."""

OF_PRUNING: Final[tuple[tuple[ModuleType, str, int], ...]] = (
    (fleet_core, "PRUNE_EVERY_US", 5 * SECOND_US),
)
"""What lets a gateway forget within a minute; which changes nothing for who forgets nothing."""

OF_SLIDING: Final[tuple[tuple[ModuleType, str, int], ...]] = (
    (local, "SLIDE_FROM", 4),
    (samples, "SLIDE_FROM", 4),
)
"""What lets sets of some samples slide, which are folded again as long as they are small."""

OF_ORDER: Final[tuple[tuple[ModuleType, str, int], ...]] = (
    (fleet_streams, "LIVE_ITEMS", 8),
    (fleet_streams, "MOST_CELLS", 4),
    (fleet_history, "MOST_PARTS", 2),
    (fleet_history, "MOST_KNOWN", 2),
)
"""What lets streams over the fleet be cut within a minute, and their rows be in several parts."""

OF_CELLS: Final[tuple[tuple[ModuleType, str, int], ...]] = ((leaving, "MOST_BYTES", 60),)
"""What lets cells be in several entries; not where devices wait for shares, which takes long."""


OF_PROCESSES: Final[tuple[tuple[ModuleType, str, int], ...]] = ((acks, "RUNS_IN_AN_ACK", 1),)
"""What lets the processes of sinks answer in several frames; others have one for each message."""


@contextmanager
def narrowed(limits: Iterable[tuple[ModuleType, str, int]] = NARROW) -> Iterator[None]:
    """Let limits be narrow for a while."""
    wide = [(module, name, getattr(module, name)) for module, name, _ in limits]
    try:
        for module, name, limit in limits:
            setattr(module, name, limit)
        yield
    finally:
        for module, name, limit in wide:
            setattr(module, name, limit)
