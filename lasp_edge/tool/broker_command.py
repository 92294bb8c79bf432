r"""Write the configuration of a broker with rights for each device.

Each device publishes only its own entries, landers acknowledge, operators retire and admit, viewers
read results. Nobody is let in without a password, or a certificate. Writes DIR/mosquitto.conf and
DIR/acl, and prints what to type for passwords and certificates. Run it again to add a device, and
then: systemctl reload mosquitto

  lasp-edge broker config greenhouse:program --device kitchen --device attic \
      --host broker.example --dir /etc/mosquitto
"""

import argparse
from pathlib import Path

from lasp_edge.errors import EnvironmentLacks, Exit, UsageError
from lasp_edge.protocol.topics import Topics
from lasp_edge.security.access import Role
from lasp_edge.security.mosquitto import (
    WRITTEN_BY,
    Hardening,
    access_file,
    configuration,
    users,
)
from lasp_edge.security.participants import Participant
from lasp_edge.tool.broker_options import participants_of
from lasp_edge.tool.loading import load_plan

SECTION = "a fleet"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add = parser.add_argument
    add("action", choices=["config"], help="what to do: write the configuration")
    add("program", metavar="MODULE:PROGRAM", nargs="?", help="the fleet's program; else --fleet")
    add("--fleet", default="", help="the fleet's name on the broker (default: the program's)")
    for role in Role:
        text = f"a {role.value}'s name, any number of times"
        default = [role.value] if role in {Role.LANDER, Role.OPERATOR} else []
        text += f" (default: {role.value})" if default else ""
        add(f"--{role.value}", action="append", default=[], metavar="NAME", help=text)
    add("--trust", type=Path, metavar="FILE", help="a roster of `lasp-edge keys`: all in it")
    add("--dir", type=Path, required=True, help="where the broker's files are, an absolute path")
    add("--host", default="localhost", help="the broker's name, as the devices call it")
    add("--port", type=int, help="where it listens (default: 8883; 1883 with --without-tls)")
    add("--certificates", action="store_true", help="certificates instead of passwords")
    add("--without-tls", action="store_true", help="for a network that nobody can listen to")
    add("--sensors", action="append", default=[], metavar="TOPIC", help="what `mqtt:TOPIC` reads")
    home = "devices may use --home-assistant PREFIX, and viewers, such as it, may see them"
    asked = {"nargs": "?", "const": "homeassistant", "default": "", "metavar": "PREFIX"}
    parser.add_argument("--home-assistant", help=home, **asked)  # type: ignore[arg-type]
    add("--data", type=Path, default=Path("/var/lib/mosquitto"), help="where the broker keeps data")
    add("--account", default="mosquitto", help="under which the broker runs")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    topics, asked = _topics(arguments), _hardening(arguments)
    try:
        asked.directory.mkdir(parents=True, exist_ok=True)
        kept = _keep_anothers(asked.directory / "mosquitto.conf")
        (asked.directory / "mosquitto.conf").write_text(configuration(asked), encoding="utf-8")
        rights = asked.directory / "acl"
        rights.write_text(access_file(asked, topics), encoding="utf-8")
        rights.chmod(0o640)
    except OSError as error:
        what = f"cannot write into {asked.directory}: {error.strerror}"
        raise EnvironmentLacks(
            what, f"sudo lasp-edge broker config --dir {asked.directory} ..."
        ) from None
    print("\n".join([*kept, *_instructions(asked, arguments.host)]))  # noqa: T201
    return Exit.FINE


def _keep_anothers(path: Path) -> list[str]:
    """Rename a file that this command did not write; return a line that says so."""
    if not path.exists() or path.read_text(encoding="utf-8").startswith(WRITTEN_BY):
        return []
    kept = path.with_suffix(".conf.before")
    path.rename(kept)
    return [f"# What was in {path} is kept as {kept}."]


def _topics(arguments: argparse.Namespace) -> Topics:
    if not arguments.program and not arguments.fleet:
        raise UsageError("a fleet is needed: MODULE:PROGRAM, or --fleet NAME")
    return Topics(arguments.fleet or load_plan(arguments.program).name)


def _hardening(arguments: argparse.Namespace) -> Hardening:
    participants = _participants(arguments)
    names = [each.name for each in participants]
    for name in names:
        plain = name.isprintable() and name == name.strip() and not set(name) & set("'\\/+#")
        if not plain or not name or names.count(name) > 1:
            raise UsageError(f"each name is given once, without / + # or quotes, not {name!r}")
        if ":" in name and not arguments.certificates:
            raise UsageError(f"no password file can have {name!r}; use --certificates")
    if participants[0].role is not Role.DEVICE:
        raise UsageError("name the devices that may write: --device kitchen --device attic")
    if not arguments.dir.is_absolute():
        raise UsageError(
            f"--dir: an absolute path, for the broker starts elsewhere: {arguments.dir}"
        )
    if arguments.certificates and arguments.without_tls:
        raise UsageError("--certificates need TLS; leave out --without-tls")
    return Hardening(
        arguments.dir,
        arguments.port or (1883 if arguments.without_tls else 8883),
        participants,
        certificates=arguments.certificates,
        tls=not arguments.without_tls,
        sensors=arguments.sensors,
        data=arguments.data,
        account=arguments.account,
        home=arguments.home_assistant,
    )


def _participants(arguments: argparse.Namespace) -> list[Participant]:
    """Return all that were named, devices first."""
    found = participants_of(arguments.trust) or []
    found += [Participant(role, name) for role in Role for name in getattr(arguments, role.value)]
    for role in (Role.LANDER, Role.OPERATOR):
        if all(each.role is not role for each in found):
            found.append(Participant(role, role.value))
    return sorted(found, key=lambda each: list(Role).index(each.role))


def _instructions(asked: Hardening, host: str) -> list[str]:
    """Return the commands to type, as lines of a shell script."""
    at = asked.directory
    lines = [f"# Wrote {at / 'mosquitto.conf'} and {at / 'acl'}.", f"cd {at}"]
    if asked.tls:
        new = "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
        sign = "openssl x509 -req -CA ca.pem -CAkey ca.key -CAcreateserial -days 3650"
        lines += [
            "# An authority, and the broker's certificate:",
            f"{new} -x509 -days 3650 -subj '/CN=fleet authority' -keyout ca.key -out ca.pem",
            f"{new} -subj '/CN={host}' -keyout broker.key -out broker.csr",
            f"echo 'subjectAltName=DNS:{host}' > broker.ext",
            f"{sign} -in broker.csr -extfile broker.ext -out broker.pem",
        ]
        if asked.certificates:
            lines += ["# A certificate for each; NAME.pem, NAME.key and ca.pem go to its machine:"]
            for name in users(asked):
                lines += [
                    f"{new} -subj '/CN={name}' -keyout '{name}.key' -out '{name}.csr'",
                    f"{sign} -in '{name}.csr' -out '{name}.pem'",
                ]
    if not asked.certificates:
        lines += ["# A password for each, asked for twice:", "touch passwords"]
        lines += [f"mosquitto_passwd passwords '{name}'" for name in users(asked)]
    secret = ["acl", *(["broker.key"] if asked.tls else [])]
    secret += [] if asked.certificates else ["passwords"]
    lines += [
        "# Only the broker reads these:",
        f"chown {asked.account} {' '.join(secret)} && chmod 600 {' '.join(secret)}",
        "# Then: systemctl restart mosquitto. On a device:",
        f"#   lasp-edge agent ... --device {asked.participants[0].name} {_options(asked, host)}",
    ]
    return lines


def _options(asked: Hardening, host: str) -> str:
    scheme = "mqtts" if asked.tls else "mqtt"
    words = f"--broker {scheme}://{host}:{asked.port}"
    words += " --ca-file ca.pem" if asked.tls else ""
    first = asked.participants[0].name
    mine = f" --certificate {first}.pem --key {first}.key"
    return words + (mine if asked.certificates else " --login LOGIN_FILE")
