"""The windows of one device: what Spark would give for a fleet of this device alone.

They are put together from the panes that the agent's store keeps: all of this device's replicas,
as long as readings are retained. Nothing is kept up to date for them; they are made when asked for.
"""

from typing import Any, NamedTuple

from device_agent.agent.state.store import Store
from lasp_edge.errors import pass_interrupt
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.lowered import lowered
from lasp_edge.language.declarations import Window
from lasp_edge.reasons import reason_of


class OwnWindow(NamedTuple):
    """One window of one key over this device's readings.

    Attributes:
        closed: a reading from after its end was accepted; a late one would still change it.
        fold: what lowers its partial.
    """

    key: str
    start_us: int
    end_us: int
    partial: Partial
    closed: bool
    fold: Fold

    def plain(self, window: Window) -> dict[str, Any]:
        """Return it as plain data: key, times, the fold's parts, and its integers.

        Where a fold of the user's own fails, no part has a value, and `failed` says why.
        """
        columns = zip(self.fold.columns_named, self.partial, strict=True)
        return {
            "key": self.key,
            "start_us": self.start_us,
            "end_us": self.end_us,
            **self._lowered(window),
            **{name: part.hex() if isinstance(part, bytes) else part for name, part in columns},
            "closed": self.closed,
        }

    def _lowered(self, window: Window) -> dict[str, Any]:
        try:
            return {"parts": lowered(self.fold, self.partial, window.resolution)}
        except BaseException as error:  # noqa: BLE001 - a user's fold may raise anything
            pass_interrupt(error)
            return {"parts": dict.fromkeys(self.fold.parts), "failed": reason_of(error)}


def own_windows(store: Store, window: Window, last: int) -> list[OwnWindow]:
    """Return the windows with readings among the last starts, by start and key.

    Args:
        store: of an agent, which may be running.
        window: of its program, without parameters.
        last: starts to go back from the one before the newest reading.
    """
    newest = store.newest_panes(window.stream, last * window.slide_us)
    if not newest:
        return []
    last_us = max(pane.pane_us for pane, _ in newest) // window.slide_us * window.slide_us
    first_us = last_us - (last - 1) * window.slide_us
    held: dict[tuple[int, str], Partial] = {}
    for pane, row in newest:
        start_us = pane.pane_us // window.slide_us * window.slide_us
        while start_us + window.size_us > pane.pane_us:
            if start_us >= first_us:
                at = (start_us, pane.key)
                held[at] = window.fold.combine(held.get(at, window.fold.zero), row.partial)
            start_us -= window.slide_us
    high_us = store.restored().facts.high_us or 0
    return [
        OwnWindow(key, start_us, end_us, partial, end_us <= high_us, window.fold)
        for (start_us, key), partial in sorted(held.items())
        for end_us in [start_us + window.size_us]
    ]
