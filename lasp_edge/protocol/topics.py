"""The MQTT topics of a fleet, sharded by device.

`lasp/v1/<fleet>/<shard>/<kind>/<device>...`: the shard of a device is a hash of its name, so that
several landers can share a large fleet. A topic level holds `[a-z0-9-]`; every other byte of a
name is escaped as `_` and two hexadecimal digits, which can be undone.

    >>> level("0e:9c:00"), name_of("0e_3a9c_3a00")
    ('0e_3a9c_3a00', '0e:9c:00')
    >>> Topics("greenhouse").of("pane", "pi-1")
    'lasp/v1/greenhouse/0a/pane/pi-1'
"""

import re
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

SHARDS = 16
EMPTY_KEY = "_"
"""The level of the key "", which `level` gives for no name."""
PREFIX = "lasp/v1"
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-")
REMEMBERED = 1_024
"""Names and topics that are remembered: a fleet has few, and each message names one; some 0.2 MB at
most."""


@lru_cache(REMEMBERED)
def level(name: str) -> str:
    """Return a name as one topic level.

    Raises:
        ValueError: it is empty, or cannot be encoded as UTF-8.
    """
    if not name:
        raise ValueError("a name of a fleet, device or variable must not be empty")
    return "".join(chr(byte) if byte in _PLAIN else f"_{byte:02x}" for byte in name.encode())


def name_of(text: str) -> str:
    """Return the name that `level` gave.

    Raises:
        ValueError: `level` does not return such a text.
    """
    unescaped = re.sub(r"_([0-9a-f]{2})", lambda match: chr(int(match[1], 16)), text)
    try:
        name = unescaped.encode("latin-1").decode()
    except UnicodeError:
        name = ""
    if not name or level(name) != text:
        raise ValueError(f"not an escaped name: {text!r}")
    return name


@lru_cache(REMEMBERED)
def shard_of(device: str) -> str:
    """Return the shard of a device, two hexadecimal digits."""
    return format(sha256(device.encode()).digest()[0] % SHARDS, "02x")


class Address(NamedTuple):
    """What a topic says: the kind of its frames, and the device that they concern."""

    kind: str
    device: str


class Topics:
    """The topics of one fleet."""

    def __init__(self, fleet: str) -> None:
        self.root = f"{PREFIX}/{level(fleet)}"

    def of(self, kind: str, device: str, *names: str) -> str:
        """Return the topic of one device's frames of a kind.

        `names` follow the device's, such as a variable's name and shard.
        """
        return _joined(self.root, kind, device, names)

    def result(self, name: str, device: str, key: str | None = None) -> str:
        """Return the topic on which a device retains a result as JSON, for people."""
        last = "" if key is None else f"/{level(key) if key else EMPTY_KEY}"
        return f"{self.root}/out/{level(name)}/{level(device)}{last}"

    def alert(self, name: str, device: str, key: str | None = None) -> str:
        """Return the topic on which a device retains an alert as JSON; `key` of a keyed value."""
        last = "" if key is None else f"/{level(key) if key else EMPTY_KEY}"
        return f"{self.root}/out/alert/{level(name)}/{level(device)}{last}"

    def every(self, kind: str) -> str:
        """Return the filter for all devices' topics of one kind."""
        return f"{self.root}/+/{kind}/#"

    def address(self, topic: str) -> Address:
        """Return which kind of frames travels on a topic, and which device they concern.

        Raises:
            ValueError: it is not a topic of this fleet, or its shard is not the device's.
        """
        return _address(self.root, topic)


@lru_cache(REMEMBERED)
def _joined(root: str, kind: str, device: str, names: tuple[str, ...]) -> str:
    return "/".join((root, shard_of(device), kind, level(device), *map(level, names)))


@lru_cache(REMEMBERED)
def _address(root: str, topic: str) -> Address:
    levels = topic.removeprefix(root + "/").split("/")
    if len(levels) < 3 or not topic.startswith(root + "/"):  # noqa: PLR2004
        raise ValueError("not a topic of this fleet")
    shard, kind, device = levels[0], levels[1], name_of(levels[2])
    if shard != shard_of(device):
        raise ValueError("not the shard of this device")
    return Address(kind, device)
