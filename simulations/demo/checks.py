"""The demo's checks (a) to (d), and (f) and (g): the first four compare integers, key by key.

What the devices hold comes from their reports, what the cloud holds from the columns of the lake's
tables, and what is right from `simulations.oracle`. A value without `key=` has the one key "".
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from textwrap import wrap
from typing import Any, NamedTuple

from crdts import BoundedLWWSet
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import decimals
from lasp_edge.language.declarations import DynamicFold, LocalFold, Window
from lasp_edge.tool.screen import in_words, number
from simulations.demo.devices import KeyValue, Value
from simulations.demo.evidence import Evidence, Finding, count_of, differs, holds
from simulations.demo.finality import told_finding, waiting_finding
from simulations.demo.lake import Row
from simulations.demo.streamed import rows_finding
from simulations.demo.told import log_of
from simulations.oracle import WindowTruth, dynamic_partials, left_out, windows

_EXAMPLES = 2
_MOST_FINDINGS = 3
_WIDTH = 79
_INDENT = " " * 12


class Verdict(NamedTuple):
    """What a check found.

    Attributes:
        letter: which check.
        ok: whether it holds; None where there was nothing to check.
        text: the finding with its numbers.
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
    folds = evidence.plan.dynamic_folds.values()
    checks = {
        "a": [_agreement(evidence, fold) for fold in folds] + _derived(evidence),
        "b": [_recomputation(evidence, fold) for fold in folds],
        "c": [_in_the_lake(evidence, fold) for fold in folds],
        "d": [_windows(evidence, window) for window in evidence.plan.windows.values()]
        + [rows_finding(evidence, result) for result in evidence.plan.stream_results.values()],
    }
    if evidence.told:
        checks["f"] = [told_finding(evidence)]
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
    told = [finding for finding in findings if finding.ok is ok]
    told += [finding for finding in findings if ok and finding.ok is None]
    texts = [finding.text for finding in told[:_MOST_FINDINGS]]
    if len(told) > len(texts):
        texts.append(f"and {len(told) - len(texts)} more {'differ' if ok is False else 'alike'}")
    return Verdict(letter, ok, "; ".join(texts))


def _told(evidence: Evidence, fold: DynamicFold) -> dict[str, Mapping[str, Value]]:
    """Return what the devices told that count: the others do not know what these say of them."""
    gone = left_out(evidence.plan, fold.name, evidence.silent_us)
    return {device: told for device, told in evidence.values.items() if device not in gone}


def _agreement(evidence: Evidence, fold: DynamicFold) -> Finding:
    told = _told(evidence, fold)
    held = {device: values[fold.name] for device, values in told.items() if fold.name in values}
    silent = sorted(told.keys() - held.keys())
    if silent or not held:
        return differs(f"{fold.name}: {', '.join(silent)} reported no value")
    different = _different([value.keys for value in held.values()])
    if not different and len({value.inputs for value in held.values()}) == 1:
        one = _partials(fold.fold, next(iter(held.values())).keys)
        return holds(f"all {len(held)} devices hold the same {fold.name}: {_text(fold, one)}")
    if not different:
        each = ", ".join(f"{device} {value.inputs}" for device, value in held.items())
        return differs(f"{fold.name}: equal values from different inputs: {each}")
    key = min(different)
    each = ", ".join(
        f"{device} {_of_key(fold, _partials(fold.fold, value.keys), key)}"
        for device, value in held.items()
    )
    if not fold.keyed:
        return differs(f"{fold.name}: different values: {each}")
    return differs(
        f"{fold.name}: {len(different):,} keys with different values (such as {key}: {each})"
    )


def _different(held: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the keys that not all have, or not all alike."""
    first, *others = held
    keys = set().union(*held)
    return {key for key in keys if any(first.get(key) != other.get(key) for other in others)}


def _derived(evidence: Evidence) -> list[Finding]:
    """Return what was found of the sets that devices derive from shared ones."""
    folds = {*evidence.plan.local_folds, *evidence.plan.dynamic_folds}
    names = sorted({name for values in evidence.values.values() for name in values} - folds)
    return [_derived_agreement(evidence, name) for name in names]


def _derived_agreement(evidence: Evidence, name: str) -> Finding:
    held = {device: values.get(name) for device, values in evidence.values.items()}
    silent = sorted(device for device, value in held.items() if value is None)
    if silent:
        return differs(f"{name}: {', '.join(silent)} reported no value")
    plain = [value.keys[""] for value in held.values() if value is not None]
    told = ", ".join(f"{part} {number(value, 2)}" for part, value in plain[0].parts.items())
    if all(value == plain[0] for value in plain):
        return holds(f"all {len(plain)} devices hold the same {name}: {told}")
    return differs(f"{name}: the devices hold different values")


def _recomputation(evidence: Evidence, fold: DynamicFold) -> Finding:
    bottom = fold.source.source.bottom
    assert isinstance(bottom, BoundedLWWSet)
    if bottom.max_age_s is not None and bottom.max_age_s <= evidence.lasted_s:
        text = f"{fold.name}: not recomputed, samples expired by the clock meanwhile"
        return Finding(None, text)
    # Nothing has expired: as if all was accepted in the same moment.
    at_once = {d: [r._replace(accepted_us=0) for r in of] for d, of in evidence.readings.items()}
    silent_us = evidence.silent_us
    right = dynamic_partials(evidence.plan, fold.name, at_once, now_us=0, silent_us=silent_us)
    told = _told(evidence, fold)
    gone = sorted(evidence.values.keys() - told.keys())
    what = f"each device's last {bottom.bound:,} readings" if bottom.bound else "all readings"
    what += " of a key" * fold.keyed
    what += f", without {', '.join(gone)}" * bool(gone)
    wrong = []
    for device, values in told.items():
        held = _partials(fold.fold, values[fold.name].keys) if fold.name in values else right
        wrong += [
            f"{device} holds {_integers(fold.fold, held.get(key))}{_of(key)}, and right is "
            f"{_integers(fold.fold, right.get(key))}"
            for key in sorted(_different([held, right]))[:1]
        ]
    if wrong:
        return differs(f"{fold.name} from {what}: {'; '.join(wrong)}")
    equal = f"{len(right):,} keys" if fold.keyed else _integers(fold.fold, right[""])
    return holds(f"{_name(evidence, fold)}recomputed from {what}: equal ({equal})")


def _in_the_lake(evidence: Evidence, fold: DynamicFold) -> Finding:
    if evidence.globals is None:
        return Finding(None, f"{fold.name}: a gateway keeps windows, and the devices the value")
    told = _told(evidence, fold).values()
    held = [values[fold.name] for values in told if fold.name in values]
    rows = evidence.globals.get(fold.name, ())
    there = [row for row in rows if row["devices_in"] or not fold.keyed]
    stored = {row["key"]: (_of_row(fold.fold, row), row["inputs"]) for row in there}
    if len(stored) < len(there) or not held or (not stored and not fold.keyed):
        return differs(f"globals has {len(there)} current rows of {fold.name}")
    right = {key: (_partial(fold.fold, value), value.inputs) for key, value in held[0].keys.items()}
    wrong = sorted(_different([stored, right]))
    if not wrong:
        keys = f"{len(right):,} keys" if fold.keyed else held[0].inputs
        same = f"{_name(evidence, fold)}the same, from the same inputs ({keys})"
        return holds(f"Spark's table: {same}")
    (spark, theirs), (devices, ours) = (each.get(wrong[0], (None, "-")) for each in (stored, right))
    return differs(
        f"{fold.name}{_of(wrong[0])}: Spark has {_integers(fold.fold, spark)} from inputs "
        f"{theirs}, the devices have {_integers(fold.fold, devices)} from inputs {ours}",
    )


def _name(evidence: Evidence, fold: DynamicFold) -> str:
    """Return the value's name where the program has several."""
    return f"{fold.name} " if len(evidence.plan.dynamic_folds) > 1 else ""


def _windows(evidence: Evidence, window: Window) -> Finding:
    right = windows(evidence.plan, window.name, evidence.all_readings(), log_of(evidence.told))
    rows = evidence.windows[window.name]
    stored = {
        (row["key"], row["start_us"]): WindowTruth(_of_row(window.fold, row), row["devices_in"])
        for row in rows
    }
    count = count_of(evidence, window.source.name)
    missing, extra = right.keys() - stored.keys(), stored.keys() - right.keys()
    wrong = {where for where in right.keys() & stored.keys() if right[where] != stored[where]}
    told = f"{window.name}: {len(rows):,} windows"
    if not (missing or extra or wrong) and len(rows) == len(stored):
        return holds(f"{told} equal the recomputation from {count:,} readings")
    kinds = {"missing": missing, "extra": extra, "with other integers": wrong}
    parts = [
        f"{len(places):,} {kind}{_examples(places)}" for kind, places in kinds.items() if places
    ]
    parts += [f"{len(rows) - len(stored):,} doubled"] if len(rows) > len(stored) else []
    return differs(f"{told} in the table: {', '.join(parts)}")


def _examples(places: Iterable[tuple[str, int]]) -> str:
    shown = sorted(places)[:_EXAMPLES]
    return f" (such as {', '.join(f'{start}{_of(key)}' for key, start in shown)})"


def _of(key: str) -> str:
    return f" of {key!r}" if key else ""


def _partials(fold: Fold, keys: Mapping[str, KeyValue]) -> dict[str, Partial]:
    return {key: _partial(fold, value) for key, value in keys.items()}


def _partial(fold: Fold, value: KeyValue) -> Partial:
    """Return the partial that a report tells of."""
    parts = ((column, value.columns[column.name]) for column in fold.columns)
    return tuple(bytes.fromhex(part) if column.binary else part for column, part in parts)


def _of_row(fold: Fold, row: Row) -> Partial:
    """Return the partial that a row of a table holds; totals are decimals there."""
    parts = (row[name] for name in fold.columns_named)
    return tuple(int(part) if isinstance(part, Decimal) else part for part in parts)


def lowered(what: LocalFold | DynamicFold | Window, row: Row) -> Mapping[str, Any]:
    """Return the parts that people read off a row of a table."""
    return what.fold.lower(_of_row(what.fold, row), what.resolution)


def _integers(fold: Fold, partial: Partial | None) -> str:
    if partial is None:
        return "nothing"
    named = zip(fold.columns_named, partial, strict=True)
    return ", ".join(f"{name} {_integer(value)}" for name, value in named)


def _integer(value: int | bytes | None) -> str:
    return f"{len(value):,} bytes" if isinstance(value, bytes) else number(value, 0)


def _text(fold: DynamicFold, partials: Mapping[str, Partial]) -> str:
    if not fold.keyed:
        return _of_key(fold, partials, "")
    keys = _first(partials)
    told = "; ".join(f"{key}: {_of_key(fold, partials, key)}" for key in keys)
    return f"{len(partials):,} keys" + f" (such as {told})" * bool(keys)


def _first(keys: Collection[str]) -> list[str]:
    return sorted(keys)[:1]


def _of_key(fold: DynamicFold, partials: Mapping[str, Partial], key: str) -> str:
    if key not in partials:
        return number(None, 0)
    parts = fold.fold.lower(partials[key], fold.resolution)
    places = decimals(fold.resolution)
    if len(parts) == 1:
        return number(next(iter(parts.values())), places)
    return ", ".join(f"{in_words(part)} {number(value, places)}" for part, value in parts.items())
