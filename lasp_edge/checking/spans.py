r"""Spans of time that were meant in milliseconds or microseconds: all are in seconds.

What lasts for hours is a whole number of hours, for some days of half days, and for months of days.
60,000 seconds are 16 hours and 40 minutes, which nobody means; of milliseconds they are a minute.
Nor does anybody mean 125 days or 250, which are three and six hours of milliseconds; but 500 days,
or 1,000, may be meant.

    >>> from lasp_edge import Program, folds
    >>> program = Program("attic")
    >>> warm = program.event("warm", resolution="0.1")
    >>> _ = program.window("w", source=warm, fold=folds.mean(), size_s=60_000)
    >>> print(odd_spans(program.plan())[0].replace("; ", ";\n"))
    window w: size_s=60000 is 16.7 hours;
    is it in milliseconds? for 60 seconds, write size_s=60
"""

from collections.abc import Iterator
from typing import Final

from lasp_edge.language.plan import Plan
from lasp_edge.ordered.scan import InSteps, Scan
from lasp_edge.units import SECOND_US

ROUND_S: Final = 15
"""What is written of seconds: 15, 30, 45, minutes and hours are a whole number of these."""
HOUR_S: Final = 3_600
DAY_S: Final = 24 * HOUR_S
SOME_DAYS_S: Final = 2 * DAY_S
"""From here on people count half days."""
LONG_S: Final = 30 * DAY_S
"""From here on people count days."""
HOURS_S: Final = 3 * HOUR_S * 1_000
"""125 days: whole days that are whole hours in milliseconds are a whole number of these."""
SHORT_US: Final = 100_000
"""No device compares values as often as this."""


def odd_spans(plan: Plan) -> list[str]:
    """Return a line for each span that is hardly one of seconds."""
    found = []
    for where, argument, span_us in _spans(plan):
        seconds, below = divmod(span_us, SECOND_US)
        finer = "" if below else _finer(seconds)
        if finer:
            meant = seconds // (SECOND_US if finer == "microseconds" else 1_000)
            found.append(
                f"{where}: {argument}={seconds} is {_lasting(seconds)}; is it in {finer}? for "
                f"{meant} seconds, write {argument}={meant}"
            )
        elif argument == "for_s" and where.startswith("alert ") and 0 < span_us < SHORT_US:
            found.append(
                f"{where}: {in_seconds(argument, span_us)}, and no device compares values as "
                f"often; {to_write(argument, span_us)}"
            )
    return found


def spans_of(scan: Scan) -> dict[str, int]:
    """Return the spans that a built-in scan was given, each once, in microseconds.

    >>> from lasp_edge import scans
    >>> spans_of(scans.sessions(gap_s=300))
    {'gap_s': 300000000}
    """
    made = scan.inner if isinstance(scan, InSteps) else scan
    if not type(made).__module__.startswith("lasp_edge."):
        return {}
    found: dict[str, int] = {}
    for name, span_us in vars(made).items():
        is_span = name.endswith("_us") and type(span_us) is int and span_us > 0
        if is_span and span_us not in found.values():  # one is another one's default
            found[f"{name.strip('_').removesuffix('_us')}_s"] = span_us
    return found


def in_seconds(argument: str, span_us: int) -> str:
    """Return an argument with its span."""
    return f"{argument}={span_us / SECOND_US:g} is {span_us / 1_000:g} milliseconds"


def to_write(argument: str, span_us: int) -> str:
    """Return what to write where thousands of seconds were meant for seconds."""
    seconds = f"{span_us / 1_000:g}"
    return f"for {seconds} seconds, write {argument}={seconds}"


def _spans(plan: Plan) -> Iterator[tuple[str, str, int]]:
    """Yield each span of a program: whose it is, which argument, and its microseconds."""
    for name, variable in plan.variables.items():
        limits = getattr(variable.bottom, "limits", None)
        yield f"variable {name}", "max_age_s", getattr(limits, "max_age_us", 0)
    for name, window in plan.windows.items():
        controls = window.controls
        size_us, slide_us = window.size_us, window.slide_us
        yield f"window {name}", "size_s", 0 if controls.size else size_us
        yield f"window {name}", "slide_s", 0 if controls.slide or slide_us == size_us else slide_us
    for name, fold in plan.dynamic_folds.items():
        yield f"fold_dynamic {name}", "stale_after_s", fold.stale_us
    watched = [(f"alert {name}", each) for name, each in plan.alerts.items()]
    watched += [(f"on_value of {each.variable}", each) for each in plan.reactions]
    for what, each in watched:
        yield what, "for_s", each.trigger.for_us if each.trigger else 0
        yield what, "every_s", each.every_us or 0
    for name, scan in plan.functions.streams.items():
        spans = spans_of(scan) if isinstance(scan, Scan) else {}
        yield from ((f"scan {name}", argument, span_us) for argument, span_us in spans.items())


def _finer(seconds: int) -> str:
    """Return the unit in which a span was hardly not meant; "" where it may be seconds."""
    unit_s = HOUR_S if seconds < SOME_DAYS_S else DAY_S // 2 if seconds < LONG_S else DAY_S
    is_whole = seconds % unit_s == 0 and (seconds % HOURS_S != 0 or seconds % (4 * HOURS_S) == 0)
    if not seconds or is_whole or seconds % (1_000 * ROUND_S):
        return ""
    return "milliseconds" if seconds % (SECOND_US * ROUND_S) else "microseconds"


def _lasting(seconds: int) -> str:
    for unit, in_s in (("years", 365 * DAY_S), ("days", DAY_S), ("hours", HOUR_S)):
        if seconds >= 2 * in_s:
            return f"{seconds / in_s:.3g} {unit}"
    return f"{seconds} seconds"
