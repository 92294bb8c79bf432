r"""Make a key with which a device, a lander or an operator signs its messages.

Prints the line for the roster, the file that all participants have and that `--trust` names:

  lasp-edge keys new kitchen.key --name kitchen >> roster
  lasp-edge keys new lake.key --name lake --role lander >> roster

The key stays on its machine: lasp-edge agent ... --sign kitchen.key --trust roster
"""

import argparse
import os
from pathlib import Path

from lasp_edge.errors import Exit, UsageError
from lasp_edge.security.access import Role
from lasp_edge.security.participants import Participant, read
from lasp_edge.security.signatures import new_key, signing_key

SECTION = "a fleet"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add = parser.add_argument
    roles = [role.value for role in Role if role is not Role.VIEWER]
    add("action", choices=["new", "show"], help="make a key, or show the roster's line of one")
    add("file", type=Path, help="where the key is; a new one replaces none")
    add("--name", required=True, help="whose key it is; a device's own name")
    add("--role", choices=roles, default=Role.DEVICE.value, help="(default: device)")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    path = arguments.file
    try:
        if arguments.action == "new":
            _write(path, new_key())
        line = _line(Participant(Role(arguments.role), arguments.name, signing_key(path).public))
    except FileExistsError:
        raise UsageError(f"{path} is there already, and is kept; name another file") from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(str(error)) from None
    print(line)  # noqa: T201
    return Exit.FINE


def _line(participant: Participant) -> str:
    line = str(participant)
    if [str(each) for each in read(line)] != [line]:
        raise ValueError(f"a roster cannot have the name {participant.name!r}")
    return line


def _write(path: Path, secret: bytes) -> None:
    only_mine = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(only_mine, "wb") as file:
        file.write(secret)
