"""Streams under test: a table of all stages and scans, and contents to run them over."""

from random import Random

from lasp_edge import Event, folds, scans
from lasp_edge.folds.numbers import Resolution
from lasp_edge.ordered.graph import StreamGraph, StreamNode
from lasp_edge.ordered.plain import encoded
from lasp_edge.ordered.stages import FilterStage, FlatMapStage, MapStage, ScanStage, UnionStage

SECOND_US = 1_000_000


def weight(value):
    """Return a whole number that any value has, the same in every run."""
    return sum(encoded(value))


def by_parity(event):
    return "even" if weight(event.value) % 2 == 0 else "odd"


def by_device(event):
    return event.device


def _scanned(scan, key=None):
    return lambda name, source: (StreamNode(name, ScanStage(scan, name, key), (source,)),)


def _single(kind, function):
    return lambda name, source: (StreamNode(name, kind(function), (source,)),)


def _both(name, source):
    left, right = f"{name} left", f"{name} right"
    return (
        StreamNode(left, MapStage(lambda event: ("left", event.value)), (source,)),
        StreamNode(right, FilterStage(lambda event: weight(event.value) % 3), (source,)),
        StreamNode(name, UnionStage(), (left, right)),
    )


def _again(seen):
    newest = seen[-1]
    goes_round = isinstance(newest, tuple) and newest[:1] == ("round",)
    return [] if goes_round else [("round", weight(seen) % 5)]


def _failing(event):
    if weight(event.value) % 4 == 0:
        raise ValueError("every fourth")
    return weight(event.value) % 7


SCANS = {
    "last": scans.last(3),
    "last, full": scans.last(2, partial=False),
    "running": scans.running(lambda state, event: (state * 31 + weight(event.value)) % 1009, 0),
    "differences": scans.differences(reset=True),
    "changes": scans.changes(),
    "sessions": scans.sessions(gap_s=3),
    "as_of": scans.as_of("x", "y", within_s=4),
    "pattern": scans.pattern(
        lambda event: weight(event.value) % 2, lambda event: weight(event.value) % 3, within_s=5
    ),
    "pattern, absent": scans.pattern(lambda event: weight(event.value) % 2, absent_s=2),
    "every": scans.every(3, len),
    "every, hopping": scans.every(3, len, step=2),
    "top": scans.top(2),
    "top, within": scans.top(2, within_s=3),
    "debounce": scans.debounce(for_s=2),
    "held_for": scans.held_for(lambda event: weight(event.value) % 2, for_s=2),
    "hysteresis": scans.hysteresis(above=4, below=-4),
    "rate": scans.rate(per_s=60, reset=True),
    "time_weighted_mean": scans.time_weighted_mean(every_s=4, hold_s=3),
    "as_of, last known": scans.as_of("x", "y", missing=0),
    "sessions, so far": scans.sessions(gap_s=3, so_far=True),
    "distinct": scans.distinct(),
    "distinct, within": scans.distinct(within_s=3),
    "loop": scans.loop(scans.last(2), _again),
    "sessions, sum": scans.sessions(gap_s=2, fold=folds.sum()).at(Resolution("1")),
}
"""Each built-in scan, some of them in several ways."""
STAGES = {
    "map": _single(MapStage, lambda event: weight(event.value) % 11),
    "map, failing": _single(MapStage, _failing),
    "filter": _single(FilterStage, lambda event: weight(event.value) % 3),
    "flat_map": _single(FlatMapStage, lambda event: list(range(weight(event.value) % 3))),
    "union": _both,
    "keyed": _scanned(scans.last(2), by_parity),
    "failing key": _scanned(scans.last(2), lambda event: "abc"[weight(event.value) % 4]),
} | {name: _scanned(scan, by_device) for name, scan in SCANS.items()}
"""Name -> what makes the nodes of a stream of that name from one source."""


def nodes_of(names):
    """Return the nodes of stages one after the other, from the event "x"."""
    nodes, source = [], "x"
    for n, name in enumerate(names):
        nodes += STAGES[name](f"{n}", source)
        source = f"{n}"
    return nodes


def graph_of(names):
    return StreamGraph(nodes_of(names))


def place_at(seconds, device="pi-1"):
    return (seconds * SECOND_US, device, (), ())


def drawn_event(rng, place):
    name = rng.choice("xxy")
    return Event(name, rng.choice([0, 1, 2, 3, 5, 8, 2.0, True]), place[0], place[1], {})


def drawn_change(rng, content, least_s=0):
    """Return a change of one item: a new one, another in its place, or none."""
    place = place_at(rng.randrange(least_s, 25), rng.choice(("pi-1", "pi-2")))
    old = content.get(place)
    new = None if old is not None and rng.random() < 0.4 else drawn_event(rng, place)
    return place, old, new


def as_bytes(content):
    """Return a content in a form whose equality is that of encodings."""
    return {
        place: encoded((event.name, event.value, event.time_us, event.device, event.key))
        for place, event in content.items()
    }


def seeded(seed):
    return Random(seed)
