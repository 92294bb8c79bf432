"""The actions of `lasp-edge lake` that change rows: they delete, or carry over to a format."""

import argparse
import fcntl
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from cloud_tier.job.opened import OpenTables
from cloud_tier.lake.definitions import program_of, retire_command
from cloud_tier.lake.deletion import forget, retain
from cloud_tier.lake.matching import StillCounted, Wanted, still_counted
from cloud_tier.lake.room import need_room
from cloud_tier.lake.status import JOB_LOCK, LANDER_LOCK, is_locked
from cloud_tier.lake.tables import FORMAT, LakeTables
from cloud_tier.lake.upgrade import upgrade
from lasp_edge.errors import UsageError
from lasp_edge.tool.times import typed_time

LEAST_DAYS = 8
"""Days that are kept at least: a job takes late readings for seven, unless one says otherwise."""
_FEW_DEVICES = 10
"""Devices that a line lists."""


def add_deletion_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what `forget` and `retain` take."""
    group = parser.add_argument_group("forget, retain")
    group.add_argument("--device", default="", metavar="D", help="forget all that is of a device")
    group.add_argument("--key", metavar="K", help="forget all that is of a key")
    before = (
        "forget only what was measured before then; a time within a pane (the greatest common "
        "divisor of a window's size and slide) is refused, and the nearest that are not are named"
    )
    group.add_argument("--before", metavar="TIME", help=before)
    days = (
        f"retain what is less than N days behind the newest final window; {LEAST_DAYS} or more, as "
        f"the job takes readings that are up to {LEAST_DAYS - 1} days late"
    )
    group.add_argument("--days", type=int, metavar="N", help=days)


def forget_rows(arguments: argparse.Namespace) -> str:
    """Delete what a person wants to be forgotten; return what is printed.

    Raises:
        UsageError: nothing was named, or a job runs on this machine.
        NotFound: the lake has nothing of that.
        DiskFull: its disk is full.
    """
    if not arguments.device and arguments.key is None:
        raise UsageError("lake forget: --device D or --key K is needed")
    try:
        before_us = None if arguments.before is None else typed_time(arguments.before)
    except ValueError:
        raise UsageError(
            f"--before: a time such as 2025-01-01T00:00:50, not {arguments.before!r}"
        ) from None
    tables = _lake_with_room(arguments.lake)
    wanted = Wanted(arguments.device, arguments.key, before_us)
    with no_job(tables):
        still = still_counted(tables, wanted)
        counts = forget(tables, wanted, fence=OpenTables(tables).claim)
    missing = (
        "until a job runs, all windows that these rows were part of are missing, also those that "
        "other devices are part of: start `lasp-edge cloud`, it makes them from the rest"
    )
    lines = [_counted(counts), missing]
    if still.names:
        lines.append(_still(arguments, still))
    return "\n".join([*lines, _left(wanted, program_of(tables))])


def _still(arguments: argparse.Namespace, still: StillCounted) -> str:
    """Return which windows without the key still count its readings, and what to type."""
    devices = ", ".join(still.devices[:_FEW_DEVICES]) or "each device that had it"
    if len(still.devices) > _FEW_DEVICES:
        devices += f" and {len(still.devices) - _FEW_DEVICES:,} more"
    words = ["--lake", arguments.lake, "--device", "D"]
    words += [] if arguments.before is None else ["--before", arguments.before]
    return (
        f"not deleted: what has no key {arguments.key!r} still counts these readings, if it is "
        f"made of the same events: {', '.join(still.names)}; type `lasp-edge lake forget "
        f"{shlex.join(words)}` for D = {devices}: that deletes all that the device measured, also "
        "under other keys"
    )


def _left(wanted: Wanted, program: str | None) -> str:
    """Return the other places of the deleted data, and the commands that delete it there."""
    if wanted.device:
        return (
            f"{wanted.device} has its own store, and the broker its last values: "
            f"`{retire_command(wanted.device, program)}` keeps them out; deleting its --data-dir "
            "is left. The logs of landers have its last messages until they have landed the next "
            "ones"
        )
    return (
        "devices keep what they measured of it for 7 days, or their --retain-days, and the logs of "
        "landers the last messages until they have landed the next ones"
    )


def retain_days(arguments: argparse.Namespace) -> str:
    """Delete what is old; return what is printed.

    Raises:
        UsageError: the days were not named, or are so few that late readings would find no panes.
        DiskFull: the lake's disk is full.
    """
    if arguments.days is None or arguments.days < LEAST_DAYS:
        raise UsageError(
            f"lake retain: --days N is needed, {LEAST_DAYS} or more: the job takes readings that "
            f"are up to {LEAST_DAYS - 1} days late, and needs all panes of their windows"
        )
    tables = _lake_with_room(arguments.lake)
    return _counted(retain(tables, arguments.days))


def upgraded(arguments: argparse.Namespace) -> str:
    """Carry a lake over to the present format; return what is printed.

    Raises:
        UsageError: a job or a lander of this machine runs, or the format is not known.
        DiskFull: the lake's disk is full.
    """
    tables = _lake_with_room(arguments.lake)
    if is_locked(tables, f"{tables.log}/{LANDER_LOCK}"):
        raise UsageError("a lander writes to this lake: stop it, and start it again afterwards")
    with no_job(tables):
        rows = upgrade(tables)
    if not rows:
        return f"{tables.root} has the format {FORMAT} already"
    return (
        f"{tables.root} has the format {FORMAT} now; {rows:,} rows were rewritten; start "
        "lander and job again"
    )


def _lake_with_room(place: str) -> LakeTables:
    """Return a lake that is there and has room: what ends half way leaves rows that lack others.

    Raises:
        NotFound: the lake is not there.
        DiskFull: its disk is full.
    """
    tables = LakeTables(place)
    tables.table(tables.landing)
    need_room(tables)
    return tables


def _counted(counts: Mapping[str, int]) -> str:
    some = [f"{rows:,} rows of {name}" for name, rows in counts.items() if rows]
    return f"deleted: {', '.join(some) or 'nothing, there are no such rows'}"


@contextmanager
def no_job(tables: LakeTables) -> Iterator[None]:
    """Keep a job off a lake of this machine while the block lasts."""
    if not tables.is_local:
        yield
        return
    with Path(tables.root, JOB_LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                "a job merges into this lake: stop it, and start it again afterwards; landers "
                "and devices may go on"
            ) from None
        yield
