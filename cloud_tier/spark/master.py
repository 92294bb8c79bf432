"""Where Spark may run, as `--master` says it: refused in one line before anything is started.

Spark itself tells a wrong master by a Java stack trace, and one that does not answer after minutes.
"""

import os
import re
import socket
from collections.abc import Iterable, Mapping
from typing import Final

from lasp_edge.errors import EnvironmentLacks, UsageError

_CONNECTS_WITHIN_S: Final = 5.0
"""In seconds: how long a standalone master may take to accept a connection."""
_LOCAL: Final = re.compile(r"local(\[(\*|[1-9]\d*)(,\s*\d+)?\])?|local-cluster\[.+\]")
_STANDALONE: Final = re.compile(r"spark://([^/,]+:\d+)(,[^/,]+:\d+)*")
_CONNECT: Final = re.compile(r"sc://(\[[^\]]+\]|[^/:;]+)(:\d+)?(/.*)?")
_CONNECT_PORT: Final = 15002
_OTHERS: Final = re.compile(r"yarn|k8s://.+")


def check_master(master: str) -> None:
    """Check that Spark can run there, as far as it can be known without starting it.

    >>> check_master("local[2]"), check_master("yarn")
    (None, None)

    Raises:
        UsageError: it is no master that Spark knows.
        EnvironmentLacks: nobody answers there.
    """
    if _STANDALONE.fullmatch(master):
        _check_answers(
            master,
            master.removeprefix("spark://").split(","),
            "spark-class org.apache.spark.deploy.master.Master   # on that machine",
        )
    elif server := _CONNECT.fullmatch(master):
        _check_answers(
            master,
            [f"{server[1]}{server[2] or f':{_CONNECT_PORT}'}"],
            "spark-submit $(python -m cloud_tier.command.submit connect)   # on that machine",
        )
    elif not _LOCAL.fullmatch(master) and not _OTHERS.fullmatch(master):
        raise UsageError(
            f"--master: local, local[N], spark://HOST:PORT, yarn, k8s://URL or sc://HOST is "
            f"needed, not {master!r}"
        )


def runs_elsewhere(master: str | None, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether steps run in a Spark Connect server's process and not in this one.

    >>> runs_elsewhere("sc://cluster"), runs_elsewhere(None, {}), runs_elsewhere("local[2]", {})
    (True, False, False)
    """
    if master is not None and master.startswith("sc://"):
        return True
    return bool(environ.get("SPARK_REMOTE"))


def is_one_machine(master: str | None, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether all of Spark is on this machine, in one process.

    >>> is_one_machine(None, {}), is_one_machine(None, {"PYSPARK_GATEWAY_PORT": "1"})
    (True, False)
    """
    if runs_elsewhere(master, environ):
        return False
    if master is None:  # the call of spark-submit names where it runs
        return "PYSPARK_GATEWAY_PORT" not in environ
    return master.startswith("local")


def _check_answers(master: str, addresses: Iterable[str], line_to_type: str) -> None:
    """Check that one of some addresses accepts connections."""
    why = ""
    for address in addresses:
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _CONNECTS_WITHIN_S).close()
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or str(error)
        else:
            return
    raise EnvironmentLacks(f"no Spark master answers at {master} ({why})", line_to_type)
