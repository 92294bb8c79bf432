"""The options, the program and the data directory: whether an agent can start with them."""

import errno
import getpass
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryFile

from device_agent.agent.changes import Facts
from device_agent.agent.panes.undelivered import NO_LONGER_THERE, undelivered_by_sink
from device_agent.agent.state.store import FILE_NAME, existing_store
from device_agent.agent.stored_rows import Undelivered
from device_agent.console.belonging import need_own
from device_agent.console.command import run_agent
from device_agent.console.command.checkup.machine import nearest
from device_agent.console.command.checkup.result import CheckResult, Level, Subject, skipped
from device_agent.console.configuration.agent_options import settings_of
from device_agent.console.configuration.alert_options import caller_of
from device_agent.storage.damage import damaged_files, deletion_line, kept_bytes
from lasp_edge.errors import CommandError
from lasp_edge.release import RELEASE


def options(subject: Subject) -> Iterator[CheckResult]:
    """Whether an agent takes these options."""
    wanted = subject.wanted
    try:
        if wanted.arguments.config:
            run_agent.need(wanted)
        settings_of(wanted.arguments)
        caller_of(wanted.arguments, Random(0))
    except (CommandError, ValueError) as error:
        yield CheckResult(Level.WRONG, wanted.placed(str(error)))
        return
    from_file = f", of {wanted.arguments.config}" if wanted.arguments.config else ""
    yield CheckResult(Level.OK, f"an agent takes these options{from_file}")


def program(subject: Subject) -> Iterator[CheckResult]:
    """Whether the program can be loaded."""
    if subject.plan is None:
        trouble = subject.plan_trouble
        yield CheckResult(Level.WRONG, trouble) if trouble else skipped("MODULE:PROGRAM")
        return
    plan = subject.plan
    says = f"{plan.name} ({plan.digest}), release {RELEASE}; its laws: lasp-edge check"
    yield CheckResult(Level.OK, f"{says} {subject.wanted.arguments.program}")


def data(subject: Subject) -> Iterator[CheckResult]:
    """Whether the data directory can be written, and is of this device and program."""
    directory = subject.data_dir
    if directory is None:
        yield skipped("--data-dir DIR")
        return
    refused = _refused(nearest(directory))
    if refused is not None:
        quoted, me = shlex.quote(str(directory.absolute())), shlex.quote(getpass.getuser())
        is_full = refused.errno in {errno.ENOSPC, errno.EDQUOT}
        yield CheckResult(
            Level.WRONG,
            f"{directory} cannot be written by {getpass.getuser()}: {refused.strerror or refused}",
            f"df -h {shlex.quote(str(nearest(directory)))}"
            if is_full
            else f"sudo mkdir -p {quoted} && sudo chown -R {me} {quoted}",
        )
        return
    if not (directory / FILE_NAME).exists():
        yield CheckResult(Level.OK, f"{directory} can be written, and is still empty")
        return
    yield from _store(subject, directory)


def _refused(place: Path) -> OSError | None:
    """Return why nothing can be written at a place; None where it can."""
    try:
        with TemporaryFile(dir=place) as file:
            file.write(b"\0")
    except OSError as error:
        return error
    return None


def _store(subject: Subject, directory: Path) -> Iterator[CheckResult]:
    try:
        store = existing_store(directory)
    except (CommandError, OSError) as error:
        yield CheckResult(Level.WRONG, str(error))
        return
    restored, known, undelivered = store.restored(), store.replica(), store.undelivered()
    store.close()
    device = subject.wanted.arguments.device or (known[2] if known else "")
    try:
        need_own(directory, known, restored.facts.program, device, subject.plan)
    except ValueError as error:
        yield CheckResult(Level.WRONG, str(error))
        return
    says = f"{directory} is of device {device}"
    says += f" and program {restored.facts.program}" if restored.facts.program else ""
    yield CheckResult(Level.OK, f"{says}; incarnation {known[0] if known else 0}")
    for files in damaged_files(directory / FILE_NAME):
        yield CheckResult(
            Level.WARNING,
            f"{files[0]} was damaged and put aside, {kept_bytes(files):,} bytes; no agent reads it",
            deletion_line(files),
        )
    if restored.facts.clock:
        yield CheckResult(Level.WARNING, f"the agent says: {restored.facts.clock}", "timedatectl")
    for notice in (*(restored.facts.mixed or ()), *(restored.facts.notices or ())):
        yield CheckResult(Level.WARNING, f"the agent says: {notice}")
    yield from _refusals(restored.facts, undelivered)


def _refusals(facts: Facts, undelivered: Sequence[Undelivered]) -> Iterator[CheckResult]:
    """Yield what landers and gateways refuse of this device, and why."""
    sinks = undelivered_by_sink(facts.sinks or (), undelivered, facts.streams or ())
    for name, sink in sinks.items():
        for reason, count in sink["not_taken"].items():
            entries = "entry is" if count == 1 else "entries are"
            if reason != NO_LONGER_THERE:
                says = f"{count} pane {entries} refused by {name}: {reason}"
                yield CheckResult(Level.WARNING, says)
