"""Where Spark may run, as `--master` says it: refused in one line before anything is started.

Spark itself tells a wrong master by a Java stack trace, and one that does not answer after minutes.
"""

import re
import socket
from typing import Final

from lasp_edge.errors import EnvironmentLacks, UsageError

_CONNECTS_WITHIN_S: Final = 5.0
"""In seconds: how long a standalone master may take to accept a connection."""
_LOCAL: Final = re.compile(r"local(\[(\*|[1-9]\d*)(,\s*\d+)?\])?|local-cluster\[.+\]")
_STANDALONE: Final = re.compile(r"spark://([^/,]+:\d+)(,[^/,]+:\d+)*")
_OTHERS: Final = re.compile(r"yarn|k8s://.+|sc://.+")


def check_master(master: str) -> None:
    """Check that Spark can run there, as far as it can be told without starting it.

    >>> check_master("local[2]"), check_master("yarn")
    (None, None)

    Raises:
        UsageError: it is no master that Spark knows.
        EnvironmentLacks: nobody answers there.
    """
    if _STANDALONE.fullmatch(master):
        _check_answers(master)
    elif not _LOCAL.fullmatch(master) and not _OTHERS.fullmatch(master):
        raise UsageError(
            f"--master: local, local[N], spark://HOST:PORT, yarn, k8s://URL or sc://HOST is "
            f"needed, not {master!r}"
        )


def _check_answers(master: str) -> None:
    """Check that one of a standalone cluster's masters accepts connections."""
    why = ""
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _CONNECTS_WITHIN_S).close()
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or str(error)
        else:
            return
    raise EnvironmentLacks(
        f"no Spark master answers at {master} ({why})",
        "spark-class org.apache.spark.deploy.master.Master   # on that machine",
    )
