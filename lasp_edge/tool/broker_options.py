"""The options with which a command reaches the broker, and the address that they make.

Secrets are never needed on the command line, where every user of a machine can read them: user and
password stand in a file (`--login`), or in the environment variables LASP_EDGE_USER and
LASP_EDGE_PASSWORD.
"""

import argparse
import logging
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lasp_edge.errors import UsageError
from lasp_edge.link import BrokerUrl, TlsFiles
from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.sinks import SINK_BYTES, sink_name
from lasp_edge.protocol.topics import Topics

if TYPE_CHECKING:  # most agents sign nothing, and do without these modules
    from lasp_edge.security.access import Role
    from lasp_edge.security.participants import Participant
    from lasp_edge.security.signatures import Signatures

log = logging.getLogger(__name__)

USER: Final = "LASP_EDGE_USER"
PASSWORD: Final = "LASP_EDGE_PASSWORD"  # noqa: S105 - the name of a variable
_FILES: Final = ("login", "ca_file", "certificate", "key", "sign", "trust")


def add_broker_arguments(
    parser: argparse.ArgumentParser, *, required: bool = True, unless: str = "--no-lander"
) -> None:
    """Declare the broker's address, how to log in, and the files for TLS.

    Args:
        parser: where.
        required: argparse asks for the address.
        unless: the option that makes up for the address, where it is not required.
    """
    group = parser.add_argument_group("broker")
    add = group.add_argument
    needed = "" if required else f"; needed unless {unless}"
    url = f"mqtt://[user@]host[:port], or mqtts:// for TLS{needed}"
    add("--broker", required=required, metavar="URL", help=url)
    add(
        "--login",
        type=Path,
        metavar="FILE",
        help="a file of two lines, user and password (else the environment variables "
        f"{USER} and {PASSWORD}); of one line: the password",
    )
    add("--ca-file", type=Path, metavar="FILE", help="the authority that signed the broker's name")
    add("--certificate", type=Path, metavar="FILE", help="this device's certificate for TLS")
    add("--key", type=Path, metavar="FILE", help="the key of --certificate")
    add("--sign", type=Path, metavar="FILE", help="sign messages by this key of `lasp-edge keys`")
    add("--trust", type=Path, metavar="FILE", help="the roster: hear only whom it lists")


def broker_of(
    arguments: argparse.Namespace, environment: Mapping[str, str] = os.environ
) -> BrokerUrl:
    """Return the broker that the arguments name.

    Raises:
        UsageError: they cannot work, or a file cannot be read.
    """
    try:
        broker = BrokerUrl.parse(arguments.broker)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if broker.password is not None:
        log.warning("every user of this machine can read a password in --broker; use --login FILE")
    user, password = login_of("--login", arguments.login) if arguments.login else (None, None)
    files = TlsFiles(*map(_readable, (arguments.ca_file, arguments.certificate, arguments.key)))
    if files.key and not files.certificate:
        raise UsageError("--key belongs to a --certificate FILE")
    if any(files) and not broker.tls:
        raise UsageError(f"files for TLS are given, and {broker} is without TLS; use mqtts://")
    if any(files):
        from lasp_edge.link.tls_files import TlsFileError, tls_context  # noqa: PLC0415 - no OpenSSL

        try:
            tls_context(files)
        except TlsFileError as error:
            raise UsageError(str(error)) from None
    warn_if_others_can_read(arguments.key)
    return broker._replace(
        user=broker.user or user or environment.get(USER),
        password=password or broker.password or environment.get(PASSWORD),
        files=files,
    )


def seal_of(
    arguments: argparse.Namespace, topics: Topics, role: "Role", name: str | None = None
) -> "Signatures | None":
    """Return the signer and checker of messages; None where neither is asked for.

    Args:
        arguments: of `add_broker_arguments`.
        topics: of the fleet.
        role: of this program.
        name: of this program; None where any name will do.

    Raises:
        UsageError: a file cannot be used, or the roster knows the key as somebody else's.
    """
    if arguments.sign is None and arguments.trust is None:
        return None
    from lasp_edge.security.signatures import Signatures, signing_key  # noqa: PLC0415

    listed = participants_of(arguments.trust)
    key = None
    if arguments.sign is not None:
        _readable(arguments.sign)
        warn_if_others_can_read(arguments.sign)
        try:
            key = signing_key(arguments.sign)
        except ValueError as error:
            raise UsageError(str(error)) from None
    seal = Signatures(topics, key, listed)
    author = seal.author()
    if key is not None and listed is not None:
        me = f"{role.value} {name or ''}".strip()
        if author is None or author.role is not role or name not in {None, author.name}:
            what = f"{arguments.trust} does not know the key in {arguments.sign} as that of {me}"
            raise UsageError(f"{what}; see: lasp-edge keys show {arguments.sign} --name NAME")
    return seal


def sink_option(option: str, name: str) -> str:
    """Return the name of a sink that was typed.

    Raises:
        UsageError: it cannot be a name of a sink.
    """
    try:
        return sink_name(name)
    except FrameError:
        raise UsageError(f"{option}: a name of 1 to {SINK_BYTES} bytes, not {name!r}") from None


def participants_of(path: Path | None) -> "list[Participant] | None":
    """Return the participants of a roster; None without a roster.

    Raises:
        UsageError: it cannot be read.
    """
    if path is None:
        return None
    from lasp_edge.security import participants  # noqa: PLC0415

    _readable(path)
    try:
        return participants.read(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None


def words_for_child(
    arguments: argparse.Namespace, broker: BrokerUrl
) -> tuple[list[str], dict[str, str]]:
    """Return the options and environment with which a child process reaches the same broker.

    The password is in the environment alone.
    """
    user, password = broker.user, broker.password
    words = ["--broker", str(broker._replace(user=None, password=None))]
    for name in _FILES:
        path = getattr(arguments, name, None)
        if path is not None and name != "login":
            words += [f"--{name.replace('_', '-')}", str(path)]
    secrets = {USER: user, PASSWORD: password}
    return words, {name: value for name, value in secrets.items() if value is not None}


def warn_if_others_can_read(path: Path | None) -> None:
    """Warn of a secret that is not only its owner's."""
    if path is not None and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        log.warning("other users of this machine can read %s; type: chmod 600 %s", path, path)


def login_of(option: str, path: Path) -> tuple[str | None, str]:
    """Return the user, where the file names one, and the password of a login file.

    Raises:
        UsageError: it cannot be read, or is no such file.
    """
    _readable(path)
    warn_if_others_can_read(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    if not lines or not lines[-1] or len(lines) > 2:  # noqa: PLR2004 - user and password
        raise UsageError(f"{option} {path}: two lines are needed, a user and a password")
    return (lines[0] if len(lines) > 1 else None), lines[-1]


def _readable(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        path.open("rb").close()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    return str(path)
