"""The windows with parameters of one device: those that its readings give by what it knows.

Which panes they consist of, and what each of them means, follows from what operators said as the
device knows it (`lasp_edge.language.regimes`). Panes that are still to be built lack here, too.
"""

from crdts import ControlLog
from device_agent.agent.state.store import Store
from device_agent.console.own_windows import OwnWindow
from lasp_edge.folds.columns import Partial
from lasp_edge.language.declarations import Window
from lasp_edge.language.forms import WindowForm
from lasp_edge.language.plan import Plan
from lasp_edge.language.regimes import WindowRegimes


def own_windows_controlled(store: Store, plan: Plan, window: Window, last: int) -> list[OwnWindow]:
    """Return the windows with readings among the last starts, by start and key.

    Args and result are those of `own_windows`.
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
    held: dict[tuple[int, str], tuple[WindowForm, Partial]] = {}
    for piece in regimes.pieces:
        span_us = ends_us.get(piece.stream, first_us - 1) - first_us + 1
        for pane, row in store.newest_panes(piece.stream, span_us):
            if not piece.first_us <= pane.pane_us < piece.end_us:
                continue  # another piece of the same stream
            for start_us, form in regimes.starts_over(piece, pane.pane_us):
                if start_us >= first_us:
                    _, partial = held.get((start_us, pane.key), (form, form.fold.zero))
                    held[start_us, pane.key] = (form, form.fold.combine(partial, row.partial))
    high_us = facts.high_us or 0
    return [
        OwnWindow(key, start_us, end_us, partial, end_us <= high_us, form.fold)
        for (start_us, key), (form, partial) in sorted(held.items(), key=lambda item: item[0])
        for end_us in [start_us + form.size_us]
    ]


def _first_of(regimes: WindowRegimes, last_us: int, count: int) -> int:
    """Return the first of the last starts, that many, at or before a time."""
    first_us = last_us
    for form in reversed(regimes.forms):
        starts = form.starts(form.from_us, last_us)[-count:] if count else ()
        if starts:
            first_us, count = starts[0], count - len(starts)
    return first_us
