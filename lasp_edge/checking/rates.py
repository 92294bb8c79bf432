"""Rates that made-up readings are too steep for.

They go from one end of an event's range to the other in a second, which few meters do.

    >>> from lasp_edge import Program, scans
    >>> program = Program("water")
    >>> litres = program.event("litres", resolution="1", least=0)
    >>> flow = program.scan("flow", source=litres, scan=scans.rate(), per_device=True)
    >>> line = too_steep(program.plan(), "flow", "Refused: out of range")
    >>> line.rpartition("; ")[2]
    'if not, say so by event("litres", .., least=, most=)'
"""

from lasp_edge.language.plan import Plan
from lasp_edge.scans.rate import ChangeRate


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
