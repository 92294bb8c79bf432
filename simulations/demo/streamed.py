"""The check of streams' results: the lake's rows, and the last ones of each device."""

from collections.abc import Iterable, Sequence
from typing import Any

from lasp_edge.language.declarations import StreamResult
from lasp_edge.language.streaming import row_parts, shown_parts
from lasp_edge.ordered.places import Place, place_text
from lasp_edge.ordered.said import SaidRow
from simulations.demo.evidence import Evidence, Finding, count_of, differs, holds
from simulations.demo.lake import Row
from simulations.oracle import rows

_EXAMPLES = 2


def rows_finding(evidence: Evidence, result: StreamResult) -> Finding:
    """Return whether a result's rows are those that follow from the readings, one after another."""
    right = rows(evidence.plan, result.name, evidence.all_readings())
    wrong, where = list[str](), "the last on the devices"
    if evidence.results is not None:
        wrong = _in_the_lake(result, evidence.results[result.name], right)
        where = f"in the lake and {where}"
    for device, told in evidence.device_rows.items():
        wrong += _on_a_device(result, device, told.get(result.name, ()), right)
    if wrong:
        more = f" and {len(wrong) - _EXAMPLES:,} more" if len(wrong) > _EXAMPLES else ""
        return differs(f"{result.name}: {'; '.join(wrong[:_EXAMPLES])}{more}")
    count = count_of(evidence, result.name)
    said = f"{result.name}: {len(right):,} rows, {where},"
    return holds(f"{said} equal the recomputation from {count:,} readings")


def _in_the_lake(
    result: StreamResult, stored: Sequence[Row], right: dict[tuple[str, Place], SaidRow]
) -> list[str]:
    expected = {
        (device, place_text(place)): (row.key, row.parts) for (device, place), row in right.items()
    }
    held = {
        (row["device"], row["place"]): (row["key"], tuple(row[name] for name in result.columns))
        for row in stored
        if row["present"]
    }
    places = expected.keys() | held.keys()
    differing = sorted(at for at in places if expected.get(at) != held.get(at))
    return [
        f"the lake has {held.get(at, 'nothing')} at {at}, and right is "
        f"{expected.get(at, 'nothing')}"
        for at in differing
    ]


def _on_a_device(
    result: StreamResult,
    device: str,
    told: Iterable[dict[str, Any]] | Sequence[Row],
    right: dict[tuple[str, Place], SaidRow],
) -> list[str]:
    names = [name for name, _ in result.parts]
    held = [row for row in told if all(name in row for name in names)]
    own = sorted((place, row) for (of, place), row in right.items() if of == device)
    last = own[len(own) - len(held) :]
    expected = [
        {"key": row.key, "time_us": place[0]}
        | shown_parts(result, row_parts(result, row.parts or ()))
        for place, row in last
    ]
    found = [{name: row[name] for name in ("key", "time_us", *names)} for row in held]
    if found == expected and (held or not own):
        return []
    return [f"{device} has {found[-1:]}, and right is {expected[-1:] or own[-1:]}"]
