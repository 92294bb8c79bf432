"""The MQTT topics of a fleet, sharded by device.

`lasp/v1/<fleet>/<shard>/<kind>/<device>...`: the shard of a device is a hash of its name, so that
several landers can share a large fleet. A topic level holds `[a-z0-9-]`; every other byte of a
name is escaped as `_` and two hexadecimal digits, which can be undone.

Results for people are on `lasp/v1/<fleet>/out/...` and `.../fleet/...`, and stay readable: only
what MQTT does not allow in a level is escaped there, as `%` and two hexadecimal digits.

    >>> level("0e:9c:00"), name_of("0e_3a9c_3a00")
    ('0e_3a9c_3a00', '0e:9c:00')
    >>> Topics("greenhouse").of("pane", "pi-1")
    'lasp/v1/greenhouse/0a/pane/pi-1'
    >>> Topics("greenhouse").result("global_average", "Küche 2/left")
    'lasp/v1/greenhouse/out/global_average/Küche 2%2Fleft'
    >>> subscriptions(Topics("greenhouse"), Subscriber.LANDER)[0]
    'lasp/v1/greenhouse/+/pane/#'
"""

import re
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.kinds import FRAME_KINDS, Publisher, Subscriber

SHARDS = 16
EMPTY_KEY = "%"
"""The level of the key "", which `readable` gives for no text."""
OF_AGENT = "agent"
"""Stands in place of a value's name where an agent tells how it does."""
OF_ALERT = "alert"
"""Stands in place of a value's name where a device tells of an alert."""
OF_GATEWAY = "gateway"
"""Stands in place of a value's name where a gateway tells how far its windows are."""
OF_FLEET = "fleet"
"""The level below which one device publishes the fleet's values, for all."""
PREFIX = "lasp/v1"
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-")
HOME_SEPARATOR = "__"
"""Stands between the parts of an id in Home Assistant; `level` never gives it within one."""
_NO_CHARACTERS = "".join(
    chr(plane << 16 | last) for plane in range(17) for last in (0xFFFE, 0xFFFF)
)
_UNREADABLE = re.compile(
    # What MQTT forbids in a topic, what mosquitto refuses in one, and what cannot be seen.
    f"[/+#%\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029\\ufdd0-\\ufdef{_NO_CHARACTERS}]|^[ $]| $"
)
_FORMER = ("control", "member", "voice")
"""Topics of kinds of frames that there were: no value takes their names."""
RESERVED = frozenset(
    {OF_AGENT, OF_ALERT, OF_GATEWAY, *(row.topic for row in FRAME_KINDS.values()), *_FORMER}
)
"""Names of values whose first letter is escaped: `lasp/v1/<fleet>/+/beat/#` asks for frames."""
REMEMBERED = 1_024
"""Names and topics that are remembered: a fleet has few, and each message names one; some 0.2 MB at
most."""


@lru_cache(REMEMBERED)
def level(name: str) -> str:
    """Return a name as one level of a frame's topic, and as a part of an id in Home Assistant.

    An id may hold little but letters and digits, and a reader of frames must not depend on what a
    broker allows in a level; people read neither. For what they do read there is `readable`.

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
def readable(text: str) -> str:
    """Return a name or key as one topic level that people read; different texts, different levels.

    It keeps every letter that MQTT allows, as `level` must not: an id in Home Assistant has none
    but ASCII. A key may be empty, a name of a frame's topic never is.

    Raises:
        ValueError: it cannot be encoded as UTF-8.
    """
    text.encode()
    return _UNREADABLE.sub(_escaped, text) if text else EMPTY_KEY


def _escaped(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())


def text_of(readable_level: str) -> str:
    """Return the name or key that `readable` gave.

    Raises:
        ValueError: `readable` does not return such a text.
    """
    if readable_level == EMPTY_KEY:
        return ""
    pieces = re.split("%([0-9A-F]{2})", readable_level)
    raw = b"".join(
        bytes.fromhex(piece) if at % 2 else piece.encode() for at, piece in enumerate(pieces)
    )
    text = raw.decode()
    if readable_level not in {readable(text), _reserved(text)} or not text:
        raise ValueError(f"not an escaped text: {readable_level!r}")
    return text


def _reserved(name: str) -> str:
    """Return the level of a value's name, which is never a word that stands for something else."""
    return f"%{ord(name[0]):02X}{name[1:]}" if name in RESERVED else readable(name)


@lru_cache(REMEMBERED)
def shard_of(device: str) -> str:
    """Return the shard of a device, two hexadecimal digits."""
    return format(sha256(device.encode()).digest()[0] % SHARDS, "02x")


def home_node(topics: "Topics", device: str = "") -> str:
    """Return the id of a device, or of its fleet, in Home Assistant; it has no letter but these.

    >>> home_node(Topics("house"), "Kitchen 2")
    'lasp__house___4bitchen_202'
    """
    names = [topics.fleet, *([device] if device else [])]
    return HOME_SEPARATOR.join(["lasp", *map(level, names)])


def home_topic(home: str, topics: "Topics", kind: str, name: str = "") -> str:
    """Return where a device of Home Assistant is announced: the fleet, an agent or a gateway.

    >>> home_topic("homeassistant", Topics("house"), OF_AGENT, "Kitchen 2")
    'homeassistant/device/lasp__house/agent___4bitchen_202/config'
    """
    about = HOME_SEPARATOR.join([kind, *([level(name)] if name else [])])
    return f"{home}/device/{home_node(topics)}/{about}/config"


class Address(NamedTuple):
    """A frame's topic, read: the kind of its frames, and the device that they concern."""

    kind: str
    device: str


class ResultAddress(NamedTuple):
    """A result's topic, read.

    Attributes:
        name: the value's; None where an agent tells how it does.
        device: who holds the value so; None for the fleet's value, which one device tells for all.
        key: None on the topic of the whole value.
    """

    name: str | None
    device: str | None
    key: str | None


class AlertAddress(NamedTuple):
    """An alert's topic, read; `key` is None for a value without keys."""

    name: str
    device: str
    key: str | None


class Topics:
    """The topics of one fleet."""

    def __init__(self, fleet: str) -> None:
        self.fleet = fleet
        self.root = f"{PREFIX}/{level(fleet)}"

    def of(self, kind: str, device: str, *names: str) -> str:
        """Return the topic of one device's frames of a kind.

        `names` follow the device's, such as a variable's name and shard.
        """
        return _joined(self.root, kind, device, names)

    def result(self, name: str, device: str, key: str | None = None) -> str:
        """Return the topic on which a device retains a result as JSON, for people."""
        return f"{self.root}/out/{_reserved(name)}/{readable(device)}{_of_key(key)}"

    def fleet_result(self, name: str, key: str | None = None) -> str:
        """Return the topic of the fleet's value, which one device retains for all."""
        return f"{self.root}/{OF_FLEET}/{_reserved(name)}{_of_key(key)}"

    def fleet_state(self) -> str:
        """Return the topic of the fleet's state: devices that are away or have alarms, as JSON."""
        return f"{self.root}/{OF_FLEET}/{OF_AGENT}"

    def agent(self, device: str) -> str:
        """Return the topic on which an agent retains how it does, as JSON."""
        return f"{self.root}/out/{OF_AGENT}/{readable(device)}"

    def gateway(self, name: str) -> str:
        """Return the topic on which a gateway retains how far its windows are, as JSON."""
        return f"{self.root}/out/{OF_GATEWAY}/{readable(name)}"

    @property
    def gateways(self) -> str:
        """The filter of the topics of `gateway`, of every name."""
        return f"{self.root}/out/{OF_GATEWAY}/+"

    def gateway_of(self, topic: str) -> str | None:
        """Return the gateway whose own topic it is; None for every other topic."""
        prefix = f"{self.root}/out/{OF_GATEWAY}/"
        return text_of(topic.removeprefix(prefix)) if topic.startswith(prefix) else None

    def result_address(self, topic: str) -> ResultAddress:
        """Return the parts of a result's topic.

        Raises:
            ValueError: it is not a topic of this fleet's results.
        """
        kind, *levels = topic.removeprefix(f"{self.root}/").split("/")
        if not topic.startswith(f"{self.root}/") or not all(levels):
            raise ValueError("not a topic of this fleet")
        if kind == OF_FLEET and len(levels) in {1, 2} and levels[0] != OF_AGENT:
            name, *keys = map(text_of, levels)
            return ResultAddress(name, None, keys[0] if keys else None)
        if kind == "out" and len(levels) in {2, 3} and levels[0] not in {OF_ALERT, OF_GATEWAY}:
            name, device, *keys = map(text_of, levels)
            of_agent = levels[0] == OF_AGENT
            return ResultAddress(None if of_agent else name, device, keys[0] if keys else None)
        raise ValueError("not a topic of results")

    def alert(self, name: str, device: str, key: str | None = None) -> str:
        """Return the topic on which a device retains an alert as JSON; `key` of a keyed value."""
        return f"{self.root}/out/{OF_ALERT}/{readable(name)}/{readable(device)}{_of_key(key)}"

    def is_alert(self, topic: str) -> bool:
        """Return whether devices tell of alerts on a topic."""
        return topic.startswith(f"{self.root}/out/{OF_ALERT}/")

    def alert_address(self, topic: str) -> AlertAddress:
        """Return the parts of an alert's topic.

        Raises:
            ValueError: it is not a topic of this fleet's alerts.
        """
        levels = topic.removeprefix(f"{self.root}/out/{OF_ALERT}/").split("/")
        if not self.is_alert(topic) or len(levels) not in {2, 3} or not all(levels):
            raise ValueError("not a topic of alerts")
        name, device, *keys = map(text_of, levels)
        return AlertAddress(name, device, keys[0] if keys else None)

    def every(self, kind: str) -> str:
        """Return the filter for all devices' topics of one kind."""
        return f"{self.root}/+/{kind}/#"

    def address(self, topic: str) -> Address:
        """Return which kind of frames travels on a topic, and which device they concern.

        Raises:
            ValueError: it is not a topic of this fleet, or its shard is not the device's.
        """
        return _address(self.root, topic)


def _of_key(key: str | None) -> str:
    return "" if key is None else f"/{readable(key)}"


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


def topic_of(frame: Frame, topics: Topics) -> str:
    """Return the only topic of a fleet on which a frame may travel.

    >>> from crdts import Replica
    >>> from lasp_edge.protocol.frames import AskFrame
    >>> topic_of(AskFrame(Replica(1, 7, "pi-1"), 1, "pi-2", "average"), Topics("greenhouse"))
    'lasp/v1/greenhouse/06/inbox/pi-2'
    """
    return _joined(topics.root, FRAME_KINDS[frame.kind].topic, frame.about, frame.subtopic)


def subscriptions(
    topics: Topics, subscriber: Subscriber, device: str = "", group: str = ""
) -> list[str]:
    """Return the topic filters for all frames that a subscriber takes.

    An addressee takes those about `device`, itself. A lander in a `group` takes some of the frames
    that are divided among the group, by MQTT's shared subscriptions.

    >>> subscriptions(Topics("greenhouse"), Subscriber.LANDER, group="two")[:2]
    ['$share/two/lasp/v1/greenhouse/+/pane/#', 'lasp/v1/greenhouse/+/var/#']
    """
    rows = [row for row in FRAME_KINDS.values() if row.subscribers & subscriber]
    if subscriber is Subscriber.ADDRESSEE:
        return [topics.of(row.topic, device) for row in rows]
    return [
        f"$share/{group}/{topics.every(row.topic)}"
        if group and row.divided
        else topics.every(row.topic)
        for row in rows
    ]


def is_left_to_operators(topic: str, topics: Topics) -> bool:
    """Return whether a broker with access rules takes messages on a topic from operators alone.

    Devices repeat such messages all the same, for brokers without rules.
    """
    try:
        kind = topics.address(topic).kind
    except ValueError:
        return False
    writers = {row.topic: row.publishers for row in FRAME_KINDS.values()}
    return writers.get(kind) is Publisher.OPERATOR


def is_of_its_moment(topic: str, topics: Topics) -> bool:
    """Return whether the frames on a topic are true only when they are sent.

    No participant lets the broker keep such a frame: its reader could not tell how old it is, nor
    how far its sender's clock has come since.
    """
    try:
        kind = topics.address(topic).kind
    except ValueError:
        return False
    return any(row.topic == kind and not row.retained for row in FRAME_KINDS.values())
