"""The cases of FlameStream's own tests (flame-stream/FlameStream, commit bf864a62), exact.

Its tuples carry a time, and a trace of what they were made from: here, the path of a place. Its
`undoPartialWindows` is `last(n, partial=False)`; the window that is not full yet is its state.
"""

from collections import Counter
from random import Random

import pytest

from lasp_edge import Event, scans
from lasp_edge.ordered.calling import Failures
from lasp_edge.ordered.deltas import applied
from lasp_edge.ordered.graph import StreamGraph, StreamNode
from lasp_edge.ordered.log import ScanLog
from lasp_edge.ordered.outputs import LogName
from lasp_edge.ordered.stages import FilterStage, FlatMapStage, MapStage, ScanStage, UnionStage
from simulations.world.fleet_streamed import combined
from tests.lasp_edge.ordered.support_flamestream import FULL, GROUPING, at


def event(value, time_us=0):
    return Event("x", value, time_us, "", {})


def grouped(arrivals, n, *, partial=True):
    """Return what a grouping says in the end, and its log; a value of None takes an item back."""
    log = ScanLog(scans.last(n, partial=partial), LogName("groups"), Failures())
    said = {}
    for place, value in arrivals:
        change = None if value is None else event(value, place[0])
        said = applied(log.apply([(place, change)], None), said)
    return {saying.value for saying in said.values()}, log


@pytest.mark.parametrize("case", GROUPING)
def test_grouping_of_two(case):
    arrivals, expected = GROUPING[case]
    assert grouped(arrivals, 2)[0] == expected


@pytest.mark.parametrize(
    ("n", "order", "expected"),
    [
        (None, (1, 2, 3), {(1, 2, 3)}),
        (None, (2, 1, 3), {(1, 2, 3)}),
        *FULL,
    ],
)
def test_partial_windows_are_undone(n, order, expected):
    said, log = grouped([(at(each), each) for each in order], n or 2**31, partial=False)
    assert (said or {log.state}) == expected


def test_shuffle_reordering():
    arrivals = [(at(n), f"v{n}") for n in range(1000)]
    Random(2).shuffle(arrivals)
    said, _ = grouped(arrivals, 6)
    assert said == {tuple(f"v{k}" for k in range(max(0, n - 5), n + 1)) for n in range(1000)}


def run_shuffled(nodes, values, seed=3, batch=50):
    """Return what the last of these streams says of values, which come in any order."""
    graph, said = StreamGraph(nodes), {}
    arrivals = [(at(n), event(value, n)) for n, value in enumerate(values)]
    Random(seed).shuffle(arrivals)
    for first in range(0, len(arrivals), batch):
        delta = {place: (None, new) for place, new in arrivals[first : first + batch]}
        said = applied(graph.update({"x": delta}).get(nodes[-1].name, {}), said)
    return [said[place].value for place in sorted(said)]


def times(factor):
    return MapStage(lambda found: found.value * factor)


def test_linear_filter():
    """FilterAcceptanceTest: four maps after each other, times -1, -2, -3 and -4."""
    nodes = [StreamNode(f"{n}", times(-n), ("x" if n == 1 else f"{n - 1}",)) for n in (1, 2, 3, 4)]
    values = [Random(1).randrange(-(2**31), 2**31) for _ in range(1000)]
    assert run_shuffled(nodes, values) == [24 * value for value in values]


def test_broadcast():
    """BroadcastAcceptanceTest: to four branches, grouped by value, and to four branches again."""

    def broadcast(name, source):
        branches = [
            StreamNode(f"{name}{n}", MapStage(lambda e: e.value), (source,)) for n in "abcd"
        ]
        return [*branches, StreamNode(name, UnionStage(), tuple(node.name for node in branches))]

    nodes = [
        *broadcast("first", "x"),
        StreamNode("groups", ScanStage(scans.last(1), "groups", lambda e: e.value), ("first",)),
        StreamNode("texts", MapStage(lambda e: e.value[0]), ("groups",)),
        *broadcast("second", "texts"),
    ]
    said = Counter(run_shuffled(nodes, [str(n) for n in range(250)]))
    assert said == dict.fromkeys([str(n) for n in range(250)], 16)


def test_sum_by_a_cycle_is_in_the_order_of_the_items():
    """SumTest, totalOrderTest: groups of two, without those in the wrong order."""

    def added(seen):
        if len(seen) == 1 and seen[0][0] == "number":
            return [("sum", seen[0][1])]
        if [kind for kind, _ in seen] == ["sum", "number"]:
            return [("sum", seen[0][1] + seen[1][1])]
        return []

    values = [Random(2).randrange(100) for _ in range(300)]
    nodes = [
        StreamNode("numbers", MapStage(lambda e: ("number", e.value)), ("x",)),
        StreamNode("sums", ScanStage(scans.loop(scans.last(2), added), "sums"), ("numbers",)),
    ]
    assert run_shuffled(nodes, values) == [
        ("sum", sum(values[: n + 1])) for n in range(len(values))
    ]


def hashed(values):
    """Java's hash of a list of Integers."""
    found = 1
    for value in values:
        found = (31 * found + value + 2**31) % 2**32 - 2**31
    return found


def bucket(value):
    return str(abs(value) % 20)


def test_three_groupings_one_after_the_other():
    """DoubleGroupingTest: window 2, 20 buckets, the hash of each group goes into the next one."""
    nodes = []
    for n, source in enumerate(("x", "hash 0", "hash 1")):
        groups = ScanStage(scans.last(2), f"groups {n}", lambda e: bucket(e.value))
        nodes.append(StreamNode(f"groups {n}", groups, (source,)))
        hashes = MapStage(lambda e: hashed(e.value))
        nodes.append(StreamNode(f"hash {n}", hashes, (f"groups {n}",)))
    rng = Random(5)
    values = [rng.randrange(-(2**31), 2**31) for _ in range(1_000)]
    expected = values
    for _ in range(3):
        buckets: dict = {}
        values_before, expected = expected, []
        for value in values_before:
            buckets.setdefault(bucket(value), []).append(value)
            expected.append(hashed(buckets[bucket(value)][-2:]))
    assert run_shuffled(nodes, values) == expected


def test_parity_groups():
    """The parity example: 1 to 8 by parity, grouped by three."""
    stage, said = ScanStage(scans.last(3), "groups", lambda e: str(e.value % 2)), []
    for n in range(1, 9):
        said += [new.value for _, new in stage.push([{at(n): (None, event(n, n))}]).values()]
    assert said == [(1,), (2,), (1, 3), (2, 4), (1, 3, 5), (2, 4, 6), (3, 5, 7), (4, 6, 8)]


def test_words_are_counted_by_a_cycle():
    """The dog steps of the paper, then 50 words in lines that come in any order."""
    log = ScanLog(scans.loop(scans.last(2), combined), LogName("counts", "dog"), Failures())
    for n in (1, 2):
        (said,) = log.apply([(at(n), event(("m", "dog", 1), n))], None).values()
        assert said[1].value == ("r", "dog", n)
        assert log.state == (("r", "dog", n),)
    rng = Random(1)
    lines = [" ".join(f"w{rng.randrange(50)}" for _ in range(50)) for _ in range(60)]
    words = FlatMapStage(lambda e: [("m", word, 1) for word in e.value.split()])
    counts = ScanStage(scans.loop(scans.last(2), combined), "counts", lambda e: e.value[1])
    nodes = [StreamNode("words", words, ("x",)), StreamNode("counts", counts, ("words",))]
    so_far: Counter = Counter()
    expected = []
    for word in " ".join(lines).split():
        so_far[word] += 1
        expected.append(("r", word, so_far[word]))
    assert run_shuffled(nodes, lines, batch=10) == expected


def test_what_a_filter_kept_of_a_group_that_is_no_more_goes():
    """Window 2, even sums kept, 2 before 1: by its own rule FlameStream leaves (2) for ever."""
    nodes = [
        StreamNode("groups", ScanStage(scans.last(2), "groups"), ("x",)),
        StreamNode("even", FilterStage(lambda e: sum(e.value) % 2 == 0), ("groups",)),
    ]
    graph, said = StreamGraph(nodes), {}
    shown = []
    for n in (2, 1):
        delta = graph.update({"x": {at(n): (None, event(n, n))}}).get("even", {})
        said = applied(delta, said)
        shown.append([saying.value for saying in said.values()])
    assert shown == [[(2,)], []]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [(6, 8, "replace"), (6, 4, "delete"), (4, 6, "insert"), (4, 1, "nothing")],
)
def test_a_filter_of_revised_values(old, new, expected):
    """Borealis: x > 5."""
    delta = FilterStage(lambda e: e.value > 5).push([{at(1): (event(old), event(new))}])
    kinds = {(True, True): "replace", (True, False): "delete", (False, True): "insert"}
    found = [kinds[before is not None, after is not None] for before, after in delta.values()]
    assert (found or ["nothing"]) == [expected]


def test_it_is_replayed_as_seldom_as_flamestream_does():
    """Steps an item, against `Grouping.apply` on the same shuffle; fewer in batches."""
    rng, window = Random(0), 3
    order = sorted(range(1000), key=lambda n: (n + rng.randint(0, 2), n))
    theirs, here = 0, []
    for n in order:
        here = sorted([*here, n])
        first = here.index(n)
        theirs += min(first + window, len(here)) - first  # each group that holds it leaves again
    steps = []
    for batch in (1, 10):
        log = ScanLog(scans.last(window), LogName("groups"), Failures())
        for first in range(0, len(order), batch):
            changes = sorted((at(n), event(n, n)) for n in order[first : first + batch])
            log.apply(changes, None)
        steps.append(log.steps)
    assert steps[0] == theirs
    assert steps[1] <= 1.05 * len(order)
