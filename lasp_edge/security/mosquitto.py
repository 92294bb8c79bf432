"""The files of a mosquitto broker that lets each participant of a fleet do only its own part."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lasp_edge.protocol.sizes import MAX_FRAME_BYTES
from lasp_edge.protocol.topics import Topics
from lasp_edge.security.access import Role, Rule, rules
from lasp_edge.security.participants import Participant

MESSAGE_BYTES = MAX_FRAME_BYTES + 4_096
"""The longest message that the broker takes: a frame, and what a signature adds to it."""
WRITTEN_BY = "# Written by `lasp-edge broker config`"
"""How the broker's files begin."""
SENSORS = "sensors"
"""The user that publishes what the source `mqtt:TOPIC` of the devices reads."""


class Hardening(NamedTuple):
    """What the broker's files depend on.

    Attributes:
        directory: where the files are when the broker runs.
        port: the broker listens there.
        participants: who may log in; a device's user is called like the device.
        certificates: each shows a certificate with its name; else it gives a password.
        tls: the broker has a certificate; without it passwords travel readably.
        sensors: topic filters from which devices read.
        data: where the broker keeps what it retains.
        account: under which the broker runs where root starts it.
        home: Home Assistant's first topic level, where devices announce themselves to it.
    """

    directory: Path
    port: int
    participants: Sequence[Participant]
    certificates: bool = False
    tls: bool = True
    sensors: Sequence[str] = ()
    data: Path = Path("/var/lib/mosquitto")
    account: str = "mosquitto"
    home: str = ""


def configuration(asked: Hardening) -> str:
    """Return the text of mosquitto.conf."""
    at = asked.directory
    lines = [
        f"{WRITTEN_BY}; it is written again when a device is added.",
        f"listener {asked.port}",
    ]
    if asked.tls:
        lines += [
            f"cafile {at / 'ca.pem'}",
            f"certfile {at / 'broker.pem'}",
            f"keyfile {at / 'broker.key'}",
            "tls_version tlsv1.2",
        ]
    if asked.certificates:
        lines += [
            "# The name in a certificate (CN) is the user.",
            "require_certificate true",
            "use_identity_as_username true",
        ]
    lines += _client_ids(asked)
    lines += ["allow_anonymous false"]
    lines += [] if asked.certificates else [f"password_file {at / 'passwords'}"]
    return "\n".join([*lines, f"acl_file {at / 'acl'}", *_bounds(asked)]) + "\n"


def access_file(asked: Hardening, topics: Topics) -> str:
    """Return the text of the ACL file."""
    lines = [f"{WRITTEN_BY}. What is not allowed here is refused."]
    for role, name, _ in asked.participants:
        lines += ["", f"# {role.value}", f"user {name}"]
        lines += [str(rule) for rule in rules(role, name, topics, asked.home)]
        if role is Role.DEVICE:
            lines += [str(Rule("read", each)) for each in asked.sensors]
    if asked.sensors:
        lines += ["", f"user {SENSORS}", *[str(Rule("write", each)) for each in asked.sensors]]
    return "\n".join(lines) + "\n"


def users(asked: Hardening) -> list[str]:
    """Return everybody who logs in."""
    return [each.name for each in asked.participants] + ([SENSORS] if asked.sensors else [])


def _client_ids(asked: Hardening) -> list[str]:
    if asked.sensors:  # the source `mqtt:TOPIC` is a second connection of the same user
        return []
    return [
        "# Nobody can take over another's connection; so each program needs a user of its own.",
        "use_username_as_clientid true",
    ]


def _bounds(asked: Hardening) -> list[str]:
    return [
        f"message_size_limit {MESSAGE_BYTES}",
        "# A lander acknowledges once messages are on its disk: it needs many at a time.",
        "max_inflight_messages 1000",
        "max_queued_messages 100000",
        "max_keepalive 120",
        "persistent_client_expiration 14d",
        "persistence true",
        f"persistence_location {asked.data}/",
        "autosave_interval 60",
        "set_tcp_nodelay true",
        f"user {asked.account}",
        "log_type error",
        "log_type warning",
        "log_type notice",
    ]
