"""What the results in a lake mean, kept in the lake itself (table `programs`).

Readers print a mean, not its count and total, and must not need the program for that. So each
window and dynamic fold has a row here with its fold, resolution and stream, and each result of a
stream one with its parts and their steps; the newest `revision` counts. Rows of `windows`,
`globals` and `results` carry the stream that they were made from, so what an older
definition of the same name left is told apart.
"""

import json
import logging
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from cloud_tier.lake.query import in_one_line, selected
from cloud_tier.lake.shared import SharedMeaning, described, meaning_of, stored
from cloud_tier.lake.tables import PROGRAMS, LakeTables, arrow_schema
from cloud_tier.lake.torn import mend_tables
from lasp_edge import folds
from lasp_edge.errors import UsageError
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import Resolution
from lasp_edge.language.declarations import DynamicFold, StreamResult, Window
from lasp_edge.language.plan import Plan

log = logging.getLogger(__name__)

WINDOW = "window"
FOLD = "fold"
RESULT = "result"
SHARED = "shared"

Known = dict[tuple[str, str], tuple[int, str]]
"""(kind, name) -> (revision, description) of the newest definitions."""


class ResultDefinition(NamedTuple):
    """What a window, a dynamic fold or a result means.

    Attributes:
        kind: `WINDOW`, `FOLD` or `RESULT`.
        stream: the stream id of its rows.
        columns: the columns of its partial.
        binary: those of them that hold bytes.
        parts: the values that lowering gives.
        fold: what lowers them; None where the program wrote its own fold.
        size_us: length of a window, 0 for a fold.
        slide_us: distance of its starts, 0 for a fold.
        steps: of a result, the step of each part, or "text".
    """

    kind: str
    name: str
    stream: int
    columns: tuple[str, ...]
    binary: frozenset[str]
    parts: tuple[str, ...]
    fold: Fold | None
    resolution: Resolution
    size_us: int
    slide_us: int
    steps: tuple[str, ...] = ()


def prepare(plan: Plan, lake: LakeTables) -> list[str]:
    """Make a lake ready for a program: its tables, and what the results in them mean.

    Returns:
        The windows that were defined otherwise before.

    Raises:
        UsageError: the lake holds another program's results, has another format, or cannot be
            written; nothing was written then.
    """
    lake.make_place()
    try:
        for torn in mend_tables(lake):
            log.warning("%s", torn)
        if DeltaTable.is_deltatable(lake.programs):
            _check_program(plan, lake, _newest(lake))
        lake.create(plan.columns, plan.stream_results.values())
        return record(plan, lake)
    except (DeltaError, OSError) as error:
        raise UsageError(f"--lake {lake.root} cannot be written: {in_one_line(error)}") from error


def program_of(lake: LakeTables) -> str | None:
    """Return the name of the program whose results the lake holds; None before there are any."""
    programs = {json.loads(text)["program"] for _, text in _newest(lake).values()}
    return min(programs, default=None)


def record(plan: Plan, lake: LakeTables) -> list[str]:
    """Write the program's definitions where they are new or differ from the newest.

    Returns:
        The windows that were defined otherwise before.

    Raises:
        UsageError: the lake holds another program's results.
    """
    known = _newest(lake)
    _check_program(plan, lake, known)
    fresh, changed = [], []
    texts = [
        (kind, name, json.dumps(description, ensure_ascii=False))
        for kind, name, description in _described(plan)
    ]
    texts += [(SHARED, each.name, described(each, plan.name)) for each in stored(plan)]
    for kind, name, text in texts:
        revision, before = known.get((kind, name), (-1, ""))
        if text == before:
            continue
        fresh.append((kind, name, revision + 1, text))
        if before and kind == WINDOW:
            changed.append(name)
    if fresh:
        columns = dict(zip(PROGRAMS, map(list, zip(*fresh, strict=True)), strict=True))
        table = pa.table(columns, schema=arrow_schema(PROGRAMS))
        write_deltalake(lake.programs, table, mode="append")
    return changed


def definitions(lake: LakeTables, kind: str) -> dict[str, ResultDefinition]:
    """Return the newest definitions of a kind by name.

    Raises:
        NotFound: there is no such lake.
    """
    found = {}
    for (kind_, name), (_, text) in sorted(_newest(lake).items()):
        if kind_ == kind:
            found[name] = _definition(kind, name, json.loads(text))
    return found


def shared_meanings(lake: LakeTables) -> dict[str, SharedMeaning]:
    """Return the newest definitions of shared variables by name.

    Raises:
        NotFound: there is no such lake.
    """
    newest = sorted(_newest(lake).items())
    return {name: meaning_of(name, text) for (kind, name), (_, text) in newest if kind == SHARED}


def _check_program(plan: Plan, lake: LakeTables, known: Known) -> None:
    others = {json.loads(text)["program"] for _, text in known.values()} - {plan.name}
    if others:
        raise UsageError(
            f"{lake.root} holds results of the program {min(others)!r}; give {plan.name!r} "
            "a --lake of its own"
        )


def _newest(lake: LakeTables) -> Known:
    newest: Known = {}
    for row in selected(lake.table(lake.programs), "SELECT * FROM source").to_pylist():
        entry = (row["revision"], row["description"])
        at = (row["kind"], row["name"])
        newest[at] = max(entry, newest.get(at, entry))
    return newest


def _described(plan: Plan) -> Iterator[tuple[str, str, dict[str, object]]]:
    for window in plan.windows.values():
        sizes = {"size_us": window.size_us, "slide_us": window.slide_us}
        yield WINDOW, window.name, _description(plan, window) | sizes
    for fold in plan.dynamic_folds.values():
        yield FOLD, fold.name, _description(plan, fold) | {"size_us": 0, "slide_us": 0}
    for made in plan.stream_results.values():
        yield RESULT, made.name, _rows_description(plan, made)


def _rows_description(plan: Plan, result: StreamResult) -> dict[str, object]:
    return {
        "program": plan.name,
        "stream": result.stream,
        "columns": list(result.columns),
        "parts": [name for name, _ in result.parts],
        "steps": [step for _, step in result.parts],
    }


def _description(plan: Plan, result: Window | DynamicFold) -> dict[str, object]:
    described = {
        "program": plan.name,
        "stream": result.stream,
        "columns": list(result.fold.columns_named),
        "parts": list(result.fold.parts),
        "fold": result.fold.description(),
        "resolution": result.resolution.text,
    }
    binary = [column.name for column in result.fold.columns if column.binary]
    return described | ({"binary": binary} if binary else {})


def _definition(kind: str, name: str, plain: dict[str, Any]) -> ResultDefinition:
    resolution = Resolution(plain.get("resolution", "1"))
    fold = folds.fold_of(plain["fold"]) if "fold" in plain else None
    return ResultDefinition(
        kind,
        name,
        plain["stream"],
        tuple(plain["columns"]),
        frozenset(plain.get("binary", ())),
        tuple(plain["parts"]),
        None if fold is None else fold.at(resolution),
        resolution,
        plain.get("size_us", 0),
        plain.get("slide_us", 0),
        tuple(plain.get("steps", ())),
    )
