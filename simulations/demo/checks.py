"""The demo's checks (a) to (d): each compares integers and says what it found in one line."""

from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import NamedTuple

from crdts import BoundedLWWSet
from lasp_edge.folds.fold import Fold, Partial
from lasp_edge.language.declarations import DynamicFold, Window
from lasp_edge.language.plan import Plan
from simulations.demo.devices import Value
from simulations.demo.live import decimals, in_words, number
from simulations.oracle import Reading, WindowTruth, dynamic_partial, windows

Row = Mapping[str, str]
_SHOWN = 2
_WIDTH = 98
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


class Evidence(NamedTuple):
    """What there is to check.

    Attributes:
        program: the program.
        values: what each device holds at the end, by device and fold.
        readings: each device's accepted readings in the order of acceptance.
        globals: rows of the lake's table of fleet-wide values.
        windows: rows of the lake's current windows, by definition.
    """

    program: Plan
    values: Mapping[str, Mapping[str, Value]]
    readings: Mapping[str, Sequence[Reading]]
    globals: Sequence[Row]
    windows: Mapping[str, Sequence[Row]]

    def all_readings(self) -> list[Reading]:
        """Return the readings of all devices."""
        return [reading for of_device in self.readings.values() for reading in of_device]


def verdicts(evidence: Evidence) -> list[Verdict]:
    """Return the verdicts (a) to (d)."""
    checks = {
        "a": [_agreement(evidence, fold) for fold in evidence.program.dynamic_folds.values()],
        "b": [_recomputation(evidence, fold) for fold in evidence.program.dynamic_folds.values()],
        "c": [_in_the_lake(evidence, fold) for fold in evidence.program.dynamic_folds.values()],
        "d": [_windows(evidence, window) for window in evidence.program.windows.values()],
    }
    return [_joined(letter, found) for letter, found in checks.items()]


Finding = tuple[bool | None, str]


def _joined(letter: str, findings: Sequence[Finding]) -> Verdict:
    """Return one verdict: the differences where there are some, else everything."""
    if not findings:
        what = "window" if letter == "d" else "fleet-wide value"
        return Verdict(letter, None, f"nothing to check: the program has no {what}")
    outcomes = {ok for ok, _ in findings}
    ok = False if False in outcomes else True if True in outcomes else None
    return Verdict(letter, ok, "; ".join(text for found, text in findings if found is ok))


def _agreement(evidence: Evidence, fold: DynamicFold) -> Finding:
    held = {d: values[fold.name] for d, values in evidence.values.items() if fold.name in values}
    silent = sorted(evidence.values.keys() - held.keys())
    if silent:
        return False, f"{fold.name}: {', '.join(silent)} told no value"
    different = {(value.inputs, *sorted(value.columns.items())) for value in held.values()}
    if len(different) == 1:
        partial = _partial(fold.fold, next(iter(held.values())).columns)
        return True, f"all {len(held)} devices hold the same {fold.name}: {_text(fold, partial)}"
    told = ", ".join(f"{d} {_text(fold, _partial(fold.fold, v.columns))}" for d, v in held.items())
    return False, f"{fold.name}: {len(different)} different values: {told}"


def _recomputation(evidence: Evidence, fold: DynamicFold) -> Finding:
    bottom = fold.source.source.bottom
    assert isinstance(bottom, BoundedLWWSet)
    if bottom.bound is None or bottom.max_age_s is not None:
        return None, f"nothing to check: samples of {fold.source.source.name} expire by the clock"
    right = dynamic_partial(evidence.program, fold.name, evidence.readings)
    what = f"from each device's last {bottom.bound} readings"
    wrong = _different(evidence, fold, right)
    if wrong:
        return False, f"{fold.name}: {what} it should be {_integers(fold.fold, right)}, but {wrong}"
    return True, f"recomputed {what}: equal ({_integers(fold.fold, right)})"


def _different(evidence: Evidence, fold: DynamicFold, right: Partial) -> str:
    held = {d: values.get(fold.name) for d, values in evidence.values.items()}
    partials = {d: _partial(fold.fold, v.columns) for d, v in held.items() if v is not None}
    wrong = [f"{d} holds {_integers(fold.fold, p)}" for d, p in partials.items() if p != right]
    return ", ".join(wrong)


def _in_the_lake(evidence: Evidence, fold: DynamicFold) -> Finding:
    found = [row for row in evidence.globals if row["name"] == fold.name and not row["key"]]
    held = [values[fold.name] for values in evidence.values.values() if fold.name in values]
    if len(found) != 1 or not held:
        return False, f"globals has {len(found)} current rows of {fold.name}, not 1"
    (row,), value = found, held[0]
    stored, right = _partial_of_row(fold.fold, row), _partial(fold.fold, value.columns)
    if (row["inputs"], stored) == (value.inputs, right):
        return True, f"Spark's table globals: the same, made from the same inputs ({value.inputs})"
    return False, (
        f"{fold.name}: Spark has {_integers(fold.fold, stored)} from inputs {row['inputs']}, the "
        f"devices have {_integers(fold.fold, right)} from inputs {value.inputs}"
    )


def _windows(evidence: Evidence, window: Window) -> Finding:
    readings = evidence.all_readings()
    right = windows(evidence.program, window.name, readings)
    rows = evidence.windows[window.name]
    stored = {(row["key"], int(row["start_us"])): _truth_of(window.fold, row) for row in rows}
    count = sum(reading.event == window.source.name for reading in readings)
    missing, extra = right.keys() - stored.keys(), stored.keys() - right.keys()
    wrong = {where for where in right.keys() & stored.keys() if right[where] != stored[where]}
    told = f"{window.name}: {len(rows):,} windows"
    if not (missing or extra or wrong) and len(rows) == len(stored):
        return True, f"{told} equal the recomputation from {count:,} readings"
    kinds = {"missing": missing, "extra": extra, "with other integers": wrong}
    parts = [
        f"{len(places):,} {kind}{_examples(places)}" for kind, places in kinds.items() if places
    ]
    parts += [f"{len(rows) - len(stored):,} doubled"] if len(rows) > len(stored) else []
    return False, f"{told} in the lake: {', '.join(parts)}"


def _examples(places: Iterable[tuple[str, int]]) -> str:
    shown = [f"{key!r} {start}" if key else f"{start}" for key, start in sorted(places)[:_SHOWN]]
    return f" (such as {', '.join(shown)})"


def _partial(fold: Fold, columns: Mapping[str, int | None]) -> Partial:
    return tuple(columns.get(name) for name in fold.columns_named)


def _partial_of_row(fold: Fold, row: Row) -> Partial:
    return tuple(int(row[name]) if row[name] else None for name in fold.columns_named)


def _truth_of(fold: Fold, row: Row) -> WindowTruth:
    return WindowTruth(_partial_of_row(fold, row), int(row["devices_in"]))


def _integers(fold: Fold, partial: Partial) -> str:
    named = zip(fold.columns_named, partial, strict=True)
    return ", ".join(f"{name} {number(value, 0)}" for name, value in named)


def _text(fold: DynamicFold, partial: Partial) -> str:
    parts = fold.fold.lower(partial, fold.resolution)
    places = decimals(fold.resolution)
    if len(parts) == 1:
        return number(next(iter(parts.values())), places)
    return ", ".join(f"{in_words(part)} {number(value, places)}" for part, value in parts.items())
