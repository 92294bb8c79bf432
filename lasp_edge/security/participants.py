"""The file of a fleet's participants, each with its public key.

One line each, `ROLE KEY NAME`, as `lasp-edge keys new` prints it. The key `-` means that this one
signs nothing; what others send in its name cannot be distinguished from its own then.

    >>> (kitchen,) = read("device - kitchen")
    >>> kitchen.role.value, kitchen.key, kitchen.name
    ('device', None, 'kitchen')
"""

import base64
import binascii
from collections import Counter
from typing import NamedTuple

from lasp_edge.security.access import Role

KEY_BYTES = 32
"""The length of an Ed25519 public key."""


class Participant(NamedTuple):
    """One who takes part in a fleet.

    Attributes:
        role: what it may do.
        name: a device's name; for others, what people call them.
        key: its public key; None where it signs nothing.
    """

    role: Role
    name: str
    key: bytes | None = None

    def __str__(self) -> str:
        shown = "-" if self.key is None else base64.b64encode(self.key).decode()
        return f"{self.role.value} {shown} {self.name}"


def read(text: str) -> list[Participant]:
    """Return the participants that a file lists.

    Raises:
        ValueError: a line is not of that form, or names somebody twice.
    """
    found: list[Participant] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            try:
                found.append(_participant(line))
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from None
    times: Counter[str | bytes] = Counter(
        [*(each.name for each in found), *(each.key for each in found if each.key)]
    )
    for each in found:
        if times[each.name] > 1 or (each.key is not None and times[each.key] > 1):
            raise ValueError(f"{each.name!r}, or its key, is there twice")
    return found


def _participant(line: str) -> Participant:
    words = line.split(maxsplit=2)
    roles = {role.value: role for role in Role}
    if len(words) < 3 or words[0] not in roles:  # noqa: PLR2004 - ROLE KEY NAME
        raise ValueError(f"`device KEY NAME` is needed, or {', '.join(roles)}; not {line!r}")
    role, shown, name = words
    if shown == "-":
        return Participant(roles[role], name.strip())
    try:
        key = base64.b64decode(shown, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise ValueError(f"{shown!r} is not a public key, nor `-`")
    return Participant(roles[role], name.strip(), key)
