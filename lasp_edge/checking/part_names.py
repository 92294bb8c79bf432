"""Names of parts, in another order than what they name.

A value of several parts is a tuple, and names are given to its places. Where a place has the name
of another one, both columns hold what the other is called.

    >>> from lasp_edge import Program, scans
    >>> program = Program("attic")
    >>> door = program.event("door", resolution="1")
    >>> stays = program.scan("stays", source=door, scan=scans.sessions(gap_s=60), per_device=True)
    >>> _ = program.result(stays, parts={"end": "time", "start": "time", "count": "1"})
    >>> exchanged(program.plan())[0]
    'result stays: part 1 is called end, and it is start; they come as start, end, count'
"""

from lasp_edge.language.declarations import Stream
from lasp_edge.language.plan import Plan
from lasp_edge.scans.as_of import AsOfJoin


def exchanged(plan: Plan) -> list[str]:
    """Return a line for each result, one of whose parts has the name of another one."""
    return [
        f"result {name}: part {n} is called {part}, and it is {own}; they come as "
        f"{', '.join(known)}"
        for name, made in plan.stream_results.items()
        for known in [_known(plan, plan.streams[name])]
        for n, ((part, _), own) in enumerate(zip(made.parts, known, strict=False), 1)
        if part != own and part in known
    ]


def _known(plan: Plan, stream: Stream) -> tuple[str, ...]:
    """Return the names that the places of a stream's values have by themselves."""
    scan = plan.functions.streams.get(stream.name)
    if isinstance(scan, AsOfJoin):
        return scan.tells_apart
    return tuple(name.removesuffix("_us") for name, _ in stream.parts)
