"""The demo's checks (a) to (d), and (f) and (g): the first four compare integers, key by key.

What the devices hold comes from their reports, what was merged from the rows that commands print,
and what is right from `simulations.oracle`. A value without `key=` has the one key "".
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any, NamedTuple, TypeVar

from crdts import BoundedLWWSet
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import decimals
from lasp_edge.language.declarations import DynamicFold, StreamResult, Window
from lasp_edge.language.streaming import row_parts, shown_parts
from lasp_edge.ordered.places import place_text
from lasp_edge.tool.screen import in_words, number
from simulations.demo.devices import Value, by_key
from simulations.demo.evidence import Evidence, Finding, Row, differs, holds, newest
from simulations.demo.finality import settings_finding, waiting_finding
from simulations.demo.settings import log_of
from simulations.oracle import dynamic_partials, left_out, rows, windows

Place = TypeVar("Place", bound=Hashable)

_EXAMPLES = 2
_MOST_FINDINGS = 3
_WIDTH = 79
_INDENT = " " * 12
_STATE = frozenset({"settled", "except", "devices"})
"""What a report says of a value beside what the device holds."""


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
    shown = [finding for finding in findings if finding.ok is ok]
    shown += [finding for finding in findings if ok and finding.ok is None]
    texts = [finding.text for finding in shown[:_MOST_FINDINGS]]
    if len(shown) > len(texts):
        texts.append(f"and {len(shown) - len(texts)} more {'differ' if ok is False else 'alike'}")
    return Verdict(letter, ok, "; ".join(texts))


def unlike(found: Mapping[Place, object], right: Mapping[Place, object]) -> list[Place]:
    """Return where two tables differ, sorted.

    >>> unlike({"a": 1, "b": 2}, {"b": 3, "c": 4})
    ['a', 'b', 'c']
    """
    places = found.keys() | right.keys()
    return sorted(at for at in places if found.get(at) != right.get(at))  # type: ignore[type-var]


def _counted(evidence: Evidence, name: str) -> dict[str, Value | None]:
    """Return a value of each device; those that the value leaves out do not know of the others."""
    gone = set[str]()
    if name in evidence.plan.dynamic_folds:
        gone = left_out(evidence.plan, name, evidence.silent_us)
    return {d: values.get(name) for d, values in evidence.values.items() if d not in gone}


def _agreement(evidence: Evidence, name: str) -> Finding:
    counted = _counted(evidence, name)
    values = {device: value for device, value in counted.items() if value is not None}
    if silent := sorted(counted.keys() - values.keys()):
        return differs(f"{name}: {', '.join(silent)} reported no value")
    fold = evidence.plan.dynamic_folds.get(name)
    places = 2 if fold is None else decimals(fold.resolution)
    held = {device: _held(value) for device, value in values.items()}
    first = next(iter(held.values()))
    different = sorted({key for keys in held.values() for key in unlike(keys, first)})
    if different or len({value.get("inputs") for value in values.values()}) > 1:
        key = min(different, default="")
        each = ", ".join(
            f"{device} {_text(keys.get(key), places)} from {values[device].get('inputs', '-')}"
            for device, keys in held.items()
        )
        return differs(f"{name}: different values{_of(key)}: {each}")
    key = min(first, default="")
    text = _text(first.get(key), places)
    if fold is not None and fold.keyed:
        text = f"{len(first):,} keys" + f" (such as {key}: {text})" * bool(first)
    return holds(f"all {len(held)} devices hold the same {name}: {text}")


def _held(value: Value) -> dict[str, Value]:
    """Return what a device holds of each key."""
    return {
        key: {name: part for name, part in one.items() if name not in _STATE}
        for key, one in by_key(value).items()
    }


def _text(value: Value | None, places: int) -> str:
    """Return a value for people."""
    parts = {} if value is None else value["parts"]
    shown = [number(each, places) for each in parts.values()]
    if len(shown) < 2:  # noqa: PLR2004 - one part needs no name
        return "".join(shown) or number(None, 0)
    return ", ".join(f"{in_words(part)} {each}" for part, each in zip(parts, shown, strict=True))


def _recomputation(evidence: Evidence, fold: DynamicFold) -> Finding:
    bottom = fold.source.source.bottom
    assert isinstance(bottom, BoundedLWWSet)
    if bottom.max_age_s is not None and bottom.max_age_s <= evidence.lasted_s:
        text = f"{fold.name}: not recomputed, samples expired by the clock meanwhile"
        return Finding(None, text)
    counted = _counted(evidence, fold.name)
    gone = sorted(evidence.values.keys() - counted.keys())
    what = f"each device's last {bottom.bound:,} readings" if bottom.bound else "all readings"
    what += " of a key" * fold.keyed + f", without {', '.join(gone)}" * bool(gone)
    right = _recomputed(evidence, fold)
    wrong = []
    for device, value in counted.items():
        held = right if value is None else _integers_of(fold.fold, by_key(value))
        wrong += [
            f"{device} holds {_integers(held.get(key))}{_of(key)}, and right is "
            f"{_integers(right.get(key))}"
            for key in unlike(held, right)[:1]
        ]
    if wrong:
        return differs(f"{fold.name} from {what}: {'; '.join(wrong)}")
    equal = f"{len(right):,} keys" if fold.keyed else _integers(right[""])
    return holds(f"{_name(evidence, fold)}recomputed from {what}: equal ({equal})")


def _recomputed(evidence: Evidence, fold: DynamicFold) -> dict[str, Row]:
    # Nothing has expired: as if all was accepted in the same moment.
    at_once = {d: [r._replace(accepted_us=0) for r in of] for d, of in evidence.readings.items()}
    silent_us = evidence.silent_us
    right = dynamic_partials(evidence.plan, fold.name, at_once, now_us=0, silent_us=silent_us)
    return {key: _plain(fold.fold, partial) for key, partial in right.items()}


def _in_the_lake(evidence: Evidence, fold: DynamicFold) -> Finding:
    if evidence.globals is None:
        return Finding(None, f"{fold.name}: a gateway keeps windows, and the devices the value")
    held = [value for value in _counted(evidence, fold.name).values() if value is not None]
    rows = newest([row for row in evidence.globals if row["name"] == fold.name], "key")
    there = [row for row in rows if row["devices_in"] or not fold.keyed]
    names = (*fold.fold.columns_named, "inputs")
    stored = {row["key"]: {name: row[name] for name in names} for row in there}
    if len(stored) < len(there) or not held or (not stored and not fold.keyed):
        return differs(f"globals has {len(there)} current rows of {fold.name}")
    on_devices = {
        key: {name: value[name] for name in names} for key, value in by_key(held[0]).items()
    }
    if wrong := unlike(stored, on_devices):
        spark, devices = stored.get(wrong[0]), on_devices.get(wrong[0])
        return differs(
            f"{fold.name}{_of(wrong[0])}: Spark has {_integers(spark)}, the devices have "
            f"{_integers(devices)}"
        )
    keys = f"{len(stored):,} keys" if fold.keyed else held[0]["inputs"]
    same = f"{_name(evidence, fold)}the same, from the same inputs ({keys})"
    return holds(f"Spark's table: {same}")


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
    truth = windows(evidence.plan, window.name, evidence.all_readings(), log_of(evidence.settings))
    right = {
        at: {**_plain(window.fold, true.partial), "devices_in": true.devices_in}
        for at, true in truth.items()
    }
    rows = newest(evidence.windows[window.name], "key", "start_us")
    names = (*window.fold.columns_named, "devices_in")
    stored = {(row["key"], row["start_us"]): {name: row[name] for name in names} for row in rows}
    wrong = set(unlike(stored, right))
    text = f"{window.name}: {len(rows):,} windows"
    if not wrong and len(rows) == len(stored):
        count = evidence.count_of(window.source.name)
        return holds(f"{text} equal the recomputation from {count:,} readings")
    missing, extra = wrong - stored.keys(), wrong - right.keys()
    kinds = {"missing": missing, "extra": extra, "with other integers": wrong - missing - extra}
    parts = [f"{len(at):,} {kind}{_examples(at)}" for kind, at in kinds.items() if at]
    parts += [f"{len(rows) - len(stored):,} doubled"] if len(rows) > len(stored) else []
    return differs(f"{text} in the table: {', '.join(parts)}")


def _examples(places: Iterable[tuple[str, int]]) -> str:
    shown = sorted(places)[:_EXAMPLES]
    return f" (such as {', '.join(f'{start}{_of(key)}' for key, start in shown)})"


def _results(evidence: Evidence, result: StreamResult) -> Finding:
    """Return whether a result's rows are those that follow from the readings, in their order."""
    right = rows(evidence.plan, result.name, evidence.all_readings())
    wrong, where = list[str](), "the last on the devices"
    if evidence.results is not None:
        where = f"in the lake and {where}"
        expected = {
            (device, place_text(place)): [row.key, *(row.parts or ())]
            for (device, place), row in right.items()
        }
        stored = newest(evidence.results[result.name], "device", "time_us", "place")
        held = {
            (row["device"], row["place"]): [row["key"], *(row[name] for name in result.columns)]
            for row in stored
            if row["present"]
        }
        wrong += [
            f"the lake has {held.get(at, 'nothing')} at {at}, and right is "
            f"{expected.get(at, 'nothing')}"
            for at in unlike(held, expected)
        ]
    for device, of_device in evidence.device_rows.items():
        own = sorted((place, row) for (of, place), row in right.items() if of == device)
        names = [name for name, _ in result.parts]
        found = [row for row in of_device.get(result.name, ()) if all(n in row for n in names)]
        last = [
            {"key": row.key, "time_us": place[0]}
            | shown_parts(result, row_parts(result, row.parts or ()))
            for place, row in own[len(own) - len(found) :]
        ]
        if [{n: row[n] for n in ("key", "time_us", *names)} for row in found] != last or (
            own and not found
        ):
            wrong.append(f"{device} has {found[-1:]}, and right is {last[-1:] or own[-1:]}")
    if wrong:
        more = f" and {len(wrong) - _EXAMPLES:,} more" if len(wrong) > _EXAMPLES else ""
        return differs(f"{result.name}: {'; '.join(wrong[:_EXAMPLES])}{more}")
    text = f"{result.name}: {len(right):,} rows, {where},"
    count = evidence.count_of(result.name)
    return holds(f"{text} equal the recomputation from {count:,} readings")


def _plain(fold: Fold, partial: Partial) -> Row:
    """Return a partial by column, as JSON has it."""
    parts = zip(fold.columns_named, partial, strict=True)
    return {name: part.hex() if isinstance(part, bytes) else part for name, part in parts}


def _integers_of(fold: Fold, keys: Mapping[str, Value]) -> dict[str, Row]:
    """Return the columns alone of what a device holds of each key."""
    return {key: {name: one[name] for name in fold.columns_named} for key, one in keys.items()}


def _integers(row: Row | None) -> str:
    """Return the columns of a row for people.

    >>> _integers({"count": 500, "total_q": 1_014_834, "seen": "00ff"})
    'count 500, total_q 1,014,834, seen 2 bytes'
    """
    if row is None:
        return "nothing"
    return ", ".join(f"{name} {_integer(name, part)}" for name, part in row.items())


def _integer(name: str, part: Any) -> str:
    if name == "inputs" or part is None:
        return str(part or "-")
    return f"{len(part) // 2:,} bytes" if isinstance(part, str) else number(part, 0)


def _of(key: str) -> str:
    return f" of {key!r}" if key else ""
