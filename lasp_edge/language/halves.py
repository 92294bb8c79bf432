"""The halves of scans with local events: their names, what they are made of, and their stages."""

from typing import Any, Final

from lasp_edge.language.declarations import Stream
from lasp_edge.language.plan import Plan
from lasp_edge.ordered.gathered import GatherStage
from lasp_edge.ordered.parted import LeafStage, RootStage
from lasp_edge.ordered.scan import InSteps, Scan
from lasp_edge.ordered.stages import StreamStage
from lasp_edge.protocol.streams import stream_id

HALVES: Final = frozenset({"leaf", "gather", "root"})
"""The operators of streams that are parts of a scan with local events."""


def scan_of(part: str) -> str:
    """Return the scan that a stream is a half of."""
    return part.rpartition(": ")[0]


def leaf_of(scan: str) -> str:
    """Return the half of a scan with local events that runs on each device."""
    return f"{scan}: leaf"


def shares_of(leaf: str) -> str:
    """Return under which name a device's half takes the places that are published."""
    return f"{scan_of(leaf)}: shares"


def marks_of(gathered: str) -> str:
    """Return under which name an evaluator's half takes its marks."""
    return f"{scan_of(gathered)}: marks"


def parted_scans(plan: Plan) -> dict[str, Stream]:
    """Return the scans with local events, by name."""
    return {name: each for name, each in plan.streams.items() if each.local}


def shares_stream(plan: Plan, name: str) -> int:
    """Return the id of the shares of a scan with local events: they have its meaning."""
    return stream_id(plan.name, "shares", plan.streams[name].fingerprint)


def sources_of(stream: Stream) -> tuple[str, ...]:
    """Return what a stream is made of, with what a half of a scan is given beside events."""
    if stream.operator == "leaf":
        return (*stream.sources, shares_of(stream.name))
    if stream.operator == "gather":
        return (*stream.sources, marks_of(stream.name))
    return stream.sources


def stepper_of(plan: Plan, stream: Stream) -> Scan[Any]:
    """Return the scan of a stream, with values in the steps that the stream has."""
    scan: Scan[Any] = plan.functions.streams[stream.name]
    if stream.resolution is not None and not is_ours(type(scan).__module__):
        return InSteps(scan, stream.resolution)
    return scan


def half_of(plan: Plan, stream: Stream, device: str) -> StreamStage:
    """Return a half of a scan with local events."""
    whole = plan.streams[scan_of(stream.name)]
    scan, key = plan.functions.streams[whole.name], plan.functions.keys.get(whole.name)
    events = [each for each in stream.sources if each in plan.events]
    branches = {each: whole.events.index(each) for each in events}
    if stream.operator == "leaf":
        stepper = stepper_of(plan, whole)
        return LeafStage(scan, key, device, branches, stepper)
    if stream.operator == "gather":
        return GatherStage(key, list(branches.values()))
    return RootStage(scan, stream.name, stepper_of(plan, whole))


def is_ours(module: str) -> bool:
    """Return whether a scan is one of lasp-edge's own: they give whole steps by themselves."""
    return module.startswith("lasp_edge.scans.")
