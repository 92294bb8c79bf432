"""Frames of operators' commands, for tests."""

from typing import Any

from crdts import ControlLog, Member, Membership, Replica, Version
from lasp_edge.protocol.commands import CommandFrame, CommandLog


def member_command(
    sender: Replica, number: int, device: str, control: int, retired: Any, version: Version
) -> CommandFrame:
    """Return the command that retires or admits a device."""
    known = CommandLog(Membership({device: Member(control, retired, version)}))
    return CommandFrame.of(sender, number, (device,), known)


def schedule_command(
    sender: Replica, number: int, parameter: str, scope: str, log: ControlLog
) -> CommandFrame:
    """Return the command that holds a parameter's schedule in one scope."""
    return CommandFrame.of(sender, number, (parameter, scope), CommandLog(control=log))


def member_of(frame: CommandFrame) -> Member:
    """Return the decision on the device that a command is about."""
    return frame.commands().membership.entries[frame.about]
