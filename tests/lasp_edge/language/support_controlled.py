"""A program whose windows operators change, and readings in its windows by way of panes."""

from functools import reduce

from crdts import ControlLog
from lasp_edge import Event
from lasp_edge.language.regimes import WindowRegimes
from simulations.world.controlled import parametrised

S = 1_000_000


def greenhouse():
    """Return a program in which parameters change each part of a window."""
    return parametrised(scale=5)


def log_of(*given):
    """Return a log of these entries, one after the other."""
    log = ControlLog()
    for parameter, scope, from_us, value in given:
        log |= log.set(parameter, scope, from_us, value, "ann")
    return log


def by_panes(plan, name, readings, log):
    """Return (key, start) -> partial and devices of a window, by way of panes and pieces."""
    window, functions = plan.windows[name], plan.functions
    panes = {}
    for reading in readings:
        regimes = WindowRegimes(window, functions, log, reading.device)
        regime = regimes.regime_at(reading.time_us)
        quantised = window.resolution.quantise(reading.value)
        seen = Event(
            reading.event,
            window.resolution.real(quantised),
            reading.time_us,
            reading.device,
            reading.tags,
        )
        counted = regimes.counted(seen, quantised, regime.at)
        if counted is None:
            continue
        key = functions.key(name, seen)
        for piece in regime.pieces:
            pane_us = reading.time_us // piece.span_us * piece.span_us
            assert piece.first_us <= pane_us < piece.end_us
            cell = panes.setdefault((reading.device, key, piece.stream, pane_us), [])
            cell.append(piece.fold.lift(counted, reading.time_us))
    found = {}
    for device, key, stream, pane_us in panes:
        regimes = WindowRegimes(window, functions, log, device)
        piece = next(
            each
            for each in regimes.pieces
            if each.stream == stream and each.first_us <= pane_us < each.end_us
        )
        for start_us, _ in regimes.starts_over(piece, pane_us):
            found.setdefault((key, start_us), set()).add((device, stream, pane_us))
    whole = {}
    for (key, start_us), cells in found.items():
        form = WindowRegimes(window, functions, log).form_at(start_us)
        partials = [one for d, stream, p in cells for one in panes[d, key, stream, p]]
        total = reduce(form.fold.combine, partials, form.fold.zero)
        whole[key, start_us] = (total, len({device for device, _, _ in cells}))
    return whole
