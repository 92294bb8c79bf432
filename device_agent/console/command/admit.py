r"""Count a retired device again: it came back, or was retired by mistake.

Its newest values are in fleet-wide results again, and all that it writes is taken. Devices that
were never retired need no admission: they count from their first frame on.

  lasp-edge admit attic greenhouse:program --broker mqtt://192.168.1.10
"""

import argparse

from device_agent.console.command.session import (
    FleetSession,
    add_listening_arguments,
    check_device,
    check_order,
    fleet_view,
    member_filters,
    now_us,
    was_received,
)
from lasp_edge.errors import Exit, NotFound
from lasp_edge.units import SECOND_US

SECTION = "a fleet"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("device", metavar="DEVICE", help="the device's name")
    add_listening_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    check_order(arguments.program, arguments.device, "DEVICE MODULE:PROGRAM")
    device = check_device(arguments.device)
    view = fleet_view(arguments)
    devices = view.devices
    with FleetSession(arguments, view, member_filters(view.topics, device)) as session:
        session.listen(lambda: device not in devices.names)
        if device not in devices.commands.membership.retired:
            if device not in devices.names:
                raise NotFound(f"{device!r} sent nothing in this fleet, and nobody retired it")
            print(f"{device} is not retired; nothing was changed")  # noqa: T201
            return Exit.FINE
        session.publish(lambda: view.commands.admitting(device, now_us() // SECOND_US))
    print(f"{device} counts again")  # noqa: T201
    return was_received(devices)
