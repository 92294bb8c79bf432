"""The broker, and what it knows of the fleet: which names there are, and what they run."""

from collections.abc import Iterator

from crdts import Replica
from device_agent.agent.fleet.commands import retired_notice
from device_agent.agent.fleet.programs import other_programs
from device_agent.agent.state.store import FILE_NAME, existing_store
from device_agent.console.belonging import is_used
from device_agent.console.command.checkup.result import CheckResult, Level, Subject, skipped
from device_agent.console.command.line import named
from device_agent.console.view.devices import Sighting
from lasp_edge.errors import CommandError
from lasp_edge.release import RELEASE
from lasp_edge.tool.broker_options import broker_of


def broker(subject: Subject) -> Iterator[CheckResult]:
    """Whether the broker takes this device, with its password and certificate."""
    arguments = subject.wanted.arguments
    if not arguments.broker:
        yield skipped("--broker URL")
        return
    if subject.contact.trouble:
        yield CheckResult(Level.WRONG, subject.contact.trouble)
        return
    url = broker_of(arguments, subject.wanted.environment)
    says = f"{url} takes us{'' if url.user else ', without a user'}"
    if not subject.contact.is_cut_off:
        yield CheckResult(Level.OK, says)
    elif subject.data_dir is not None and is_used(subject.data_dir):
        yield CheckResult(Level.OK, f"{says}, one after the other with the agent that runs here")
    else:
        more = f"and then somebody else as user {url.user!r}: let each device have its own user"
        yield CheckResult(Level.WRONG, f"{says}, {more}; a running agent is named by --data-dir")


def name(subject: Subject) -> Iterator[CheckResult]:
    """Whether no other agent has this device's name, and nobody has retired it."""
    device, known = subject.wanted.arguments.device, subject.contact.devices
    if known is not None and device in known.commands.membership.retired:
        url = broker_of(subject.wanted.arguments, subject.wanted.environment)
        plain = str(url._replace(user=None, password=None))
        yield CheckResult(Level.WRONG, retired_notice(device, known.topics.fleet, plain))
    if not device or subject.data_dir is None or known is None:
        yield skipped("--device NAME, --data-dir DIR, MODULE:PROGRAM and a --broker that answers")
        return
    seen, mine = known.seen(device), _newest_life(subject)
    others = sorted(known.online_lives.get(device, set()) - {mine})
    if others:
        says = f"another agent of the name {device!r} is connected (its start {others[-1][0]})"
        yield CheckResult(Level.WRONG, f"{says}; give one of the two another --device")
    elif seen is not None and not _is_known(seen, mine):
        says = f"a device {device!r} was here with another store (its start {seen.replica[0]})"
        more = "fine if that was this one before its data was lost, else choose another --device"
        yield CheckResult(Level.WARNING, f"{says}: {more}")
    else:
        yield CheckResult(Level.OK, f"no other agent has the name {device!r}")


def fleet(subject: Subject) -> Iterator[CheckResult]:
    """Whether all devices run the same program and release."""
    plan, known = subject.plan, subject.contact.devices
    if plan is None or known is None:
        yield skipped("MODULE:PROGRAM and a --broker that answers")
        return
    sightings = {each: known.seen(each) for each in known.counting}
    runs = {
        each: seen.runs
        for each, seen in sightings.items()
        if seen and seen.runs[0] and each != subject.wanted.arguments.device
    }
    others = other_programs(runs, (plan.digest, RELEASE))
    if others:
        words = [f"{device} runs {what}" for device, what in others.items()]
        says = f"{named(words)}; here it is {plan.digest}, release {RELEASE}"
        more = "bring the same files to all, and start their agents again"
        yield CheckResult(Level.WARNING, f"{says}: {more}")
        return
    many = f"{len(runs)} other device{'s run' if len(runs) != 1 else ' runs'}"
    says = f"{many} the same program and release" if runs else "no other device was heard"
    yield CheckResult(Level.OK, f"{says} in fleet {known.topics.fleet!r}")


def _newest_life(subject: Subject) -> Replica | None:
    """Return the newest life of the agent whose data directory this is."""
    directory = subject.data_dir
    if directory is None or not (directory / FILE_NAME).is_file():
        return None
    try:
        store = existing_store(directory)
    except (CommandError, OSError):
        return None
    known = store.replica()
    store.close()
    return Replica(*known) if known else None


def _is_known(seen: Sighting, mine: Replica | None) -> bool:
    return mine is not None and seen.replica <= mine
