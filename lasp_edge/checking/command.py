"""Check the laws on a program's folds, and warn of functions that changed.

The first line is the verdict. Each law is tried on small cases and on drawn ones; a fold that
breaks it is shown with the smallest counter-example that was found, and --laws prints all.
TimedValues are written lift(value in steps, time in microseconds).

`check` warns of a key, a handler or a fold of your own whose text changed while its version stayed:
what it makes now would be added to what it made before. The texts are remembered, as hashes without
comments and layout, in .lasp-edge-check.json of the current directory; commit that file.

It also finds keys and handlers that take another number of arguments than agents give them,
functions that remember something from call to call or see the last turn of the loop that made them,
folds and scans of your own that do not name an argument, and warns of handlers of events that read
what a fold is worth, of scans that compare several meters for want of a key, of two units in one
sum, and of alerts that no value can reach. Then it runs keys, handlers, filters and reactions on
made-up readings, says which fail, and which tags readings must have. Then the whole program runs on
two virtual devices and a lander, and each window, row, value and alert is compared with a plain
recomputation, which runs once more in another process: with another hash seed, clock, host name,
directory, time zone and order of readings. Functions that switch something on do so here, too;
--no-run leaves them alone.

  lasp-edge check greenhouse:program

Streams are run on made-up readings, too: whether each function gives the same when it is called
again, what a late reading costs each scan, and whether one names the time, chance, or functions of
`math` that machines round differently. With --recording FILE it also warns where more than 1 % of
the readings of an event have the time of another one: their order is that of tags and values.
--time, --device-field, --retract and --event NAME=FIELD name the fields of its records. Of a
scans.Synchronised the laws of its share and join are tried on states that made-up events reach; the
smallest case that breaks one is shown, with what to write.

With --against it tries nothing, and says what becomes of the data of a fleet that runs another
program: what is kept, converted, set aside, lost, made again of kept readings or sent again, and
what devices of both do meanwhile. The other program is a file, or what an agent's --data-dir, a
gateway's or a lake has run, each found by what is in the directory.

  lasp-edge check greenhouse:program --against former/greenhouse.py
  lasp-edge check greenhouse:program --against ~/lasp/data
  lasp-edge check greenhouse:program --against --lake s3://bucket/lake

With --plan it tries nothing and prints one line for each window and fold: its stream id,
pane, keys, columns and fingerprint. Where the lines are equal, a changed program goes on with the
stores and the lake that it had. Of a scans.Synchronised it prints each choice of events that must
be in order across devices, and with --recording FILE what each would cost in bytes a day.

Exit codes: 0 every law holds, 1 one is broken or something cannot work (or, with --strict, there
is a warning), 2 or 3 the program cannot be loaded.
"""

import argparse
import io
from contextlib import redirect_stdout
from pathlib import Path

from lasp_edge.checking import record
from lasp_edge.checking.against import changed_texts, changes
from lasp_edge.checking.choices import choices
from lasp_edge.checking.endless import EndlessCallError, limited
from lasp_edge.checking.former import is_place, program_in, program_in_lake
from lasp_edge.checking.handlers import uncallable
from lasp_edge.checking.identities import identities
from lasp_edge.checking.looks import looked_at, odd_values
from lasp_edge.checking.mixtures import mixtures
from lasp_edge.checking.programs import EXAMPLES, folds_of, verdicts
from lasp_edge.checking.scans import written
from lasp_edge.checking.texts import texts_of
from lasp_edge.checking.ties import RecordFields, need_device, ties
from lasp_edge.checking.trial import Findings
from lasp_edge.checking.whole import all_tried
from lasp_edge.errors import CommandError, Exit, UsageError
from lasp_edge.language.plan import Plan
from lasp_edge.language.summary import ProgramSummary, RanProgram
from lasp_edge.reasons import reason_of
from lasp_edge.tool.announcing import announced
from lasp_edge.tool.loading import load_other, load_plan

SECTION = "begin"

_TEXTLESS = (
    "no text of a function is stored: whether keys, handlers and folds mean the same under one "
    "version is compared with --against FILE.py"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add = parser.add_argument
    add("program", metavar="MODULE:PROGRAM", help="the program, found as uvicorn finds an app")
    add("--examples", type=int, default=EXAMPLES, metavar="N", help="cases to draw for each law")
    add("--seed", type=int, default=0, help="of the draws")
    add(
        "--record", type=Path, default=Path(record.DEFAULT), metavar="FILE", help="remembered texts"
    )
    add("--no-record", action="store_true", help="neither warn of changed texts nor remember any")
    add(
        "--accept", action="store_true", help="remember changed texts: they mean the same as before"
    )
    add(
        "--laws",
        action="store_true",
        help="print all laws, not the broken ones alone",
    )
    add(
        "--against",
        nargs="?",
        const="",
        metavar="FILE.py|DIR",
        help="say what becomes of the data of a fleet that runs this former program: a file, "
        "FILE.py:PROGRAM, MODULE:PROGRAM, or the directory of an agent, a gateway or a lake",
    )
    add("--lake", metavar="DIR", help="of --against: a lake, which may be in an object store")
    add(
        "--plan",
        action="store_true",
        help="only print what identifies its windows and folds, and choices of order",
    )
    add("--no-run", action="store_true", help="run no key and no handler on made-up readings")
    add(
        "--tag",
        action="append",
        metavar="NAME=VALUE",
        help="made-up readings have these tags alone (default: whatever functions ask for)",
    )
    add("--recording", type=Path, metavar="FILE", help="JSON lines or CSV: are times fine enough?")
    add("--time", default="ts", metavar="FIELD", help="of its records (default: ts)")
    add("--device-field", metavar="FIELD", help="of its records (default: device)")
    add("--retract", default="", metavar="FIELD", help="says where it is true: taken back")
    add(
        "--event",
        action="append",
        default=[],
        metavar="NAME=FIELD",
        help="where its records have an event, e.g. t=data.temp (default: all, by their names)",
    )
    add("--strict", action="store_true", help="exit with 1 where there is a warning, too")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    if arguments.examples < 0:
        raise UsageError(f"--examples: a number from 0 is needed, not {arguments.examples}")
    tags = tags_typed(arguments.tag)
    _need_former(arguments)
    with limited():
        try:
            plan = load_plan(arguments.program)
        except EndlessCallError as error:
            raise UsageError(f"{arguments.program}: {reason_of(error)}") from None
    if arguments.plan or arguments.against is not None:
        return _describe(plan, arguments)
    with limited():
        try:
            return _check(plan, tags, arguments)
        except EndlessCallError as error:
            print(f"{_summary(0, 1, 0)}\nFAIL  {reason_of(error)}")  # noqa: T201
            return Exit.DIFFERS


def _check(plan: Plan, tags: dict[str, str] | None, arguments: argparse.Namespace) -> Exit:
    """Try the folds, look at the program, run it, and print what was found."""
    broken, endless, lines = _check_folds(plan, arguments)
    uncalled, seen = uncallable(plan), looked_at(plan)
    lines += seen.lines
    wrong, doubts, asked = endless + seen.wrong + uncalled, seen.doubts, {}
    if not endless and not uncalled and not arguments.no_run:
        found = _run_whole(plan, tags, arguments.program, is_lawful=not broken)
        wrong, doubts = wrong + found.wrong, doubts + found.doubts
        lines, asked = lines + _findings(found), found.tags
    doubts += mixtures(plan, asked) + ([] if arguments.no_run else odd_values(plan))
    if arguments.recording is not None and plan.streams:
        doubts += ties(plan, arguments.recording, _fields(plan, arguments))
    if not arguments.no_record:
        given = (plan, arguments.record, not (broken or wrong))
        doubts += _changed_texts(*given, accept=arguments.accept)
    warnings = len(doubts)
    lines += [f"FAIL  {line}" for line in wrong] + [f"WARNING  {line}" for line in doubts]
    print("\n".join([_summary(broken, len(wrong), warnings), *lines]))  # noqa: T201
    fails = broken or wrong or (warnings and arguments.strict)
    return Exit.DIFFERS if fails else Exit.FINE


@announced("lasp-edge check: tries the program on made-up readings; --no-run leaves that out")
def _run_whole(
    plan: Plan, tags: dict[str, str] | None, program: str, *, is_lawful: bool
) -> Findings:
    """Run the program, and say so if that takes long."""
    return all_tried(plan, tags, program, is_lawful=is_lawful)


def _need_former(arguments: argparse.Namespace) -> None:
    """Check that one former program is named, if any is.

    Raises:
        UsageError: there are two, or none.
    """
    if arguments.lake is not None and arguments.against != "":
        raise UsageError("--lake belongs to --against: write --against --lake DIR, and no file")
    if arguments.against == "" and arguments.lake is None:
        raise UsageError(
            "--against needs the former program: a file such as old.py, the directory of an agent, "
            "a gateway or a lake, or --lake s3://..."
        )


def _describe(plan: Plan, arguments: argparse.Namespace) -> Exit:
    """Print what identifies a program, and what becomes of the data of another one."""
    lines = [*identities(plan), *_choices(plan, arguments)] if arguments.plan else []
    lines += _against(plan, arguments) if arguments.against is not None else []
    print("\n".join(lines))  # noqa: T201
    return Exit.FINE


def _against(plan: Plan, arguments: argparse.Namespace) -> list[str]:
    """Return what becomes of the data that another program made, in a line each."""
    new, where = ProgramSummary.of(plan), arguments.against
    if where and not is_place(where):
        old = load_other(where)
        *found, kept = changes(ProgramSummary.of(old), new)
        texts = list(changed_texts(old, plan)) if old.name == plan.name else []
        if texts:
            kept = kept.replace("as it is:", "as it is, if the changed texts mean the same:", 1)
        return [*found, *texts, kept]
    ran: RanProgram = program_in(where) if where else program_in_lake(arguments.lake)
    notes = [*ran.notes, *[_TEXTLESS] * bool(texts_of(plan))]
    return [f"against {ran.whose}", *notes, *changes(ran.summary, new)]


def _choices(plan: Plan, arguments: argparse.Namespace) -> list[str]:
    """Return the lines of choices of events in order; the programs' own prints are not shown."""
    fields = _fields(plan, arguments)
    with redirect_stdout(io.StringIO()):
        return list(choices(plan, arguments.recording, fields))


def _fields(plan: Plan, arguments: argparse.Namespace) -> RecordFields:
    """Return which fields of a recording hold what.

    Raises:
        UsageError: an event is not written as NAME=FIELD, or the program has none of that name.
    """
    events = {}
    for text in arguments.event:
        event, _, field = text.partition("=")
        if not field:
            raise UsageError(f"--event NAME=FIELD is needed, such as t=temp, not {text!r}")
        if event not in plan.events:
            has = ", ".join(plan.events)
            raise UsageError(f"--event {event}: the program has only the events {has}")
        events[event] = field
    device = arguments.device_field
    if device and arguments.recording is not None:
        need_device(arguments.recording, device)
    return RecordFields(arguments.time, device or "device", events, arguments.retract)


def tags_typed(texts: list[str] | None) -> dict[str, str] | None:
    """Return the tags of the made-up readings; None where functions get those that they ask for.

    Raises:
        UsageError: they are not written as NAME=VALUE.
    """
    for text in texts or ():
        if not text.partition("=")[0] or "=" not in text:
            raise UsageError(f"--tag NAME=VALUE is needed, such as room=attic, not {text!r}")
    pairs = [text.partition("=") for text in texts or ()]
    return None if texts is None else {name: value for name, _, value in pairs}


def _findings(found: Findings) -> list[str]:
    """Return the cost of late readings, the tags of readings, and what nothing reached."""
    tags = [
        f"TAG   readings of {event} must have the tag {tag}: {', '.join(users)}"
        for event, tags in found.tags.items()
        for tag, users in tags.items()
    ]
    tags += [
        f"TAG   readings of {event} may have the tag {tag}, and functions can do without it"
        for event, spare in found.spare_tags.items()
        for tag in sorted(spare)
    ]
    costs = [f"COST  {line}" for line in found.costs]
    return [*costs, *tags, *[f"SKIP  {line}" for line in found.untried]]


def _check_folds(plan: Plan, arguments: argparse.Namespace) -> tuple[int, list[str], list[str]]:
    """Return how many laws are broken, folds that do not return, and the lines of broken laws.

    With --laws they are those of all laws.
    """
    broken, endless, lines = 0, list[str](), list[str]()
    for named in folds_of(plan):
        where = ", ".join(named.where)
        given = {"examples": arguments.examples, "seed": arguments.seed}
        try:
            with announced(f"lasp-edge check: tries the laws on {where}"):
                found = verdicts(named.fold, **given, plausible=named.plausible)
        except ValueError as error:
            raise CommandError(str(error)) from None
        except EndlessCallError as error:
            endless.append(f"{where}: {reason_of(error)}")
            continue
        shown = [each for each in found if arguments.laws or each.broken is not None]
        place = written(named.fold)
        lines += [f"{where}: {named.fold!r}" + f" ({place})" * bool(place)] if shown else []
        lines += [f"  {line}" for verdict in shown for line in verdict.lines()]
        broken += sum(verdict.broken is not None for verdict in found)
    return broken, endless, lines


def _changed_texts(plan: Plan, path: Path, is_sound: bool, *, accept: bool) -> list[str]:  # noqa: FBT001
    """Return a line for each function whose text changed and version did not; remember all.

    Texts of a program that cannot work are not remembered: nothing was made with them, and a
    function that is repaired means what it was to mean.
    """
    programs, texts = record.read(path), texts_of(plan)
    known = programs.get(plan.name, {})
    changed = [] if accept else record.changed(texts, known)
    now = record.remembered(texts, known, accept=accept)
    if now != known and is_sound:
        record.write(path, programs | {plan.name: now})
    return [
        f"{text.name}: its text changed, and version {text.version} did not. "
        f"Raise {text.remedy} if it means something else now; else --accept it."
        for text in changed
    ]


def _summary(broken: int, wrong: int, warnings: int) -> str:
    """Return the first line; laws hold only where everything works."""
    found = []
    if broken:
        found.append(f"{broken} broken law{'s' * (broken != 1)}")
    if wrong:
        found.append(f"{wrong} thing{'s' * (wrong != 1)} that cannot work")
    found = found or ["Every law holds"]
    return ", ".join(found + [f"{warnings} warning{'s' * (warnings != 1)}"] * bool(warnings)) + "."
