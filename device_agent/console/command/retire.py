r"""Stop counting a device: it is broken, sold or cloned.

What it wrote up to now counts for ever, also when it arrives late; its newest values leave all
fleet-wide results, no device waits for it any more, and what it writes from now on is refused until
`lasp-edge admit`. The command is retained at the broker, and the devices keep it.

Its last beat says up to where its readings count; the command listens for one. A device that is
away sends no beat: then everything of its last known start counts, so that nothing is taken back,
and nothing of a later start. --seq sets the last pane entry that counts. Two cases need --force: a
connected device that sent no beat, because everything it goes on to write in this start would
count; and a device that sent nothing at all, because its name may be mistyped.

  lasp-edge retire attic greenhouse:program --broker mqtt://192.168.1.10
"""

import argparse
from typing import NoReturn

from crdts.replica import SEQS
from device_agent.agent.sources.nearest import hint
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
from device_agent.console.view.commands import WHOLE_LIFE
from device_agent.console.view.devices import KnownDevices
from lasp_edge.errors import CommandError, Exit, NotFound, UsageError
from lasp_edge.protocol.commands import CommandFrame
from lasp_edge.units import SECOND_US

SECTION = "a fleet"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("device", metavar="DEVICE", help="the device's name")
    add_listening_arguments(parser)
    parser.add_argument("--seq", type=int, help="it counts up to this pane entry of its last start")
    parser.add_argument("--force", action="store_true", help="even if it sends nothing")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    check_order(arguments.program, arguments.device, "DEVICE MODULE:PROGRAM")
    device = check_device(arguments.device)
    if arguments.seq is not None and not 0 <= arguments.seq < SEQS:
        raise UsageError(f"--seq: a number from 0 to {SEQS - 1}, not {arguments.seq}")
    view = fleet_view(arguments)
    devices = view.devices
    with FleetSession(arguments, view, member_filters(view.topics, device)) as session:
        session.ask(device)
        session.listen(lambda: _undecided(devices, arguments))
        known = devices.commands.membership.retired.get(device)
        if known is not None and arguments.seq is None:
            print(f"{device} is retired already; nothing was changed")  # noqa: T201
            return Exit.FINE
        if _undecided(devices, arguments) and not arguments.force:
            _refuse(devices, device)
        frame = session.publish(
            lambda: view.commands.retiring(device, arguments.seq, now_us() // SECOND_US)
        )
    print(f"{device} is retired\n{_up_to(frame)}")  # noqa: T201
    return was_received(devices)


def _undecided(devices: KnownDevices, arguments: argparse.Namespace) -> bool:
    """Return whether the last entry that counts is still unknown, and a beat may tell it."""
    retired = arguments.device in devices.commands.membership.retired
    return arguments.seq is None and not retired and devices.awaits_beat(arguments.device)


def _refuse(devices: KnownDevices, device: str) -> NoReturn:
    if devices.seen(device) is None:
        near = f"; {hint(device, devices.names)}" if devices.names else ""
        raise NotFound(
            f"{device!r} sent nothing in this fleet{near}; to retire it all the same, add --force"
        )
    raise CommandError(
        f"{device!r} is connected, but sent no beat; listen longer (--listen), name the last pane "
        "entry that counts (--seq), or let all of its present start count (--force)"
    )


def _up_to(frame: CommandFrame) -> str:
    start, _, seq = frame.commands().membership.entries[frame.about].version
    if not start:
        return "  it sent nothing in this fleet, and nothing of it will count until it is admitted"
    if seq == WHOLE_LIFE:
        return f"  no beat of it came: all of its start {start} counts, nothing of a later one"
    return (
        f"  it counts up to pane entry {seq} of its start {start}, and nothing after that; windows "
        "do not wait for entries that are still to come, and are revised when they do"
    )
