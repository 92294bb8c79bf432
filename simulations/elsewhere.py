"""What a program makes of readings in another process, where all that should not matter differs.

The process has another hash seed, clock, host name, directory and time zone, and takes the readings
in another order. What a window, a row or a handler gives there and here must be equal.

    >>> from lasp_edge.examples.greenhouse import program
    >>> readings = [Reading("kitchen", "temperature", 21.5, 0, {"room": "kitchen"})]
    >>> sorted({what for what, _ in outcomes(program.plan(), readings)})
    ['handlers of event temperature', 'window temperature_by_room']
"""

import datetime as dt
import json
import os
import platform
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from tempfile import TemporaryDirectory
from typing import Any

from lasp_edge.checking.clocks import OF_NO_READING
from lasp_edge.checking.determinism import makes_sets, risks_of
from lasp_edge.checking.readings import made_up_entries
from lasp_edge.errors import CommandError, pass_interrupt
from lasp_edge.event import Event
from lasp_edge.language.plan import Plan
from lasp_edge.language.updates import Update
from lasp_edge.tool.loading import load_plan
from lasp_edge.units import SECOND_US
from simulations.oracle import Reading, accepted, rows, windows

Outcomes = dict[tuple[str, str], str]
"""(What gives it, for what) -> what it gives, as text."""
PATIENCE_S = 900
SEEDS = ("4711", "4712", "4713", "4714")
"""Hash seeds of other processes."""
OTHER = "on another machine, or when it is run again"
_LATER_S = 12_345_678.9


def outcomes(plan: Plan, readings: Sequence[Reading]) -> Outcomes:
    """Return what a program's functions make of readings while parameters change, by the oracle."""
    found, log = Outcomes(), made_up_entries(plan)
    for name, window in plan.windows.items():
        for at, truth in windows(plan, name, readings, log).items():
            parts = _lowered(window.fold.lower, truth.partial, window.resolution)
            found[f"window {name}", repr(at)] = f"{truth.partial!r} {parts}"
    for name in plan.stream_results:
        for row_at, row in rows(plan, name, readings, log=log).items():
            found[f"result {name}", repr(row_at)] = _text(row)
    for sample in accepted(plan, readings):
        event = sample.event
        for handler in plan.functions.handlers.get(event.name, ()):
            changes = _changes(plan, handler, event)
            of = f"{event.device} {event.value!r} at {event.time_us}"
            shown = f"{of} with {dict(event.tags)}" if event.tags else of
            found[f"handlers of event {event.name}", shown] = " ".join(changes)
    return found


def _changes(plan: Plan, handler: Callable[..., Any], event: Event) -> list[str]:
    """Return the changes that a handler makes, or the name of what it raises this time."""
    update = Update(plan, event)
    try:
        handler(event, update)
    except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
        pass_interrupt(error)
        return [type(error).__name__]
    return [_text((each.variable, each.arguments, each.key)) for each in update.changes]


def _lowered(lower: Callable[..., Any], partial: Any, resolution: Any) -> str:
    try:
        return _text(lower(partial, resolution))
    except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
        pass_interrupt(error)
        return type(error).__name__


def _text(value: Any) -> str:
    """Return a value as text that depends on no order of sets, and on no address of a function."""
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(_text, value)))}}}"
    if isinstance(value, Mapping):
        return _text(sorted(value.items(), key=repr))
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_text, value))})"
    return str(getattr(value, "__qualname__", None) or repr(value))


def differences(program: str, plan: Plan, readings: Sequence[Reading]) -> list[str]:
    """Return a line for each thing that differs in another process.

    A program whose functions make sets runs in several, each with another hash seed: the order of
    few elements is the same in some. One that asks for the time runs once more, when the readings
    were just taken: what is asked of their age is met then.

    Args:
        program: `MODULE:program`, as it is loaded there.
        plan: of the program, as it is loaded here.
        readings: what both are given.
    """
    here = outcomes(plan, readings)
    runs: list[tuple[str, float | None]] = [
        (seed, None) for seed in (SEEDS if makes_sets(plan) else SEEDS[:1])
    ]
    if any(OF_NO_READING in risk for risk in risks_of(plan)):
        runs.append((SEEDS[0], max(each.time_us for each in readings) / SECOND_US))
    for seed, clock_s in runs:
        there = _outcomes_there(program, readings, seed, clock_s)
        found = [there] if isinstance(there, str) else list(_differing(here, there))
        if found:
            return found
    return []


def _outcomes_there(
    program: str, readings: Sequence[Reading], seed: str, clock_s: float | None
) -> Outcomes | str:
    """Return what a program gives in another process, or why it does not run there."""
    with TemporaryDirectory() as elsewhere:
        process = subprocess.run(  # noqa: S603 - this interpreter, on this module
            [sys.executable, "-m", __name__],
            input=json.dumps([program, [each._asdict() for each in readings], clock_s]),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
            cwd=elsewhere,
            env=_environment(seed),
        )
    if process.returncode:
        last = (process.stderr.strip().splitlines() or ["no reason was given"])[-1]
        return f"the program cannot be run in another process and directory: {last}"
    return {(what, at): gives for what, at, gives in json.loads(process.stdout)}


def _differing(here: Outcomes, there: Outcomes) -> Iterable[str]:
    shown: dict[str, str] = {}
    for of in sorted(here.keys() | there.keys()):
        if here.get(of) != there.get(of):
            what, at = of
            shown.setdefault(
                what,
                f"{what} gives something else {OTHER}: at {at} {here.get(of, 'nothing')} here, and "
                f"{there.get(of, 'nothing')} under another hash seed, clock, host name, directory, "
                "time zone and order of readings",
            )
    return shown.values()


def _environment(seed: str) -> dict[str, str]:
    """Return the variables of the other process."""
    paths = [os.path.abspath(path) for path in (*sys.path, os.curdir)]  # noqa: PTH100 - as text
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONHASHSEED": seed if os.environ.get("PYTHONHASHSEED") != seed else "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TZ": "Pacific/Kiritimati" if os.environ.get("TZ") != "Pacific/Kiritimati" else "UTC",
        "HOSTNAME": "elsewhere",
    }


class _Later(dt.datetime):
    """A clock that is ahead."""

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> "_Later":
        return cls.fromtimestamp(time.time(), tz)  # noqa: TID251 - it is the one that is ahead

    @classmethod
    def utcnow(cls) -> "_Later":
        return cls.now(dt.UTC).replace(tzinfo=None)


def _be_elsewhere(clock_s: float | None) -> None:
    """Have this process take itself for one of another machine and time; None: ahead of now."""
    clock = time.time  # noqa: TID251 - this is what is made another one
    ahead_s = _LATER_S if clock_s is None else clock_s - clock()
    replaced: dict[Any, dict[str, Any]] = {
        time: {
            "time": lambda: clock() + ahead_s,
            "time_ns": lambda: round((clock() + ahead_s) * 1e9),
        },
        dt: {"datetime": _Later},
        socket: {"gethostname": lambda: "elsewhere", "getfqdn": lambda _name="": "elsewhere"},
        platform: {"node": lambda: "elsewhere"},
        os: {"uname": lambda: os.uname_result(("", "elsewhere", "", "", ""))},
    }
    for module, functions in replaced.items():
        for name, function in functions.items():
            setattr(module, name, function)


def main() -> None:
    """Print what a program gives here, as JSON; it and the readings are standard input."""
    program, given, clock_s = json.load(sys.stdin)
    _be_elsewhere(clock_s)
    readings = [Reading(**each) for each in given]
    try:
        plan = load_plan(program)
    except CommandError as error:
        raise SystemExit(str(error)) from None
    answer, sys.stdout = sys.stdout, sys.stderr
    found = outcomes(plan, readings[::-1])
    json.dump([(what, at, gives) for (what, at), gives in found.items()], answer)


if __name__ == "__main__":
    main()
