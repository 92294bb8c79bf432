"""`changes()`: only what differs from the value before.

    >>> from lasp_edge import scans
    >>> from lasp_edge.testing import scan_outputs
    >>> scan_outputs(scans.changes(), [0, 1, 1, 0, 0, 1])
    [0, 1, 0, 1]

Laws: no two outputs in a row are the same; applied twice, it gives what it gives once. Cost: a late
event revises one result.
"""

from copy import copy
from typing import Any

from lasp_edge.event import Event
from lasp_edge.folds.numbers import Resolution
from lasp_edge.ordered.plain import same
from lasp_edge.ordered.scan import Scan, Stepped


class ValueChanges(Scan):
    """A value if it is not the same as the one before; the first one, too.

    >>> from lasp_edge import scans
    >>> from lasp_edge.testing import scan_outputs
    >>> scan_outputs(scans.changes(), [1, 1, 2, 1])
    [1, 2, 1]
    """

    name, local = "changes", True

    def at(self, resolution: Resolution | None) -> Scan:
        made = copy(self)
        made.resolution = resolution
        return made

    def step(self, state: Any, event: Event[Any]) -> Stepped:
        now = (event.value,)
        return now, () if same(state, now) else now
