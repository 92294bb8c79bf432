"""What the results in a lake mean, kept in the lake itself (table `programs`).

Readers print a mean, not its count and total, and must not need the program for that. So each
window and dynamic fold has a row here with its fold, resolution and stream; the newest `revision`
counts. Rows of `windows` and `globals` carry the stream that they were made from, so rows
of an older definition of the same name are left out.
"""

import json
import logging
from collections import defaultdict
from pathlib import Path
from shlex import quote
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from cloud_tier.lake.coverage import host_us
from cloud_tier.lake.query import gone, in_one_line, selected
from cloud_tier.lake.room import need_room
from cloud_tier.lake.shared import SharedMeaning, described, meaning_of, stored
from cloud_tier.lake.tables import PROGRAMS, LakeTables, arrow_schema
from cloud_tier.lake.torn import mend_tables
from lasp_edge.errors import EnvironmentLacks, NotFound, UsageError
from lasp_edge.language.described import WINDOW, ResultDefinition, definition_of, descriptions
from lasp_edge.language.plan import Plan
from lasp_edge.language.summary import NO_SUMMARY, ProgramSummary, RanProgram

log = logging.getLogger(__name__)

SHARED = "shared"
PROGRAM: Final = "program"
"""The kind of the row with the summary of the program."""
_SINCE: Final = "since_us"
_MADE: Final = "lasp-edge.made"
"""The property of `windows` that has the definitions of which its rows were last made, as JSON."""

Known = dict[tuple[str, str], tuple[int, str]]
"""(kind, name) -> (revision, description) of the newest definitions."""


def is_made(lake: LakeTables) -> bool:
    """Return whether a start has made a lake here; one of its tables may be gone since.

    Raises:
        DeltaError, OSError: its store does not answer.
    """
    return any(map(DeltaTable.is_deltatable, (lake.programs, lake.landing)))


def prepare(plan: Plan, lake: LakeTables, begun: Path | None = None) -> bool:
    """Make a lake ready for a program: its tables, and what the results in them mean.

    Args:
        plan: of the program.
        lake: its tables are made where they are missing.
        begun: a lander's log with segments of the lake. A disk that is not mounted leaves an empty
            directory in its place, so then no lake is made.

    Returns:
        Whether it has made a new lake.

    Raises:
        UsageError: the lake holds another program's results, or has another format; nothing was
            written then.
        EnvironmentLacks: it cannot be written; the disk may be full. Or it is gone.
    """
    lake.make_place()
    try:
        need_room(lake)
        is_new = not is_made(lake)
        if is_new and begun is not None:
            raise EnvironmentLacks(_gone(lake, begun))
        for torn in mend_tables(lake):
            log.warning("%s", torn)
        if DeltaTable.is_deltatable(lake.programs):
            _check_program(plan, lake, newest_definitions(lake))
        own = (plan.stream_results.values(), plan.parameters, plan.item_streams.values())
        lake.create(plan.columns, *own)
        record(plan, lake)
    except (DeltaError, OSError) as error:
        why = f"--lake {lake.root} cannot be written: {in_one_line(error)}"
        raise EnvironmentLacks(why) from error
    return is_new


def _gone(lake: LakeTables, log_: Path) -> str:
    aside = f"mv {quote(str(log_))} {quote(f'{log_}.former')}"
    begin = f"to begin a new one, type: {aside} (devices send again what they keep)"
    return f"{gone(lake.root)}, and the log {log_} has segments of it; {begin}"


def program_of(lake: LakeTables) -> str | None:
    """Return the name of the program whose results the lake holds; None before there are any."""
    programs = {json.loads(text)["program"] for _, text in newest_definitions(lake).values()}
    return min(programs, default=None)


def retire_command(device: str, program: str | None) -> str:
    """Return what to type to retire a device.

    Args:
        device: its name; DEVICE for whichever it is.
        program: of the lake, which is the fleet's name unless its parts run with `--fleet`.

    >>> retire_command("pi-1", "rooms")
    'lasp-edge retire pi-1 --fleet rooms --broker URL'
    """
    fleet = "NAME" if program is None else quote(program)
    return f"lasp-edge retire {quote(device)} --fleet {fleet} --broker URL"


def ran(root: str) -> RanProgram:
    """Return the program whose results a lake holds.

    Raises:
        NotFound: there is no such lake, or it cannot be read.
    """
    texts = [
        t for (kind, _), (_, t) in newest_definitions(LakeTables(root)).items() if kind == PROGRAM
    ]
    if not texts:
        raise NotFound(f"{root}: {NO_SUMMARY.format('lander')}")
    return RanProgram(f"the lake {root}", ProgramSummary.from_text(json.loads(texts[0])["summary"]))


def record(plan: Plan, lake: LakeTables) -> None:
    """Write the program's definitions where they are new or differ from the newest.

    Raises:
        UsageError: the lake holds another program's results.
    """
    known, known_us = newest_definitions(lake), since_us(lake)
    _check_program(plan, lake, known)
    fresh = []
    texts = [
        (kind, name, json.dumps(description, ensure_ascii=False))
        for kind, name, description in descriptions(plan)
    ]
    texts += [(SHARED, each.name, described(each, plan.name)) for each in stored(plan)]
    summary = {"program": plan.name, "summary": ProgramSummary.of(plan).text}
    texts.append((PROGRAM, plan.name, json.dumps(summary, ensure_ascii=False)))
    for kind, name, text in texts:
        revision, before = known.get((kind, name), (-1, ""))
        if text == before:
            continue
        since = known_us.get(name)
        stream = json.loads(text).get("stream")
        if kind == WINDOW and known and json.loads(before or "{}").get("stream") != stream:
            since = host_us()
            log.warning(
                "the window %r is %s: rows that begin before now may lack readings, also where "
                "they are final (`covered` is false); see `lasp-edge lake plan`",
                name,
                "defined otherwise than before" if before else "new",
            )
        fresh.append((kind, name, revision + 1, text, since if kind == WINDOW else None))
    if fresh:
        columns = dict(zip(PROGRAMS, map(list, zip(*fresh, strict=True)), strict=True))
        table = pa.table(columns, schema=arrow_schema(PROGRAMS))
        write_deltalake(lake.programs, table, mode="append")


def outdated_windows(plan: Plan, lake: LakeTables) -> list[str]:
    """Return the windows of a program of which the lake may lack rows of the present definition.

    A lander may have written the definition, or a job that was killed: so this does not depend on
    who wrote it, but on what a job noted when it had made the rows.
    """
    text = lake.table(lake.windows).metadata().configuration.get(_MADE)
    if text is not None:
        made = json.loads(text)
        return [
            name for name, window in plan.windows.items() if made.get(name) != window.definition
        ]
    known: dict[str, set[int]] = defaultdict(set)
    query = f"SELECT name, description FROM source WHERE kind = '{WINDOW}'"  # noqa: S608 - ours
    for row in selected(lake.table(lake.programs), query).to_pylist():
        described = definition_of(WINDOW, row["name"], json.loads(row["description"]))
        known[row["name"]].add(described.definition)
    return [name for name, window in plan.windows.items() if known[name] - {window.definition}]


def note_made(plan: Plan, lake: LakeTables) -> None:
    """Note that the rows of all windows of a program were made as it defines them."""
    made = {name: window.definition for name, window in plan.windows.items()}
    alter = lake.table(lake.windows).alter
    alter.set_table_properties({_MADE: json.dumps(made)}, raise_if_not_exists=False)


def definitions(lake: LakeTables, kind: str) -> dict[str, ResultDefinition]:
    """Return the newest definitions of a kind by name.

    Raises:
        NotFound: there is no such lake.
    """
    found = {}
    for (kind_, name), (_, text) in sorted(newest_definitions(lake).items()):
        if kind_ == kind:
            found[name] = definition_of(kind, name, json.loads(text))
    return found


def shared_meanings(lake: LakeTables) -> dict[str, SharedMeaning]:
    """Return the newest definitions of shared variables by name.

    Raises:
        NotFound: there is no such lake.
    """
    newest = sorted(newest_definitions(lake).items())
    return {name: meaning_of(name, text) for (kind, name), (_, text) in newest if kind == SHARED}


def _check_program(plan: Plan, lake: LakeTables, known: Known) -> None:
    others = {json.loads(text)["program"] for _, text in known.values()} - {plan.name}
    if others:
        raise UsageError(
            f"{lake.root} holds results of the program {min(others)!r}; give {plan.name!r} "
            "a --lake of its own"
        )


def since_us(lake: LakeTables) -> dict[str, int]:
    """Return since when the lake has the present stream of windows that came later, by name."""
    found: dict[str, tuple[int, int]] = {}
    table = lake.table(lake.programs)
    if _SINCE not in {field.name for field in table.schema().fields}:
        return {}  # an earlier release made it
    query = f"SELECT name, revision, {_SINCE} FROM source WHERE kind = '{WINDOW}'"  # noqa: S608 - ours
    for row in selected(table, query).to_pylist():
        at = (row["revision"], row[_SINCE] or 0)
        found[row["name"]] = max(at, found.get(row["name"], at))
    return {name: at_us for name, (_, at_us) in found.items() if at_us}


def newest_definitions(lake: LakeTables) -> Known:
    """Return the newest description of each window, value and variable of a lake."""
    newest: Known = {}
    for row in selected(lake.table(lake.programs), "SELECT * FROM source").to_pylist():
        entry = (row["revision"], row["description"])
        at = (row["kind"], row["name"])
        newest[at] = max(entry, newest.get(at, entry))
    return newest
