"""The options of an agent that calls out its alerts."""

import argparse
import os
from random import Random
from typing import TYPE_CHECKING

from lasp_edge.errors import UsageError

if TYPE_CHECKING:
    from device_agent.agent.acting.effects import Caller

WEBHOOK_VARIABLE = "LASP_EDGE_ALERT_WEBHOOK"
"""The environment variable in place of --alert-webhook: a URL may hold a secret."""


TIMEOUT_S = 30.0
"""Seconds that a command or a server has, unless another time is set."""


def add_alert_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the calls when an alert turns; None stands for an option that was not given."""
    add = parser.add_argument
    add(
        "--alert-command",
        metavar="CMD",
        help="run this when an alert goes on or off, without a shell; it reads the alert as JSON"
        " (default: nothing)",
    )
    add(
        "--alert-webhook",
        metavar="URL",
        help="post the alert as JSON to this URL when it goes on or off; also in the environment "
        f"as {WEBHOOK_VARIABLE} (default: none)",
    )
    add(
        "--alert-timeout",
        type=float,
        metavar="S",
        help=f"give a command or webhook up after this many seconds (default: {TIMEOUT_S:g})",
    )


def caller_of(arguments: argparse.Namespace, jitter: Random) -> "Caller | None":
    """Return the caller of the arguments' command and URL; None without any.

    Raises:
        UsageError: they cannot work.
    """
    timeout_s = TIMEOUT_S if arguments.alert_timeout is None else arguments.alert_timeout
    if not 0 < timeout_s < 3_600:  # noqa: PLR2004 - an hour
        raise UsageError(f"--alert-timeout: seconds above 0 are needed, not {timeout_s:g}")
    url = arguments.alert_webhook or os.environ.get(WEBHOOK_VARIABLE, "")
    if not arguments.alert_command and not url:
        return None
    # Most agents call nobody, and do without the memory that this takes.
    from urllib.parse import urlsplit  # noqa: PLC0415

    from device_agent.agent.acting.effects import Call, Caller, Command, Webhook  # noqa: PLC0415

    calls: list[Call] = []
    if arguments.alert_command:
        calls.append(Command(_words(arguments.alert_command), timeout_s))
    if url:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise UsageError(
                "--alert-webhook: a URL such as http://homeassistant.local:8123/api/webhook/warm "
                "is needed"
            )
        calls.append(Webhook(url, timeout_s))
    return Caller(calls, jitter)


def _words(command: str) -> list[str]:
    import shlex  # noqa: PLC0415 - as above
    import shutil  # noqa: PLC0415

    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--alert-command: {error}: {command}") from None
    if not words or shutil.which(words[0]) is None:
        what = words[0] if words else command
        raise UsageError(f"--alert-command: there is no program {what!r} that can be run")
    return words
