"""The programs that a simulated world runs, and the releases of them.

A window's total tells which readings it holds, each one by itself: values are powers of four, so a
digit of the total in base four is how often one reading was counted.

    >>> sorted(trial().plan().windows)
    ['stamped_in_all', 'timed_by_room']
    >>> sorted(trial(release=1).plan().windows)
    ['added_later', 'stamped_in_all', 'timed_by_room']
"""

from functools import lru_cache

from crdts import BoundedLWWSet, Counter, ORSet
from lasp_edge import Event, Program, Update, folds
from lasp_edge.language.acting import FoldValue
from lasp_edge.language.declarations import EventType
from lasp_edge.language.plan import Plan
from lasp_edge.variables import Variable
from simulations.world.fleet_streamed import FleetOrder, declare_fleet_streams, order_of
from simulations.world.scenario import Scenario
from simulations.world.streamed import METERED, METERS, declare_streams

SLOTS = 16
"""Readings of a device that one pane of a room can tell apart: 4 ** 15 < 2 ** 31."""
BOUND = 8
"""Samples that a device keeps."""
AGE_S = 8
"""Seconds for which it keeps other ones of each room, where it has a value for each."""
TIMED, STAMPED, LATELY = "timed_by_room", "stamped_in_all", "lately"
OPERATED = "operated_by_room"
OPERATED_VALUES = {
    "span_s": ("20", "30", "10", None),
    "step_s": ("10", "20", "5", None),
    "above": ("0", "3", "100", "1000000000", None),
}
"""Parameter -> what operators give it; None: again what the program says."""
COLUMN, COLUMNS, COLUMN_ROOM = "column", "columns_in_all", "a"
COLUMN_PANE_S = 60
"""So long that an entry leaves, lands and grows before its pane is over."""
COLUMN_EARLIER_US = 100_000
"""How much earlier a line is in its column: what one by one is known of its time is not enough."""
"""An event that comes in columns, its window, and the room whose lines are given as it, too."""
SOON_S = 0.5
"""Within which readings of a meter leave, where they leave soon."""
RECORDED, LIVE = "recorded", "live"
"""The sources: one has times and a cursor, one is stamped on acceptance."""

HEARD, STALE_S = "heard", 60
"""The value that a device leaves which is silent for this many seconds."""
ALERT_ABOVE, ALERT_BELOW = 4, 2
"""Where the alert goes on, and off: means of powers of four are often between."""
WINDOW_HIGH, LONG_HIGH = "window_high", "long_high"
WINDOW_ABOVE, WINDOW_BELOW, LONG_ABOVE, LONG_S = 12, 1, 2, 20
"""Two alerts at a gateway, on means of a window: many are between the levels of the first one, and
the second one has to hold for some seconds."""
LEVEL, KEPT, LEVEL_DEFAULT = "level", "kept", "4"
ACTING_VALUES = {
    LEVEL: ("1", "4", "20", "300", None),
    KEPT: ("1", "3", "12", "16", None),
}
"""Parameter -> what operators give it: the level of two alerts, and how many samples of one set
are kept. None: again what the program says."""
LEVELLED = {"levelled": "held_here", "of_all": "everywhere"}
"""Alert that goes on above this level, and off where it is not reached -> what it watches."""
OF_ROOMS = {"warm_lately": LATELY, "warm_rooms": "rooms_everywhere"}
"""The same by room, where values have keys."""
RISEN: list[tuple[str, str]] = []
"""Device and room of each call for a value that has gone beyond a level, as `CALLED`."""
CALLED: list[tuple[str, str]] = []
"""Name and `inputs` of each value that a handler was called for; the world takes them after each
tick of a device."""


def room(event: Event) -> str:
    """Return the room that a reading was made in."""
    return event.tags["room"]


def trial(
    *,
    release: int = 0,
    keyed: bool = False,
    shared: bool = False,
    acting: bool = False,
    scans: bool = False,
    columns: bool = False,
    operated: bool = False,
    order: FleetOrder | None = None,
) -> Program:
    """Return a program that is small, and has what a fault can touch.

    Args:
        release: the second one has a window more; -1: the one before lacks the window by room, and
            another one is longer in it, with the same slide.
        keyed: it has dynamic variables with keys: one for all devices, and one of which samples
            are kept for some seconds.
        shared: it has a counter that all devices share.
        acting: it acts on its values, and has one that silent devices leave. Then, or if it has
            keys, alerts watch a window.
        columns: it has a window whose readings no function of its own sees.
        scans: it has streams, and windows over them; the second release has one stream more.
        operated: it has a window whose length, step and filter operators change.
        order: what it has over the fleet; None: it has no such stream.
    """
    program = Program("trial")
    timed, stamped = (program.event(name, resolution="1") for name in ("timed", "stamped"))
    samples = program.declare_dynamic(BoundedLWWSet(bound=BOUND), "samples")
    program.collect(timed, into=samples)
    here = program.fold(samples, folds.mean(), "here")
    everywhere = program.fold_dynamic(here, "everywhere")
    if keyed:
        _by_room(program, timed)
    if shared:
        _share(program, timed)
    if acting:
        _act(program, timed, here, everywhere, keyed=keyed)
    leave_s = SOON_S if order is not None and order.leaves_soon else None
    metered = program.event(METERED, resolution="1", leave_s=leave_s) if scans or order else None
    if scans and metered is not None:
        declare_streams(program, metered, (timed, stamped), release=release)
    if order is not None and metered is not None:
        declare_fleet_streams(program, metered, timed, order, release)
    if columns:
        column = program.event(COLUMN, resolution="1")
        program.window(COLUMNS, source=column, fold=folds.mean(), size_s=COLUMN_PANE_S)
    if operated:
        _operate(program, timed)
    _add_windows(program, timed, stamped, release, alerting=acting or keyed)
    return program


def _operate(program: Program, timed: EventType) -> None:
    """Let operators change how long a window is, how often one begins, and what counts in it."""
    span, step = program.parameter("span_s", "20"), program.parameter("step_s", "10")
    above = program.parameter("above", "0")
    program.window(
        OPERATED,
        source=timed,
        fold=folds.mean(),
        size_s=span,
        slide_s=step,
        key=room,
        uses=(above,),
        where=lambda event, at: event.value > at[above],
    )


def _add_windows(
    program: Program, timed: EventType, stamped: EventType, release: int, *, alerting: bool
) -> None:
    """Let a program have the windows of a release, and alerts on one of them."""
    if release >= 0:
        fold = folds.mean()
        program.window(TIMED, source=timed, fold=fold, size_s=20, slide_s=10, key=room)
    if release >= 0 and alerting:
        program.alert(WINDOW_HIGH, TIMED, above=WINDOW_ABOVE, below=WINDOW_BELOW)
        program.alert(LONG_HIGH, TIMED, above=LONG_ABOVE, for_s=LONG_S)
    size_s = 30 if release >= 0 else 60
    program.window(STAMPED, source=stamped, fold=folds.mean(), size_s=size_s, slide_s=30)
    if release > 0:
        program.window("added_later", source=timed, fold=folds.max(), size_s=40, slide_s=40)


@lru_cache(maxsize=512)  # as many as differ in a thousand worlds
def _plan(release: int, order: FleetOrder | None, **has: bool) -> Plan:
    return trial(release=release, order=order, **has).plan()


def plan_of(scenario: Scenario, release: int) -> Plan:
    """Return the plan of a release of a scenario's program."""
    names = ("keyed", "shared", "acting", "scans", "columns", "operated")
    order = order_of(scenario) if scenario.ordered else None
    return _plan(release, order, **{name: getattr(scenario, name) for name in names})


def sources_of(scenario: Scenario) -> tuple[str, ...]:
    """Return what the devices of a scenario read."""
    meters = (METERS,) if scenario.scans or scenario.ordered else ()
    return (*(() if scenario.stamped else (RECORDED,)), LIVE, *meters)


def _by_room(program: Program, timed: EventType) -> None:
    """Let each room have a value of its own, for the fleet, and for the last seconds here."""
    by_room = program.declare_dynamic(BoundedLWWSet(bound=2), "by_room", key=room)
    program.collect(timed, into=by_room)
    program.fold_dynamic(program.fold(by_room, folds.max(), "rooms_here"), "rooms_everywhere")
    recent = program.declare_dynamic(BoundedLWWSet(max_age_s=AGE_S), "recent", key=room)
    program.collect(timed, into=recent)
    program.fold(recent, folds.mean(), LATELY)


def _share(program: Program, timed: EventType) -> None:
    """Let all devices count their readings together, and take out what others have put in."""
    total, open_now = program.declare(Counter(), "total"), program.declare(ORSet(), "open_now")

    @program.on_event(timed)
    def counted(event: Event, update: Update) -> None:
        update(total, Counter.increment, 1)
        is_last = event.value != 1  # of some readings of a pane
        update(open_now, ORSet.remove if is_last else ORSet.add, room(event))


def _act(
    program: Program, timed: EventType, here: Variable, everywhere: Variable, *, keyed: bool
) -> None:
    """Let a program do what people do with values: leave out the silent, react, and alert."""
    program.fold_dynamic(here, HEARD, stale_after_s=STALE_S)
    program.alert("high", here, above=ALERT_ABOVE, below=ALERT_BELOW)
    level = program.parameter(LEVEL, LEVEL_DEFAULT, resolution="1")
    kept = program.parameter(KEPT, "12")
    held = program.declare_dynamic(BoundedLWWSet(bound=kept), "held")
    program.collect(timed, into=held)
    held_here = program.fold(held, folds.max(), "held_here")
    for name, watched in zip(LEVELLED, (held_here, everywhere), strict=True):
        program.alert(name, watched, above=level)
    for name, by_room in OF_ROOMS.items() if keyed else ():
        program.alert(name, by_room, above=level)

    @program.on_value(here)
    @program.on_value(everywhere)
    def moved(value: FoldValue, _update: Update) -> None:
        CALLED.append((value.name, value.inputs))

    def risen(value: FoldValue, _update: Update) -> None:
        RISEN.append((value.devices[0], value.key))

    if keyed:
        program.on_value(LATELY, above=ALERT_ABOVE, every_s=0)(risen)
