"""How far readings reach: of a fine step, 2**31 of them may be less than what a sensor measures.

A device refuses what lies beyond, and counts it. Where an event has a range, its declaration shows
that; where it has none, its unit tells how much there usually is.

    >>> from lasp_edge import Program
    >>> program = Program("weather")
    >>> _ = program.event("pressure", resolution="1e-6", unit="Pa")
    >>> _ = program.event("warm", resolution="1e-6", unit="°C")
    >>> [line] = short_reaches(program.plan())
    >>> line.partition(": ")[0]
    'readings of pressure end at 2,147 Pa, which is all that 2**31 steps of 1e-6 hold'
"""

from fractions import Fraction
from types import MappingProxyType

from lasp_edge.folds.numbers import LIMIT, finest_step
from lasp_edge.language.plan import Plan

USUAL = 100_000
"""As far as readings have to reach, in units of which nothing is known."""
USUAL_OF = MappingProxyType(
    dict.fromkeys(("°C", "°F", "K", "%", "°", "V", "A", "bar", "hPa", "m/s", "km/h", "pH"), 2_000)
    | {"Pa": 110_000, "lx": 150_000, "W": 100_000, "l": 10**7, "L": 10**7, "m³": 10**5}
    | {"Wh": 10**8, "kWh": 10**6, "B": 10**12, "bytes": 10**12}
)
"""As far as readings have to reach, by unit: a meter goes on for years, a disk has terabytes."""


def short_reaches(plan: Plan) -> list[str]:
    """Return a line for each event without a range whose step is too fine for its unit."""
    return [
        f"readings of {name} end at {reach:,.0f} {event.unit}".rstrip()
        + f", which is all that 2**31 steps of {event.resolution.text} hold: a device refuses what "
        f"is greater. event({name!r}, resolution="
        f'"{finest_step(Fraction(usual))}") reaches {usual:,}; least= and most= end this line'
        for name, event in sorted(plan.events.items())
        if not event.text and event.plausible is None
        for reach in [float(event.resolution.exact * LIMIT)]
        for usual in [USUAL_OF.get(event.unit, USUAL)]
        if reach < usual
    ]
