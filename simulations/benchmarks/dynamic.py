"""fold_dynamic over a fleet: what one changed entry costs, by the number of devices.

Run: `python -m simulations.benchmarks dynamic`. A change goes the way of an agent's: a
device's columns become its entry, which is joined into `lasp_edge.aggregates.fleet`, its hash
replaced in the digest, and the fleet's total and digest asked for. With an inverse (mean) that
should not depend on the number of devices at all; without one (min) a tree of partials is climbed,
so each ten times as many devices add a few steps.

The recomputation is what stands in for it: the combination of all partials, and nothing else.
"""

import math
from collections.abc import Iterator
from typing import Any

from crdts import Entry, OwnedMap, Replica, Version
from lasp_edge import folds
from lasp_edge.aggregates.fleet import FleetFold
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.fold import Fold
from lasp_edge.protocol.entries import rows_of
from simulations.benchmarks.measure import MET, MISSED, Line, cpu_s

FLEETS = (10, 100, 1_000, 10_000, 100_000)
CHANGES = 2_000
FLAT = 2.0
"""O(1): the largest fleet's change costs at most this many times the smallest one's."""


def table(*, quick: bool = False) -> Iterator[Line]:
    """Yield the lines of this benchmark."""
    fleets = FLEETS[:-1] if quick else FLEETS
    yield from _curve("mean: with an inverse, O(1)", folds.mean(), fleets, FLAT)
    steps = math.ceil(math.log2(fleets[-1])) / math.ceil(math.log2(fleets[0]))
    yield from _curve("min: without one, O(log n)", folds.min(), fleets, FLAT * steps)


def partial_of(fold: Fold, device: int, seq: int) -> Partial:
    """Return a device's partial after its `seq`-th change."""
    value = 2_150 + device * 7_919 % 997 + seq * 31 % 89
    return fold.combine(fold.lift(value, 0), fold.lift(value + 3, 1))


SentEntry = tuple[str, Version, tuple[int, ...], tuple[tuple[Any, ...], ...]]
"""What a device sends: its name, the version, the seqs and the columns of its only key."""


def message(fold: Fold, device: int, seq: int) -> SentEntry:
    """Return a device's `seq`-th message."""
    columns = tuple((part,) for part in partial_of(fold, device, seq))
    replica = Replica(1, 123_456_789 + device, f"pi-{device}")
    return replica.device, Version.of(replica, seq), (seq,), columns


def take(entries: FleetFold, sent: SentEntry) -> None:
    """Join a message, as an agent does."""
    device, version, seqs, columns = sent
    entries.join(0, OwnedMap({device: Entry(version, rows_of(("",), seqs, columns))}))


def change_s(fold: Fold, devices: int) -> float:
    """Return the CPU seconds of one changed entry, its total and digest."""
    entries = FleetFold(fold)
    for device in range(devices):
        take(entries, message(fold, device, 1))
    seq = 1

    def prepare() -> list[SentEntry]:
        nonlocal seq
        seq += CHANGES
        return [message(fold, n * 7_919 % devices, seq + n) for n in range(CHANGES)]

    def change(messages: list[SentEntry]) -> None:
        for each in messages:
            take(entries, each)
            entries.total("")

    spent_s = cpu_s(change, prepare, rounds=3) / CHANGES
    newest = {n * 7_919 % devices: seq + n for n in range(CHANGES)}
    held = [partial_of(fold, device, newest.get(device, 1)) for device in range(devices)]
    assert entries.total("").partial == recomputed(fold, held), "equal to the recomputation"
    return spent_s


def recomputed(fold: Fold, partials: list[Partial]) -> Partial:
    """Return the combination of all partials."""
    total = fold.zero
    for partial in partials:
        total = fold.combine(total, partial)
    return total


def recomputation_s(fold: Fold, devices: int) -> float:
    """Return the CPU seconds of combining all partials once."""
    partials = [partial_of(fold, device, 1) for device in range(devices)]
    times = max(1, 20_000 // devices)
    return cpu_s(lambda _: [recomputed(fold, partials) for _ in range(times)], rounds=3) / times


def _curve(name: str, fold: Fold, fleets: tuple[int, ...], growth: float) -> Iterator[Line]:
    what = f"fold_dynamic, one device's entry changed, by the number of devices: {name}"
    first_s = 0.0
    for devices in fleets:
        spent_s = change_s(fold, devices)
        first_s = first_s or spent_s
        ratio = recomputation_s(fold, devices) / spent_s
        grown = spent_s / first_s
        words = f"{grown:.1f} times the cost at {fleets[0]}"
        if devices == fleets[-1]:
            words += f", <= {growth:.3g}{MET if grown <= growth else MISSED}"
        yield Line(what, f"{devices:,}", CHANGES * spent_s, spent_s, "s", ratio, words)
    yield Line(what, "", note="in brackets: how many times as long the recomputation takes")
