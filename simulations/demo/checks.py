"""The demo's checks (a) to (d): each compares a table with the right one, exactly, row by row.

The devices' values come from their reports, merged rows from the commands that print them, and the
right ones from `simulations.oracle`. A value without `key=` has the one key "".
"""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any, NamedTuple

from crdts import BoundedLWWSet
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import decimals
from lasp_edge.language.declarations import DynamicFold, StreamResult, Window
from lasp_edge.ordered.places import place_text
from lasp_edge.tool.screen import in_words, number
from simulations.demo.devices import Value, by_key
from simulations.demo.evidence import Evidence, Finding, Row, differs, holds, newest
from simulations.demo.finality import settings_finding, waiting_finding
from simulations.demo.settings import log_of
from simulations.oracle import dynamic_partials, left_out, rows, windows

Table = Mapping[tuple[Any, ...], Row]
"""The rows of a value, a window or a result, by their identity."""

_MOST_FINDINGS = 3
_WIDTH = 79
_INDENT = " " * 12
_STATE = frozenset({"settled", "except", "devices", "parts"})
"""Names in the report of a value that are no exact columns."""
_DIGEST = 16


class Verdict(NamedTuple):
    """The outcome of a check.

    Attributes:
        letter: which check.
        ok: whether it holds; None where there was nothing to check.
        text: the outcome with its numbers.
    """

    letter: str
    ok: bool | None
    text: str

    def lines(self) -> list[str]:
        """Return it for people, on lines that fit a terminal."""
        word = {True: "ok", False: "DIFFERS", None: "-"}[self.ok]
        text = f"({self.letter}) {word:8}{self.text}"
        return wrap(text, _WIDTH, subsequent_indent=_INDENT, break_long_words=False)


def verdicts(evidence: Evidence) -> list[Verdict]:
    """Return the verdicts (a) to (d), and of parameters, (f), and of windows that wait, (g)."""
    plan = evidence.plan
    folds = plan.dynamic_folds.values()
    reported = {name for values in evidence.values.values() for name in values}
    derived = sorted(reported - plan.dynamic_folds.keys() - plan.local_folds.keys())
    checks = {
        "a": [_agreement(evidence, name) for name in (*plan.dynamic_folds, *derived)],
        "b": [_recomputation(evidence, fold) for fold in folds],
        "c": [_in_the_lake(evidence, fold) for fold in folds],
        "d": [
            *_not_measured(evidence),
            *(_windows(evidence, window) for window in plan.windows.values()),
            *(_results(evidence, result) for result in plan.stream_results.values()),
        ],
    }
    if evidence.settings:
        checks["f"] = [settings_finding(evidence)]
    if evidence.wait_s is not None:
        checks["g"] = [waiting_finding(evidence, evidence.wait_s)]
    return [_joined(letter, found) for letter, found in checks.items()]


def _joined(letter: str, findings: Sequence[Finding]) -> Verdict:
    """Return one verdict: the differences where there are some, else everything."""
    if not findings:
        what = "window" if letter == "d" else "fleet-wide value"
        return Verdict(letter, None, f"nothing to check: the program has no {what}")
    outcomes = {finding.ok for finding in findings}
    ok = False if False in outcomes else True if True in outcomes else None
    shown = [finding.text for finding in findings if finding.ok is ok]
    shown += [finding.text for finding in findings if ok and finding.ok is None]
    more = len(shown) - _MOST_FINDINGS
    texts = shown[:_MOST_FINDINGS]
    texts += [f"and {more} more {'differ' if ok is False else 'alike'}"] * (more > 0)
    return Verdict(letter, ok, "; ".join(texts))


def compared(name: str, found: Table, right: Table, done: str, whose: str = "right is") -> Finding:
    """Return whether a table is right, with the text `done`; else how it differs.

    >>> compared("t", {("a",): {"n": 7}}, {("a",): {"n": 8}, ("b",): {"n": 1}}, "fine").text
    't: 2 of 2 rows differ: at a there is n 7, and right is n 8'
    """
    places = found.keys() | right.keys()
    wrong = sorted(at for at in places if found.get(at) != right.get(at))
    if not wrong:
        return holds(done)
    at = " ".join(str(part) or "''" for part in wrong[0])
    there, instead = (_shown(table.get(wrong[0])) for table in (found, right))
    count = f"{len(wrong):,} of {len(places):,} rows differ"
    return differs(f"{name}: {count}: at {at} there is {there}, and {whose} {instead}")


def _shown(row: Row | None) -> str:
    if row is None:
        return "nothing"
    return ", ".join(f"{name} {_part(part)}" for name, part in row.items() if name != "of_all")


def _part(part: Any) -> str:
    is_bytes = isinstance(part, str) and len(part) > _DIGEST
    return f"{len(part) // 2:,} bytes" if is_bytes else number(part, 2)


def _counted(evidence: Evidence, name: str) -> dict[str, Value]:
    """Return a value of each device; those that the value leaves out do not know of the others."""
    gone = set[str]()
    if name in evidence.plan.dynamic_folds:
        gone = left_out(evidence.plan, name, evidence.silent_us)
    return {d: of.get(name, {}) for d, of in evidence.values.items() if d not in gone}


def _agreement(evidence: Evidence, name: str) -> Finding:
    counted = _counted(evidence, name)
    first = next(iter(counted), "")
    if silent := [device for device, value in counted.items() if not value] or not first:
        return differs(f"{name}: {silent} reported no value")
    held = {device: _held(value) for device, value in counted.items()}
    found = {(device, key): row for device, keys in held.items() for key, row in keys.items()}
    right = {(device, key): row for device in held for key, row in held[first].items()}
    fold, keys = evidence.plan.dynamic_folds.get(name), by_key(counted[first])
    key = min(keys, default="")
    text = _text(keys[key], 2 if fold is None else decimals(fold.resolution)) if keys else ""
    if fold is not None and fold.keyed:
        text = f"{len(keys):,} keys" + f" (such as {key}: {text})" * bool(keys)
    done = f"all {len(held)} devices hold the same {name}: {text}"
    return compared(name, found, right, done, f"{first} has")


def _held(value: Value) -> dict[str, Row]:
    """Return the row of each key on a device, with the digest of the inputs of all."""
    of_all = {"of_all": value.get("inputs")}
    return {
        key: {**one["parts"], **{n: p for n, p in one.items() if n not in _STATE}, **of_all}
        for key, one in by_key(value).items()
    }


def _text(value: Value, places: int) -> str:
    """Return a value for people."""
    shown = {in_words(part): number(each, places) for part, each in value["parts"].items()}
    if len(shown) == 1:
        return "".join(shown.values())
    return ", ".join(f"{part} {each}" for part, each in shown.items())


def _recomputation(evidence: Evidence, fold: DynamicFold) -> Finding:
    bottom = fold.source.source.bottom
    assert isinstance(bottom, BoundedLWWSet)
    if bottom.max_age_s is not None and bottom.max_age_s <= evidence.lasted_s:
        text = f"{fold.name}: not recomputed, samples expired by the clock meanwhile"
        return Finding(None, text)
    # Nothing has expired: as if all was accepted in the same moment.
    at_once = {d: [r._replace(accepted_us=0) for r in of] for d, of in evidence.readings.items()}
    silent_us = evidence.silent_us
    truth = dynamic_partials(evidence.plan, fold.name, at_once, now_us=0, silent_us=silent_us)
    counted = {d: value for d, value in _counted(evidence, fold.name).items() if value}
    found = {
        (d, key): _columns(fold.fold, one)
        for d, of in counted.items()
        for key, one in by_key(of).items()
    }
    right = {(d, key): _plain(fold.fold, truth[key]) for d in counted for key in truth}
    gone = sorted(evidence.values.keys() - _counted(evidence, fold.name).keys())
    what = f"each device's last {bottom.bound:,} readings" if bottom.bound else "all readings"
    what += " of a key" * fold.keyed + f", without {', '.join(gone)}" * bool(gone)
    equal = f"{len(truth):,} keys" if fold.keyed else _shown(_plain(fold.fold, truth[""]))
    done = f"{_name(evidence, fold)}recomputed from {what}: equal ({equal})"
    return compared(f"{fold.name} from {what}", found, right, done)


def _in_the_lake(evidence: Evidence, fold: DynamicFold) -> Finding:
    if evidence.globals is None:
        return Finding(None, f"{fold.name}: a gateway keeps windows, and the devices the value")
    current = newest(evidence.globals[fold.name], "key")
    there = [row for row in current if row["devices_in"] or not fold.keyed]
    found = _table(there, ("key",), (*fold.fold.columns_named, "inputs"))
    held = next((value for value in _counted(evidence, fold.name).values() if value), {})
    of_devices = [{"key": key, **one} for key, one in by_key(held).items()] if held else []
    right = _table(of_devices, ("key",), (*fold.fold.columns_named, "inputs"))
    keys = f"{len(found):,} keys" if fold.keyed else held.get("inputs", "none")
    done = f"Spark's table: {_name(evidence, fold)}the same, from the same inputs ({keys})"
    if len(found) < len(there) or not held:
        return differs(f"globals has {len(there)} current rows of {fold.name}")
    return compared(f"Spark's {fold.name}", found, right, done, "the devices have")


def _name(evidence: Evidence, fold: DynamicFold) -> str:
    """Return the value's name where the program has several."""
    return f"{fold.name} " if len(evidence.plan.dynamic_folds) > 1 else ""


def _not_measured(evidence: Evidence) -> Iterator[Finding]:
    """Yield the devices with readings that their rooms' sensors did not give, in that order."""
    for device, lines in evidence.measured.items():
        for event in lines[0].keys() & evidence.plan.events.keys():
            given = iter([line[event] for line in lines])
            for reading in evidence.readings[device]:
                if reading.event == event and reading.value not in given:  # goes on where it was
                    yield differs(f"{device} has {event} {reading.value}, which its room never had")
                    break


def _windows(evidence: Evidence, window: Window) -> Finding:
    readings = evidence.all_readings()
    truth = windows(evidence.plan, window.name, readings, log_of(evidence.settings))
    right: Table = {
        at: {**_plain(window.fold, true.partial), "devices_in": true.devices_in}
        for at, true in truth.items()
    }
    current = newest(evidence.windows[window.name], "key", "start_us")
    found = _table(current, ("key", "start_us"), (*window.fold.columns_named, "devices_in"))
    name = f"{window.name}: {len(current):,} windows"
    if doubled := len(current) - len(found):
        return differs(f"{name} in the table, {doubled:,} of them doubled")
    if any(each.retracted for each in readings):
        found = _without_emptied(window.fold, found, right)
    count = evidence.count_of(window.source.name)
    done = f"{name} equal the recomputation from {count:,} readings"
    return compared(f"{name} in the table", found, right, done)


def _without_emptied(fold: Fold, found: Table, right: Table) -> Table:
    """Return a window's rows as they are where readings were taken back.

    A window without any reading left keeps its row, and a device without one counts in it.
    """
    empty = _plain(fold, fold.zero)
    rows = {at: row for at, row in found.items() if at in right or _columns(fold, row) != empty}
    return {
        at: {**row, "devices_in": min(row["devices_in"], right.get(at, row)["devices_in"])}
        for at, row in rows.items()
    }


def _results(evidence: Evidence, result: StreamResult) -> Finding:
    """Return whether a result's rows are those that follow from the readings, in their order."""
    if result.name not in evidence.results:
        return Finding(None, f"{result.name}: a gateway keeps no rows of one device")
    names, truth = (
        ("key", *result.columns),
        rows(evidence.plan, result.name, evidence.all_readings()),
    )
    current = newest(evidence.results[result.name], "device", "time_us", "place")
    found = _table([row for row in current if row["present"]], ("device", "place"), names)
    right = {
        (device, place_text(place)): dict(zip(names, (row.key, *(row.parts or ())), strict=True))
        for (device, place), row in truth.items()
    }
    count = evidence.count_of(result.name)
    name = f"{result.name}: {len(truth):,} rows in the table"
    return compared(name, found, right, f"{name} equal the recomputation from {count:,} readings")


def _table(rows: Sequence[Row], identity: Sequence[str], columns: Sequence[str]) -> Table:
    return {tuple(row[n] for n in identity): {n: row[n] for n in columns} for row in rows}


def _columns(fold: Fold, row: Row) -> Row:
    return {name: row[name] for name in fold.columns_named}


def _plain(fold: Fold, partial: Partial) -> Row:
    """Return a partial by column, as JSON has it."""
    parts = zip(fold.columns_named, partial, strict=True)
    return {name: part.hex() if isinstance(part, bytes) else part for name, part in parts}
