"""The line that a gateway prints for people: how far it has come, and for whom it waits."""

from collections.abc import Mapping
from statistics import median_low
from typing import Final

from device_agent.gateway.core import GatewayCore
from lasp_edge.protocol.frontier import CLOCKS_DIFFER_US
from lasp_edge.protocol.sinks import LEFT_US
from lasp_edge.tool.stalls import several, waiting_for
from lasp_edge.tool.times import shown_time

MINUTE_US: Final = 60_000_000


def line_of(
    name: str,
    core: GatewayCore,
    counts: Mapping[str, int],
    failed: Mapping[str, int],
    trouble: str | None,
    *,
    connected: bool = False,
) -> str:
    """Return the line.

    Args:
        name: the gateway's.
        core: knows how far windows are final.
        counts: of panes and rows that were written, and of panes that came too late.
        failed: how often something failed, by reason.
        trouble: why messages do not pass; nothing where they do.
        connected: there is a connection all the same.
    """
    frontier_us, expected, excluded = core.coverage
    devices = "device" if len(expected) == 1 else "devices"
    words = [f"{name}: {len(expected)} {devices} heard"]
    rows = counts["rows"] + (0 if core.streams is None else core.streams.written)
    words.append(f"{counts['entries']:,} panes and {rows:,} rows written")
    if counts["late"]:
        words.append(f"{counts['late']:,} panes too late for their windows")
    final = "nothing final yet" if frontier_us is None else f"final up to {_moment(frontier_us)}"
    words.append(final + (f", without {', '.join(excluded)}" if excluded else ""))
    words += awaited(core, name)
    words += [f"FAILED: {times} x {reason}" for reason, times in failed.items()]
    if trouble:
        words.append(f"{'connected' if connected else 'no connection'} ({trouble})")
    return ", ".join(words)


def awaited(core: GatewayCore, name: str) -> list[str]:
    """Return the awaited devices, until when a start listens for devices, and scans that stand."""
    return [*_awaited(core, name), *([] if core.streams is None else core.streams.stalls.words())]


def _awaited(core: GatewayCore, name: str) -> list[str]:
    elsewhere = sorted(core.elsewhere - core.membership.retired.keys())
    if elsewhere:
        minutes = LEFT_US // MINUTE_US
        where = f"another gateway that is called {name}, or was, until it is silent for {minutes}"
        deliver = "delivers" if len(elsewhere) == 1 else "deliver"
        whose = f"{several(elsewhere)} {deliver} to {where} minutes"
        return [f"{whose}: give one of the two another --name"]
    until_us = core.listens_until_us
    if until_us is not None:
        options = " or ".join(core.shortens_listening)
        shorter = f" (for less long with {options})" if options else ""
        return [f"listening who is there until {_moment(until_us)}{shorter}"]
    holding = [
        f"{device} (its source {source} is silent)" if source else device
        for device, source in core.holding.items()
    ]
    return waiting_for(holding)


def clocks_apart(ahead_us: Mapping[str, int]) -> str:
    """Return which clocks contradict this machine's, and what to type; "" for none.

    >>> hour_us = 60 * MINUTE_US
    >>> clocks_apart({"attic": hour_us, "cellar": 0, "shed": 0}).partition(":")[0]
    "the clock of attic is 1.0 hours ahead of this machine's"
    >>> clocks_apart({"attic": hour_us, "cellar": hour_us, "shed": 0}).partition(":")[0]
    "THIS MACHINE'S CLOCK is 1.0 hours behind those of 2 of 3 devices"

    Args:
        ahead_us: device -> how far its clock is ahead of this machine's.
    """
    apart = {device: us for device, us in ahead_us.items() if abs(us) > CLOCKS_DIFFER_US}
    if not apart:
        return ""
    if 2 * len(apart) > len(ahead_us) > 1:
        far, way = _hours(-median_low(apart.values()))
        whose = f"{len(apart)} of {len(ahead_us)} devices"
        return f"THIS MACHINE'S CLOCK is {far} {way} those of {whose}: type timedatectl here"
    named = []
    for device, us in sorted(apart.items()):
        far, way = _hours(us)
        named.append(f"the clock of {device} is {far} {way} this machine's")
    return f"{several(named)}: type timedatectl there and here"


def _hours(ahead_us: int) -> tuple[str, str]:
    hours = abs(ahead_us) / (60 * MINUTE_US)
    return f"{hours:,.1f} hours", "ahead of" if ahead_us > 0 else "behind"


def _moment(time_us: int) -> str:
    return f"{shown_time(time_us).partition('.')[0]} UTC"
