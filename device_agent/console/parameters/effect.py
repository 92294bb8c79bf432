"""The effect of a parameter's change on a fleet: panes that are rebuilt, windows that are revised.

It follows from the regimes before and after (`lasp_edge.language.regimes`). Devices have their
readings from their floor on; a pane or window without a reading counts here all the same, as nobody
asks for the readings. So the numbers are the most that can be.

    >>> from lasp_edge import Program, folds
    >>> program = Program("greenhouse")
    >>> temperature = program.event("temperature", resolution="0.1")
    >>> offset = program.parameter("offset", "0", resolution="0.1")
    >>> window = program.window(
    ...     "sum", source=temperature, fold=folds.sum(), size_s=10, slide_s=5,
    ...     uses=(offset,), value=lambda event, at: event.value + at[offset])
    >>> before = ControlLog()
    >>> after = before.set("offset", "cellar", 20_000_000, "1", "ann")
    >>> ControlEffect.of(program.plan(), before, after, {"attic": 0, "cellar": 0}, 40_000_000)
    ControlEffect(panes={'cellar': 4}, windows={'sum': 4})
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Self

from crdts import ControlLog
from lasp_edge.language.declarations import Parameter
from lasp_edge.language.fleet_regimes import FleetRegimes
from lasp_edge.language.forms import FOR_EVER_US, WindowForm, WindowForms
from lasp_edge.language.plan import Plan
from lasp_edge.language.raising import device_alerts
from lasp_edge.language.regimes import PanePiece, WindowRegimes, difference


class _Starts(NamedTuple):
    """Neighbouring starts of windows, both ends included."""

    slide_us: int
    first_us: int
    last_us: int


class ControlEffect(NamedTuple):
    """The panes and windows that are rebuilt, at most.

    Attributes:
        panes: device -> panes that it rebuilds; devices without any are left out.
        windows: window -> its starts that have ended and are revised; others are left out.
    """

    panes: dict[str, int]
    windows: dict[str, int]

    @classmethod
    def of(
        cls,
        plan: Plan,
        before: ControlLog,
        after: ControlLog,
        floors_us: Mapping[str, int],
        now_us: int,
    ) -> Self:
        """Return the panes and windows that are rebuilt when the log grows.

        Args:
            plan: of the program.
            before: the log as it was.
            after: the log as it is then.
            floors_us: device -> from when on it has its readings.
            now_us: the time; no reading is later.
        """
        old, new = FleetRegimes(plan, before), FleetRegimes(plan, after)
        panes: dict[str, int] = {}
        windows: dict[str, int] = {}
        for name in new.windows:
            revised: list[_Starts] = []
            # Devices of one scope and floor have the same panes: one of them stands for all.
            groups: dict[tuple[str, int], list[str]] = {}
            own = {*old.scopes(name), *new.scopes(name)}
            for device, floor_us in floors_us.items():
                groups.setdefault((device if device in own else "", floor_us), []).append(device)
            for (scope, floor_us), devices in groups.items():
                was, becomes = old.of(name, scope), new.of(name, scope)
                count = sum(_panes(difference(becomes.pieces, was.pieces), floor_us, now_us))
                for device in devices if count else ():
                    panes[device] = panes.get(device, 0) + count
                revised += _revised(was, becomes, floor_us, now_us)
            if revised:
                windows[name] = _count(revised)
        return cls(dict(sorted(panes.items())), dict(sorted(windows.items())))


def misfits(plan: Plan, before: ControlLog, after: ControlLog) -> Iterator[str]:
    """Yield why values no longer count after a change: no window, set or alert can have them."""
    for window in plan.windows.values():
        if not window.is_fixed:
            old, new = (WindowForms(window, plan.functions, log) for log in (before, after))
            yield from [why for at_us, why in new.unfit if (at_us, why) not in old.unfit]
    for what in (_scan_misfits, _bound_misfits, _level_misfits):
        yield from sorted(what(plan, after) - what(plan, before))


def _scan_misfits(plan: Plan, log: ControlLog) -> set[str]:
    scans = plan.functions.streams.values()
    # The modules of streams are not needed for this.
    return {why for scan in scans if hasattr(scan, "unfit") for why in scan.unfit(log)}


def _bound_misfits(plan: Plan, log: ControlLog) -> set[str]:
    bounds = {v.name: v.bound for v in plan.variables.values() if v.bound is not None}
    if not bounds:
        return set()
    from lasp_edge.language.bounds import unfit  # noqa: PLC0415 - few programs need it

    return {
        f"{name!r} keeps 1 sample at least, and {parameter}={text}"
        for name, parameter in bounds.items()
        for text in unfit(log, plan.parameters[parameter])
    }


def _level_misfits(plan: Plan, log: ControlLog) -> set[str]:
    watched = [each for each in (*plan.reactions, *plan.alerts.values()) if each.levels]
    if not watched:
        return set()
    from lasp_edge.language.levels import unfit_levels  # noqa: PLC0415 - few programs need it

    return {why for each in watched for why in unfit_levels(each, log)}


def is_of_devices(plan: Plan, parameter: Parameter) -> bool:
    """Return whether a device may have a value of its own: of readings, scans or its alerts."""
    controls = [window.controls for window in plan.windows.values()]
    used = [each.uses for each in controls if each.counts]
    used += [each.uses for each in plan.streams.values()]
    watching = [*plan.reactions, *device_alerts(plan).values()]
    used += [tuple(level for _, level in each.levels) for each in watching]
    return any(parameter in each for each in used)


def _panes(pieces: Iterable[PanePiece], floor_us: int, now_us: int) -> Iterator[int]:
    """Yield how many panes of each piece can hold readings that a device still has."""
    for piece in pieces:
        span_us = piece.span_us
        first_us = max(piece.first_us, floor_us // span_us * span_us)
        end_us = min(piece.end_us, -(-now_us // span_us) * span_us)
        yield max(0, end_us - first_us) // span_us


def _revised(
    was: WindowRegimes, becomes: WindowRegimes, floor_us: int, now_us: int
) -> Iterator[_Starts]:
    """Yield the starts of windows that have ended and differ from before.

    Panes after a change has ended are rebuilt, too, and give the same.
    """
    if becomes.window.controls.counts:
        for first_us, end_us in _seen_otherwise(was, becomes, floor_us, now_us):
            for form in (*was.forms, *becomes.forms):
                last_us = min(end_us - 1, now_us - form.size_us)
                yield from _some(form, first_us - form.size_us + 1, last_us)
    marks = sorted({form.from_us for form in (*was.forms, *becomes.forms)})
    for first_us, end_us in zip(marks, [*marks[1:], FOR_EVER_US], strict=True):
        forms = was.form_at(first_us), becomes.form_at(first_us)
        if len({(form.size_us, form.slide_us, form.fingerprint) for form in forms}) > 1:
            for form in forms:
                since_us = max(first_us, floor_us - form.size_us + 1)
                yield from _some(form, since_us, min(end_us - 1, now_us - form.size_us))


def _seen_otherwise(
    was: WindowRegimes, becomes: WindowRegimes, first_us: int, end_us: int
) -> Iterator[tuple[int, int]]:
    """Yield the stretches of time in which readings see other values than before."""
    while first_us < end_us:
        old, new = was.regime_at(first_us), becomes.regime_at(first_us)
        next_us = min(old.end_us, new.end_us, end_us)
        if old.at.values != new.at.values:
            yield first_us, next_us
        first_us = next_us


def _some(form: WindowForm, first_us: int, last_us: int) -> Iterator[_Starts]:
    """Yield the starts of a form from one time to another, if there are any."""
    starts = form.starts(first_us, last_us)
    if starts:
        yield _Starts(form.slide_us, starts[0], starts[-1])


def _count(starts: Iterable[_Starts]) -> int:
    """Return how many starts there are; those of two slides are counted apart."""
    count, before = 0, _Starts(0, 0, 0)
    for each in sorted(starts):
        first_us = each.first_us
        if each.slide_us == before.slide_us:
            first_us = max(first_us, before.last_us + each.slide_us)
        if first_us <= each.last_us:
            count += (each.last_us - first_us) // each.slide_us + 1
            before = each
    return count
