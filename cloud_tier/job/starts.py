"""The starts of windows that a step recomputes.

A window is recomputed where one of its panes landed, where the frontier has passed its end, and
where it has become due (`lasp_edge.protocol.waiting`). Where operators have changed it below F,
it is also recomputed once all devices have promised past its end under the present log.

Devices differ in the panes of a window that operators can change, so of such a window the keys are
known for which a pane landed.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from cloud_tier.job.control import ControlState, due_under_log_us
from cloud_tier.job.job import Job
from crdts.control_log import FLEET
from lasp_edge.language.fleet_regimes import FleetRegimes, StartSpan
from lasp_edge.protocol import spans
from lasp_edge.protocol.limits import EARLIEST_PANE_US
from lasp_edge.protocol.spans import EVERYTHING, Span

ALWAYS: Final = 0
"""A row is made if it differs."""
IF_OPEN: Final = 1
"""A row is made only in place of one whose end the frontier has passed, and that is tentative, or
whose window had become longer than when it was final."""
IF_PRESENT: Final = 2
"""A row is made only where some device has a pane of the window."""
IF_NEW: Final = 3
"""A row is made only where the window has no row yet, and some device has a pane of it."""
_MOST_SPANS: Final = 1_000
"""Spans of one key and window, at most, until those with the smallest gaps are joined."""

SentPanes = Mapping[int, Collection[tuple[str, str, int]]]
"""Key, device and start of a batch's panes, by stream."""
DueChange = tuple[int | None, int | None]
"""Up to which end a window was due before, and is now; None for nothing."""


class RecomputedStarts(NamedTuple):
    """Starts of a window that a step recomputes.

    Attributes:
        window: its name.
        key: None for all keys.
        first_us, last_us: both included.
        needs: `ALWAYS`, `IF_OPEN`, `IF_PRESENT` or `IF_NEW`.
    """

    window: str
    key: str | None
    first_us: int
    last_us: int
    needs: int = ALWAYS


class StepBounds(NamedTuple):
    """How far time has come, before a step and after it.

    Attributes:
        before: which windows the frontier had passed.
        frontier_us: the frontier now; None is bottom.
        promised_us: up to which time all have promised under the present log; None for nothing.
        due: window -> how far it is due, where it waits at all.
    """

    before: spans.PassedFrontier
    frontier_us: int | None
    promised_us: int | None
    due: Mapping[str, DueChange]


def starts_of_step(
    job: Job,
    state: ControlState,
    panes_us: Mapping[int, Iterable[int]],
    sent: SentPanes,
    bounds: StepBounds,
) -> list[RecomputedStarts]:
    """Return which starts a step recomputes.

    Args:
        job: the program over the lake.
        state: with what the batch made to be held.
        panes_us: the batch's panes, by stream.
        sent: the same with their keys and devices, of a program with parameters.
        bounds: how far time has come.
    """
    regimes = state.regimes
    wanted = [
        *_touched(regimes, panes_us, sent),
        *_passed(job, regimes, bounds),
        *_due(regimes, bounds),
        *(RecomputedStarts(*_all_keys(span), IF_OPEN) for span in state.held),
        *_released(job, state, bounds.promised_us),
    ]
    found = []
    for each in wanted:
        least_us = floor_us(job, regimes, each.window, bounds.before.frontier_us)
        if each.last_us >= max(least_us, each.first_us):
            found.append(each._replace(first_us=max(each.first_us, least_us)))
    return found


def all_starts(job: Job, regimes: FleetRegimes, frontier_us: int | None) -> list[RecomputedStarts]:
    """Return the starts of all windows above the floor."""
    return [
        RecomputedStarts(name, None, floor_us(job, regimes, name, frontier_us), EVERYTHING.last)
        for name in regimes.windows
    ]


def spans_by_window(several: Iterable[RecomputedStarts]) -> spans.Starts:
    """Return the starts by window, as few spans."""
    found: dict[str, list[Span]] = defaultdict(list)
    for each in several:
        found[each.window].append(Span(each.first_us, each.last_us))
    return {name: spans.joined(wanted) for name, wanted in found.items()}


def too_late(
    job: Job,
    regimes: FleetRegimes,
    rows: Mapping[int, Mapping[int, int]],
    frontier_us: int | None,
) -> int:
    """Return how many rows of panes a window lacks because it is not recomputed any more.

    Args:
        job: the program over the lake.
        regimes: what panes mean.
        rows: how many there are of each pane, by stream.
        frontier_us: before them; None is bottom.
    """
    late = 0
    for stream, counts in rows.items() if frontier_us is not None else ():
        piece, window = regimes.stream(stream), regimes.window_of(stream)
        if piece is None or window is None:
            continue
        least_us = floor_us(job, regimes, window.name, frontier_us)
        for pane_us, count in counts.items():
            starts = regimes.of(window.name).starts_over(piece, pane_us)
            first_us, _ = next(starts, (least_us, None))
            late += count if first_us < least_us else 0
    return late


def floor_us(job: Job, regimes: FleetRegimes, window: str, frontier_us: int | None) -> int:
    """Return the least start of a window that is recomputed.

    Its windows end at most `retain_us` below the frontier. So one that is not final yet is among
    them, however long it is.
    """
    if frontier_us is None:
        return EARLIEST_PANE_US - regimes.of(window).longest_us
    return frontier_us - job.retain_us - regimes.of(window).longest_us


def _touched(
    regimes: FleetRegimes, panes_us: Mapping[int, Iterable[int]], sent: SentPanes
) -> Iterator[RecomputedStarts]:
    """Yield the starts of the windows that a pane is part of, where it means something."""
    found: dict[tuple[str, str | None], set[Span]] = defaultdict(set)
    for stream, several in panes_us.items():
        window = regimes.window_of(stream)
        by_key: Iterable[tuple[str | None, str, int]] = sent.get(stream, ())
        if window is None or window.is_fixed or not by_key:
            by_key = ((None, FLEET, pane_us) for pane_us in several)
        for key, device, pane_us in by_key if window is not None else ():
            assert window is not None
            found[window.name, key].update(_starts_over(regimes, device, stream, pane_us))
    for (name, key), wanted in sorted(
        found.items(), key=lambda each: (each[0][0], each[0][1] or "")
    ):
        gap_us = min(form.span_us for form in regimes.of(name).forms)
        for span in spans.joined(wanted, gap_us, _MOST_SPANS):
            yield RecomputedStarts(name, key, *span, IF_PRESENT)


def _starts_over(regimes: FleetRegimes, device: str, stream: int, pane_us: int) -> Iterator[Span]:
    """Yield the starts of the windows that a device's pane is part of, a span for each form."""
    window, piece = regimes.window_of(stream), regimes.piece_of(device, stream, pane_us)
    for form in regimes.of(window.name).forms if window is not None and piece is not None else ():
        assert piece is not None
        first_us = max(pane_us - form.size_us + form.span_us, form.from_us)
        span = Span(first_us, min(pane_us, form.until_us - 1))
        if piece.is_of(form) and span.first <= span.last:
            yield span


def _passed(job: Job, regimes: FleetRegimes, bounds: StepBounds) -> Iterator[RecomputedStarts]:
    """Yield the starts of the windows that the frontier has passed.

    Those that were not due yet have no row so far, where windows wait at all.
    """
    for name, window in regimes.windows.items():
        span = _ended(regimes, name, bounds.before.of(name), bounds.frontier_us)
        needs = (IF_OPEN, IF_NEW) if job.waits[name] else (IF_OPEN,)
        for each in (ALWAYS,) if window.is_fixed else needs:
            if span is not None:
                yield RecomputedStarts(*_all_keys(span), each)


def _due(regimes: FleetRegimes, bounds: StepBounds) -> Iterator[RecomputedStarts]:
    """Yield the starts of the windows that have become due, and that are not final."""
    for name, (before_us, after_us) in bounds.due.items():
        known = [each for each in (bounds.before.frontier_us, before_us) if each is not None]
        since_us = max(known, default=None)
        if after_us is None or (since_us is not None and after_us <= since_us):
            continue
        span = _ended(regimes, name, since_us, after_us)
        if span is not None:
            needs = ALWAYS if regimes.windows[name].is_fixed else IF_NEW
            yield RecomputedStarts(*_all_keys(span), needs)


def _ended(
    regimes: FleetRegimes, name: str, before_us: int | None, after_us: int | None
) -> StartSpan | None:
    """Return the starts of the windows whose end lies in (before, after]; None is bottom.

    Rows of a window that operators can change may be of another size than any that it has now.
    """
    if after_us is None or after_us == before_us:
        return None
    window, longest_us = regimes.windows[name], regimes.of(name).longest_us
    shortest_us = window.size_us if window.is_fixed else 0
    first_us = EARLIEST_PANE_US - longest_us
    if before_us is not None:
        first_us = before_us - longest_us + 1
    return StartSpan(name, first_us, after_us - shortest_us)


def _released(job: Job, state: ControlState, promised_us: int | None) -> Iterator[RecomputedStarts]:
    """Yield the starts that were held until now."""
    for span in state.held:
        bounds_us = (promised_us, due_under_log_us(job, state, span.window))
        known_us = [each for each in bounds_us if each is not None]
        last_us = min(span.last_us, max(known_us, default=span.first_us - 1))
        if span.first_us <= last_us:
            yield RecomputedStarts(*_all_keys(span._replace(last_us=last_us)))
            beside_us = state.regimes.of(span.window).longest_us
            wide = StartSpan(span.window, span.first_us - beside_us, last_us + beside_us)
            yield RecomputedStarts(*_all_keys(wide), IF_PRESENT)


def _all_keys(span: StartSpan) -> tuple[str, None, int, int]:
    return span.window, None, span.first_us, span.last_us
