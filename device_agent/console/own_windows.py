"""The windows of one device: what Spark would give for a fleet of this device alone.

They are put together from the panes that the agent's store keeps: all of this device's replicas,
as long as readings are retained. Which panes a window has at each time follows from the operators'
entries that the device has received (`lasp_edge.language.regimes`).
"""

from typing import Any, NamedTuple

from crdts import ControlLog
from device_agent.agent.changes import Facts
from device_agent.agent.state.store import Store
from lasp_edge.errors import pass_interrupt
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.lowered import lowered
from lasp_edge.language.declarations import Window
from lasp_edge.language.forms import WindowForm
from lasp_edge.language.plan import Plan
from lasp_edge.language.regimes import WindowRegimes
from lasp_edge.reasons import reason_of


class OwnWindow(NamedTuple):
    """One window of one key over this device's readings.

    Attributes:
        closed: a reading from after its end was accepted, and no earlier one is known to lack; a
            late one would still change it.
        fold: it lowers the partial.
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


def own_windows(store: Store, plan: Plan, window: Window, last: int) -> list[OwnWindow]:
    """Return the windows with readings among the last starts, by start and key.

    Panes that are still to be built, after an operator changed a parameter, are missing here, too.

    Args:
        store: of an agent, which may be running.
        plan: its program.
        window: of the program.
        last: starts to go back from the one before the newest reading.
    """
    facts, (_, _, device) = store.restored().facts, store.replica() or (0, 0, "")
    log = (facts.control or ControlLog()).of_parameters(plan.parameters)
    regimes = WindowRegimes(window, plan.functions, log, device)
    ends_us = {
        piece.stream: pane.pane_us
        for piece in regimes.pieces
        for pane, _ in store.newest_panes(piece.stream, 1)
    }
    if not ends_us:
        return []
    first_us = _first_of(regimes, max(ends_us.values()), last)
    found: dict[tuple[int, str], tuple[WindowForm, Partial]] = {}
    for piece in regimes.pieces:
        span_us = ends_us.get(piece.stream, first_us - 1) - first_us + 1
        for pane, row in store.newest_panes(piece.stream, span_us):
            if not piece.first_us <= pane.pane_us < piece.end_us:
                continue  # another piece of the same stream
            for start_us, form in regimes.starts_over(piece, pane.pane_us):
                if start_us >= first_us:
                    _, partial = found.get((start_us, pane.key), (form, form.fold.zero))
                    found[start_us, pane.key] = (form, form.fold.combine(partial, row.partial))
    high_us, whole_us = facts.high_us or 0, _whole_from_us(facts, window)
    return [
        OwnWindow(
            key, start_us, end_us, partial, whole_us <= start_us <= end_us <= high_us, form.fold
        )
        for (start_us, key), (form, partial) in sorted(found.items(), key=lambda item: item[0])
        for end_us in [start_us + form.size_us]
    ]


def known_from_us(facts: Facts) -> int:
    """Return from when on all readings are in a store: a life whose store was lost had earlier."""
    doubts = facts.doubts or {}
    return max([facts.floor_us or 0, *(doubt_us + 1 for doubt_us in doubts.values())])


def _whole_from_us(facts: Facts, window: Window) -> int:
    """Return from when on all readings are in a window's panes, also those of a former program."""
    doubts, begun_us = facts.doubts or {}, dict(facts.begun or ()).get(window.stream, 0)
    return max([begun_us, *(doubt_us + 1 for doubt_us in doubts.values())])


def _first_of(regimes: WindowRegimes, last_us: int, count: int) -> int:
    """Return the first of the last starts, that many, at or before a time."""
    first_us = last_us
    for form in reversed(regimes.forms):
        starts = form.starts(form.from_us, last_us)[-count:] if count else ()
        if starts:
            first_us, count = starts[0], count - len(starts)
    return first_us
