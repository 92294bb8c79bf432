"""Rates that made-up readings are too steep for, that are rounded to 0, or that are of changes.

Made-up readings go from one end of an event's range to the other in a second, which few meters do.

    >>> from lasp_edge import Program, scans
    >>> program = Program("water")
    >>> litres = program.event("litres", resolution="1", least=0)
    >>> flow = program.scan("flow", source=litres, scan=scans.rate(), per_device=True)
    >>> line = too_steep(program.plan(), "flow", "Refused: out of range")
    >>> line.rpartition("; ")[2]
    'if not, say so by event("litres", .., least=, most=)'
"""

from collections.abc import Iterator
from types import MappingProxyType
from typing import Final

from lasp_edge.checking.spans import spans_of
from lasp_edge.folds.numbers import LIMIT
from lasp_edge.language.plan import Plan
from lasp_edge.scans.differences import ConsecutiveDifferences
from lasp_edge.scans.rate import ChangeRate
from lasp_edge.units import SECOND_US

_LONGER: Final = MappingProxyType(
    {round(SECOND_US / span_s): span_s for span_s in (60, 3_600, 86_400)}
)
"""Microseconds of a part of a second -> the seconds of a minute, an hour and a day."""


def flat_rates(plan: Plan) -> list[str]:
    """Return a line for each rate in a part of a second that was meant in a minute, hour or day.

    >>> from lasp_edge import Program, scans
    >>> program = Program("attic")
    >>> warm = program.event("warm", resolution="0.1")
    >>> hourly = scans.rate(per_s=1 / 3_600)
    >>> _ = program.scan("rise", source=warm, scan=hourly, per_device=True)
    >>> print(flat_rates(program.plan())[0].partition(", ")[2])
    and not in an hour; write per_s=3600
    """
    found = []
    for name, made in plan.functions.streams.items():
        if not isinstance(made, ChangeRate):
            continue
        span_us = spans_of(made)["per_s"]
        longer_s = _LONGER.get(span_us)
        if longer_s:
            unit = {60: "a minute", 3_600: "an hour", 86_400: "a day"}[longer_s]
            found.append(
                f"scan {name}: its rate is the change in {span_us:,} microseconds"
                f", and not in {unit}; write per_s={longer_s}"
            )
        else:
            found += _too_flat(plan, name, made, span_us)
    return found


def rates_of_changes(plan: Plan) -> list[str]:
    r"""Return a line for each rate of what `differences` gives, which is a change already.

    >>> from lasp_edge import Program, scans
    >>> program = Program("house")
    >>> meter = program.event("meter", resolution="0.1", unit="kWh")
    >>> used = program.scan("used", source=meter, scan=scans.differences(), per_device=True)
    >>> _ = program.scan("load", source=used, scan=scans.rate(per_s=3600), per_device=True)
    >>> print(*rates_of_changes(program.plan())[0].split("; "), sep="\n")
    scan load: rate takes what scan used gives for what a meter shows, and that is a change already
    for the rate of meter, write source=meter
    """
    return [
        f"scan {name}: rate takes what scan {source} gives for what a meter shows, and that is a "
        f"change already; for the rate of {of}, write source={of}"
        for name, made in plan.functions.streams.items()
        if isinstance(made, ChangeRate)
        for source in plan.streams[name].sources
        if isinstance(plan.functions.streams.get(source), ConsecutiveDifferences)
        for of in plan.streams[source].sources[:1]
    ]


def _too_flat(plan: Plan, name: str, made: ChangeRate, span_us: int) -> Iterator[str]:
    """Yield a line where no change of a reading within a second gives anything but 0."""
    event = plan.events.get(plan.streams[name].sources[0])
    scale = None if event is None else event.plausible
    if event is None or scale is None or not scale.is_closed or made.resolution is None:
        return
    most = (scale.nearest(LIMIT) - scale.nearest(-LIMIT)) * scale.exact
    if 2 * most * span_us < made.resolution.exact * SECOND_US:
        yield (
            f"scan {name}: each rate of readings a second or more apart is rounded to 0, as "
            f"{event.name} is {scale.span}; write a longer per_s=, or a finer resolution= in "
            "scans.rate"
        )


def too_steep(plan: Plan, stream: str, failure: str) -> str:
    """Return a line, where a stream is a rate and failed for a steep reading; else an empty one."""
    is_rate = isinstance(plan.functions.streams.get(stream), ChangeRate)
    if not (is_rate and failure.startswith("Refused: out of range")):
        return ""
    events = [plan.events[name] for name in sorted(plan.streams[stream].events)]
    open_ones = [each.name for each in events if not (each.plausible and each.plausible.is_closed)]
    remedies = "".join(
        f'; if not, say so by event("{name}", .., least=, most=)' for name in open_ones
    )
    return (
        f"scan {stream}: a reading that is far from the one a second before has a rate beyond "
        "2**31 steps, and no output; if there are such, write a coarser resolution= in scans.rate"
        + remedies
    )
