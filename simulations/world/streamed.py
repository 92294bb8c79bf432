"""The streams of a simulated world's program: all that needs an order, and can be taken back."""

from typing import Any

from crdts import ORSet
from lasp_edge import Event, Program, Update, folds, scans
from lasp_edge.language.declarations import EventType, Stream
from lasp_edge.language.streaming import StreamRow

METERS, METERED = "meters", "metered"
"""The source of a device's meter, and its event: what streams are made from."""
BOTH, BOTH_WITHIN_S = "both", 5
"""The as-of join of the recording and the meter, and the seconds that it looks back."""
ALARMED = "quiet"
"""The result whose handler tells everybody."""
OF_STAMPED = frozenset({"presses"})
"""Results of what is stamped on acceptance: a clock that was ahead makes such a reading late."""

VALUES_HIGH = 4
"""A meter that reads more than this is to be read again soon."""


def tap_of(event: Event) -> str:
    """Return the tap that a meter reading is of."""
    return event.tags["tap"]


def key_of(event: Event) -> str:
    """Return the key of a scan's item."""
    return event.key


def declare_streams(
    program: Program, metered: EventType, others: tuple[EventType, EventType], *, release: int
) -> None:
    """Let a program compare readings with those before; the second release does so once more.

    Args:
        program: the program.
        metered: what a meter reads.
        others: what a recording has, and what is stamped on acceptance.
        release: of the program.
    """
    timed, stamped = others
    used = _use(program, metered, release)
    flowing = program.filter(used, lambda event: event.value > 0, "flowing")
    runs = scans.sessions(gap_s=4, fold=folds.sum())
    program.result(program.scan("runs", source=flowing, scan=runs, key=key_of, per_device=True))
    _silence(program, metered)
    # The one that is emitted has the lesser name: at one time, it stands before what it is to meet.
    join = scans.as_of(metered, timed, within_s=BOTH_WITHIN_S)
    both = program.scan(BOTH, source=[metered, timed], scan=join, per_device=True)
    program.result(both, parts={"metered": "1", "timed": "1"})
    # Equal numbers of two kinds, 1 and 1.0: a row of one is no row of the other.
    mixed = program.map(
        metered, lambda e: int(e.value % 2) if tap_of(e) == "a" else e.value % 2, "mixed"
    )
    first = scans.running(lambda state, e: state if state == e.value else e.value, 0)
    firsts = program.scan("firsts", source=mixed, scan=first, per_device=True)
    program.result(firsts, parts={"first_of_equals": "1"})
    pairs = program.scan("presses", source=stamped, scan=scans.every(2, len), per_device=True)
    program.result(pairs, parts={"count": "1"})


def _use(program: Program, metered: EventType, release: int) -> Stream:
    """Declare what was used by each tap, and windows over that and over the meter itself."""
    used = program.scan(
        "used", source=metered, scan=scans.differences(reset=True), key=tap_of, per_device=True
    )
    program.result(used)
    window: dict[str, Any] = {"fold": folds.mean(), "size_s": 20, "slide_s": 10}
    program.window("metered_by_tap", source=metered, key=tap_of, **window)
    program.window("used_by_tap", source=used, key=key_of, **window)
    program.window(
        "metered_at_a", source=metered, where=lambda event, _at: tap_of(event) == "a", **window
    )
    if release > 0:
        changed = program.scan(
            "changed", source=used, scan=scans.changes(), key=key_of, per_device=True
        )
        program.result(changed)
    return used


def _silence(program: Program, metered: EventType) -> None:
    """Declare what comes by time alone, and tell everybody once it is final."""
    alarms = program.declare(ORSet(), "alarms")
    silence = scans.pattern(lambda event: event.value > VALUES_HIGH, absent_s=3)
    quiet = program.scan(ALARMED, source=metered, scan=silence, key=tap_of, per_device=True)
    program.result(quiet)

    @program.on_result(quiet)
    def reported(row: StreamRow, update: Update) -> None:
        update(alarms, ORSet.add, f"{row.key} {row.time_us}")
