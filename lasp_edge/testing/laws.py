"""Checks of folds and scans for a test suite: the laws of `lasp-edge check`, as assertions.

    from lasp_edge.testing import check_fold, check_program

    def test_my_fold_keeps_the_laws():
        check_fold(MyFold())

pytest is not needed; a failure is an AssertionError that shows the smallest counter-example.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from crdts import Lattice
from lasp_edge.checking.arguments import unnamed_arguments
from lasp_edge.checking.crdts import broken_law
from lasp_edge.checking.handlers import uncallable
from lasp_edge.checking.loops import captured
from lasp_edge.checking.memory import memories_of
from lasp_edge.checking.programs import EXAMPLES, folds_of, verdicts
from lasp_edge.checking.scans import flaws
from lasp_edge.checking.synchronised import broken_laws
from lasp_edge.checking.whole import all_tried
from lasp_edge.event import Event
from lasp_edge.folds.fold import Fold, as_fold
from lasp_edge.folds.numbers import PlausibleRange, Resolution
from lasp_edge.language.program import Program
from lasp_edge.ordered.calling import Failures
from lasp_edge.ordered.log import BEFORE_ALL_US, ScanLog
from lasp_edge.ordered.outputs import LogName
from lasp_edge.ordered.places import child_place
from lasp_edge.ordered.scan import Scan
from lasp_edge.ordered.synchronised import Synchronised

_NEVER_US = -BEFORE_ALL_US


def check_fold(
    fold: Any, *, resolution: str = "1", examples: int = EXAMPLES, seed: int = 0
) -> None:
    """Check that a fold keeps the laws that sliding and merging rest on.

    Its samples are in steps of `resolution`; `examples` cases are drawn by `seed` for each law.

    >>> from lasp_edge import folds
    >>> check_fold(folds.mean())

    Raises:
        AssertionError: a law is broken; the text shows the smallest counter-example.
        ValueError: it is no fold, or its definition cannot work.
    """
    __tracebackhide__ = True
    _complain(
        _complaints(
            "fold", as_fold(fold, of_events=True).at(Resolution(resolution)), examples, seed
        )
    )


def check_program(program: Program, *, examples: int = EXAMPLES, seed: int = 0) -> None:
    """Check every fold of a program, and run its functions on made-up readings.

    `examples` cases are drawn by `seed` for each law and fold.

    >>> from lasp_edge.examples.greenhouse import program
    >>> check_program(program)

    Raises:
        AssertionError: a law is broken; the text shows the smallest counter-example. Or a function
            cannot be called, or fails whatever it is given.
        ValueError: the program cannot be run as it stands.
    """
    __tracebackhide__ = True
    plan = program.plan()
    complaints = uncallable(plan)
    if not complaints:
        complaints = all_tried(plan).wrong
    seen = memories_of(plan)[0] + captured(plan) + unnamed_arguments(plan)
    complaints = seen + complaints
    for named in folds_of(plan):
        where = ", ".join(named.where)
        complaints += _complaints(where, named.fold, examples, seed, named.plausible)
    _complain(complaints)


def _complaints(
    where: str, fold: Fold, examples: int, seed: int, plausible: PlausibleRange | None = None
) -> list[str]:
    found = verdicts(fold, examples=examples, seed=seed, plausible=plausible)
    lines = [line for verdict in found if verdict.broken for line in verdict.lines()]
    return [f"{where}: {fold!r} breaks a law", *lines] if lines else []


def _complain(complaints: list[str]) -> None:
    __tracebackhide__ = True
    if complaints:
        raise AssertionError("\n  ".join(complaints))


def check_crdt(states: Sequence[Lattice]) -> None:
    """Check that a CRDT of one's own keeps the laws of a join, on all triples of some states.

    Its mutators make the states; small ones first give the smallest counter-example. A program
    declares the types of `crdts` alone; one's own is for `lasp_edge.dataflow` and for one's tests.

    >>> from crdts import GCounter, Replica
    >>> one = GCounter().increment(Replica(1, 7, "a"), 2)
    >>> check_crdt([GCounter(), one, one | one.increment(Replica(1, 9, "b"), 5)])

    Raises:
        AssertionError: a law is broken; the text shows it with the states.
    """
    __tracebackhide__ = True
    broken = broken_law(states)
    _complain([f"{type(states[0]).__name__} breaks a law: {broken}"] if broken else [])


def check_scan(
    scan: Scan,
    values: Sequence[Any],
    *,
    times_s: Sequence[float] = (),
    names: Sequence[str] = (),
    tags: Mapping[str, str] | None = None,
) -> None:
    """Check over some values that a scan's functions depend on their arguments alone.

    Of a `scans.Synchronised`, also that it keeps its laws, over cases drawn from these events.

    >>> from lasp_edge import scans
    >>> check_scan(scans.sessions(gap_s=5), [1, 2, 3], times_s=[0, 1, 20])

    The arguments are those of `scan_outputs`.

    Raises:
        AssertionError: they do not, or they give what is not plain.
    """
    __tracebackhide__ = True
    events = _events(values, times_s, names, tags)
    found = flaws(scan, events)
    if isinstance(scan, Synchronised) and not found:
        found = broken_laws(scan, [events]).wrong
    _complain([f"{scan!r}: {flaw}" for flaw in found])


def scan_outputs(
    scan: Scan,
    values: Sequence[Any],
    *,
    times_s: Sequence[float] = (),
    names: Sequence[str] = (),
    tags: Mapping[str, str] | None = None,
) -> list[Any]:
    """Return the outputs of a scan over the values of one key, once everything is over.

    >>> from lasp_edge import scans
    >>> scan_outputs(scans.differences(), [100, 130, 180])
    [30, 50]

    Args:
        scan: the scan.
        values: of its events, in their order.
        times_s: their times; each a second after the one before, where it is left out.
        names: the names of the events; "x", where it is left out.
        tags: of all events.

    Raises:
        AssertionError: the scan raised, or gave what is not plain.
    """
    __tracebackhide__ = True
    failures = Failures()
    log = ScanLog(scan, LogName(scan.name), failures)
    events = enumerate(_events(values, times_s, names, tags))
    changes = [(child_place((event.time_us, "pi-1", (), ()), n), event) for n, event in events]
    outputs = log.apply(changes, _NEVER_US) | log.advance(_NEVER_US)
    _complain([f"{scan!r}: {why}" for why in failures.places.values()])
    return [new.value for _, (_, new) in sorted(outputs.items())]


def _events(
    values: Sequence[Any],
    times_s: Sequence[float],
    names: Sequence[str],
    tags: Mapping[str, str] | None,
) -> list[Event]:
    return [
        Event(
            names[n] if names else "x",
            value,
            round((times_s[n] if times_s else n) * 1_000_000),
            "pi-1",
            tags or {},
        )
        for n, value in enumerate(values)
    ]
