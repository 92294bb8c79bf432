r"""Print the devices of a fleet: who is connected, retired, or waited for by a gateway.

lasp-edge members greenhouse:program --broker mqtt://192.168.1.10
"""

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import Any

from device_agent.console.command.session import FleetSession, add_listening_arguments, fleet_view
from device_agent.console.view.commands import WHOLE_LIFE
from device_agent.console.view.devices import KnownDevices
from device_agent.console.view.published import gateway_lines
from lasp_edge.errors import Exit
from lasp_edge.protocol.kinds import Subscriber
from lasp_edge.protocol.topics import subscriptions
from lasp_edge.release import RELEASE

SECTION = "a fleet"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_listening_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    view = fleet_view(arguments)
    devices = view.devices
    filters = [*subscriptions(view.topics, Subscriber.OPERATOR), view.topics.gateways]
    with FleetSession(arguments, view, filters) as session:
        session.listen(lambda: not devices.names)
    own = (view.plan.digest, RELEASE) if view.plan else None
    members = [member_row(devices, device, own) for device in devices.names]
    gateways = view.values.gateways
    found = {"members": members, "gateways": gateways}
    print(json.dumps(found) if arguments.json else "\n".join(_lines(members, gateways)))  # noqa: T201
    return Exit.FINE if members else Exit.DIFFERS


def member_row(devices: KnownDevices, device: str, own: tuple[str, str] | None) -> dict[str, Any]:
    """Return a device as a row; the programs of others are compared with `own`.

    Where no program was named, they are compared with the one that most devices run.
    """
    seen, version = devices.seen(device), devices.commands.membership.retired.get(device)
    program, release = seen.runs if seen else ("", "")
    compared = own or devices.mostly_runs
    return {
        "device": device,
        "connected": bool(seen and seen.online),
        "starts": seen.replica.incarnation if seen else None,
        "retired": version is not None,
        "counts_up_to": version and version._asdict(),
        "program": program or None,
        "release": release or None,
        "runs_another": bool(program) and (program, release) != compared,
    }


def _lines(members: list[dict[str, Any]], gateways: Mapping[str, list[str]]) -> Iterator[str]:
    if not members:
        yield "no device sent anything in this fleet; is its name right? (--fleet)"
    width = max((len(member["device"]) for member in members), default=0)
    for member in members:
        yield f"{member['device']:{width}}  {words_of(member)}"
    yield from gateway_lines(gateways)


def words_of(member: dict[str, Any]) -> str:
    """Return in words whether a device is connected and how far it counts."""
    here = "connected" if member["connected"] else "away"
    if not member["retired"]:
        return f"{here:9}  counts{_differs(member)}"
    version = member["counts_up_to"]
    start, seq = version["incarnation"], version["seq"]
    if not start:
        return f"{here:9}  retired; nothing of it counts"
    if seq == WHOLE_LIFE:
        return f"{here:9}  retired; counts up to its start {start}"
    return f"{here:9}  retired; counts up to pane entry {seq} of its start {start}"


def _differs(member: dict[str, Any]) -> str:
    """Return words on a device that runs another program than the others."""
    if not member["runs_another"]:
        return ""
    return f"; RUNS ANOTHER PROGRAM OR RELEASE ({member['program']}, {member['release']})"
