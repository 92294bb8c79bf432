"""The streams over the whole fleet of a simulated world's program: one drawn scan in one order.

>>> order_of(Scenario(seed=7, size=1, steps=1))[:5]
('as_of', '', True, False, 0)
"""

from random import Random
from typing import Any, Final, NamedTuple

from lasp_edge import Event, Program, folds, scans
from lasp_edge.language.declarations import EventType, Stream
from lasp_edge.ordered.scan import Scan
from lasp_edge.protocol.limits import NEVER_US
from lasp_edge.units import SECOND_US
from simulations.world.scenario import Scenario
from simulations.world.streamed import METERED

SCANS: Final = (*("sessions", "changes", "pattern", "absence", "last", "total", "words", "as_of"),)
"""The scans from which one is drawn; `words` is the word count, by its cycle."""
OVER_OUTPUTS: Final = ("changes", "absence", "last", "total", "words")
"""Those of them that may be made of what a scan of each device emits."""
OWN: Final = "own_steps"
"""The scan of each device."""
STEADY_S: Final = 3
"""Seconds that a value has to stay, where the scan of each device has timers."""
SYNCED: Final = ("fixed", "passed_on")
"""Synchronised scans, whose timed readings stay on their devices: the share is the same at all
times, or follows from the state."""
BEFORE: Final = ("", "filter", "flat_map")
"""What may stand between the readings and the scan."""
NEVER_S: Final = NEVER_US // SECOND_US
WAITS_S: Final = (0, 0, 0, 4, NEVER_S)
"""X: for how many seconds rows wait for devices before they are there, tentatively."""
TIMED: Final = "timed"
RESULT: Final = "all_of_them"
"""The result of the scan."""
GAP_S, WITHIN_S, HIGH, LOW = 2, 4, 5, 3
WIDE, NARROW_ONE = 2, 5
"""The least value that passes; in the first of two releases of which the second one widens it."""


class FleetOrder(NamedTuple):
    """What a world's program has over its fleet.

    Attributes:
        scan: of `SCANS` or `SYNCED`.
        before: of `BEFORE`.
        keyed: it is of each tap and room by itself.
        widens: the second release lets more readings pass than the first one.
        wait_s: X of the gateways.
        of_outputs: it is made of what a scan of each device emits, and not of readings.
        restates: in the first release the scan with local events counts otherwise.
        is_steady: that scan of each device gives a value once it has stayed: by time alone.
        leaves_soon: readings leave at once, so that a cell lands while it still grows.
    """

    scan: str
    before: str
    keyed: bool
    widens: bool
    wait_s: int
    of_outputs: bool = False
    restates: bool = False
    is_steady: bool = False
    leaves_soon: bool = False

    @property
    def differs(self) -> bool:
        """Whether sinks refuse what a device sends that runs the first release."""
        return self.widens or self.restates

    def least(self, release: int) -> int:
        """Return the least value that passes what stands before the scan."""
        if not self.before:
            return 0
        return NARROW_ONE if self.widens and release <= 0 else WIDE


def order_of(scenario: Scenario) -> FleetOrder:
    """Return what is drawn for a scenario; it widens a filter only where releases change.

    Where limits are narrow, entries that no sink takes any more would be in the store alone.
    """
    random = Random(f"{scenario.seed} order")
    scan, before = random.choice(SCANS), random.choice(BEFORE)
    keyed, widens = random.random() < 0.6, random.random() < 0.6  # noqa: PLR2004
    changes = any(fault.kind == "other_release" for fault in scenario.schedule)
    widens = widens and bool(before) and changes and not scenario.narrow
    wait_s = random.choice(WAITS_S)
    if scenario.synced:
        scan = random.choice(SYNCED)
        return FleetOrder(scan, "", keyed, widens=False, wait_s=wait_s, restates=changes)
    may_be = not changes and scan in OVER_OUTPUTS
    if may_be and Random(f"{scenario.seed} outputs").random() < 0.4:  # noqa: PLR2004
        is_steady = Random(f"{scenario.seed} timed").random() < 0.5  # noqa: PLR2004
        drawn = FleetOrder(scan, "", keyed, widens=False, wait_s=wait_s, of_outputs=True)
        return drawn._replace(is_steady=is_steady)
    return FleetOrder(scan, before, keyed, widens, wait_s, leaves_soon=scenario.soon)


def place_of(event: Event) -> str:
    """Return the tap or the room that a reading is of."""
    tags = event.tags
    return tags["tap"] if "tap" in tags else tags["room"]


def declare_fleet_streams(
    program: Program, metered: EventType, timed: EventType, order: FleetOrder, release: int
) -> None:
    """Let a program have a scan in one order over the fleet.

    Release -1 has no such scan, unless the second one widens its filter; or one in which the same
    readings are no local events.
    """
    if release < 0 and not order.widens and order.scan not in SYNCED:
        return
    source = _before(program, metered, order, release)
    if order.scan == "words":
        _count_words(program, source)
        return
    sources: list[EventType | Stream] = [source]
    if order.scan in {"as_of", *SYNCED}:
        sources.append(timed)
    key = place_of if order.keyed else None
    name = f"{RESULT}_first" if order.scan in {"last", "absence"} else RESULT
    left = source if order.before == "flat_map" else metered
    local = timed if order.scan in SYNCED and release >= 0 else None
    scan = _scan(order.scan, left, timed)
    version = 2 if order.restates and release > 0 else 1
    if order.restates and release <= 0:
        scan = Twice()
    found = program.scan(name, source=sources, scan=scan, key=key, local=local, version=version)
    if order.scan == "last":
        found = program.map(found, lambda event: sum(event.value), RESULT, resolution="1")
    if order.scan == "absence":
        found = program.map(found, _with_device, RESULT)
    program.result(found, parts=_PARTS.get(order.scan))


class Since(scans.Synchronised):
    """How many timed readings there were since the metered one before, and their sum."""

    name, zero, empty, parts = "since", (0, 0), (0, 0), {"count": "1", "sum": "1"}
    depends = ((METERED, TIMED), (METERED, METERED))

    def step(self, state: Any, event: Event) -> tuple[Any, list[Any]]:
        if event.name == METERED:
            return (0, 0), [state]
        return (state[0] + 1, state[1] + round(event.value)), []

    def join(self, state: Any, part: Any) -> Any:
        return state[0] + part[0], state[1] + part[1]


class Twice(Since):
    """Counts each reading twice, as the first release did."""

    def step(self, state: Any, event: Event) -> tuple[Any, list[Any]]:
        after, rows = super().step(state, event)
        return super().step(after, event) if event.name == TIMED else (after, rows)


class Epochs(scans.Synchronised):
    """Timed readings with the number of their epoch: what was made of two shares shows.

    Each of them has a row, so it shows, too, where a row is final before its device has sent it.
    """

    name, zero, parts = "epochs", (0, 0, 0), {"epoch": "1", "count": "1", "epochs": "1"}
    depends = ((METERED, TIMED), (METERED, METERED))

    def step(self, state: Any, event: Event) -> tuple[Any, list[Any]]:
        epoch, count, epochs = state
        if event.name == METERED:
            return (epoch + 1 + count % 3, 0, 0), [state]
        return (epoch, count + 1, epochs + epoch), [(epoch, -1, 0)]

    def share(self, state: Any) -> Any:
        return state[0], 0, 0

    def join(self, state: Any, part: Any) -> Any:
        return state[0], state[1] + part[1], state[2] + part[2]


_PARTS: Final = {
    "as_of": {"metered": "1", "timed": "1"},
    "total": {"total": "1"},
    "absence": {"at_us": "time", "of": "text"},
}


def _with_device(event: Event[tuple[int]]) -> tuple[int, str]:
    """Return what time brings with its device: of an order over a fleet it has none."""
    return event.value[0], event.device or "nobody"


def _scan(name: str, left: EventType | Stream, timed: EventType) -> Scan:
    high = scans.pattern(lambda e: e.value >= HIGH, lambda e: e.value < LOW, within_s=WITHIN_S)
    absence = scans.pattern(lambda event: event.value >= HIGH, absent_s=GAP_S)
    found: dict[str, Scan] = {
        "sessions": scans.sessions(gap_s=GAP_S, fold=folds.sum()),
        "changes": scans.changes(),
        "pattern": high,
        "absence": absence,
        "last": scans.last(2),
        "total": scans.running(lambda state, event: state + event.value, 0),
        "as_of": scans.as_of(left, timed, within_s=WITHIN_S),
        "fixed": Since(),
        "passed_on": Epochs(),
    }
    return found[name]


def _before(
    program: Program, metered: EventType, order: FleetOrder, release: int
) -> EventType | Stream:
    """Declare what stands before a scan; what it lets pass is its version's meaning."""
    is_wide = order.least(release) == WIDE
    version = 1 + (order.widens and is_wide)
    found: EventType | Stream = metered
    if order.of_outputs:
        own: Scan = scans.debounce(for_s=STEADY_S) if order.is_steady else scans.changes()
        found = program.scan(OWN, source=metered, scan=own, per_device=True)
    if order.before == "filter":
        passes = _passes_widely if is_wide else _passes_narrowly
        found = program.filter(metered, passes, "much", version=version)
    if order.before == "flat_map":
        halves = _halves_widely if is_wide else _halves_narrowly
        found = program.flat_map(metered, halves, "halves", resolution="1", version=version)
    return found


def _passes_widely(event: Event) -> bool:
    return bool(event.value >= WIDE)


def _passes_narrowly(event: Event) -> bool:
    return bool(event.value >= NARROW_ONE)


def _halves_widely(event: Event) -> list[float]:
    return [event.value, event.value // 2] if event.value >= WIDE else []


def _halves_narrowly(event: Event) -> list[float]:
    return [event.value, event.value // 2] if event.value >= NARROW_ONE else []


def _count_words(program: Program, source: EventType | Stream) -> None:
    """Declare the word count: its graph has a cycle, and a word is a digit of a reading."""
    words = program.flat_map(source, _words, "words")
    cycle = scans.loop(scans.last(2), combined)
    counts = program.scan(RESULT, source=words, key=lambda event: event.value[1], scan=cycle)
    program.result(counts, parts={"kind": "text", "word": "text", "count": "1"})


def _words(event: Event) -> list[tuple[str, str, int]]:
    """Return what a reading consists of, in base three: equal digits are equal words."""
    digits = f"{int(event.value) // 3}{int(event.value) % 3}"
    return [("m", digit, 1) for digit in digits]


def combined(seen: tuple[tuple[str, str, int], ...]) -> list[tuple[str, str, int]]:
    """Add a word that is mapped (m) to what was counted of it before, its reduced count (r)."""
    if len(seen) == 1 and seen[0][0] == "m":
        return [("r", *seen[0][1:])]
    if [each[0] for each in seen] == ["r", "m"]:
        return [("r", seen[1][1], seen[0][2] + seen[1][2])]
    return []  # (m, r) is combined already
