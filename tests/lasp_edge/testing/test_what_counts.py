"""What counts in a window, and under which key: the same on devices, a gateway and by hand."""

from decimal import Decimal

import pytest

from crdts import BoundedLWWSet
from lasp_edge import Program, folds, key_parts, scans
from lasp_edge.checking.handlers import uncallable
from lasp_edge.testing import check_program, replay

START_S = 1_764_028_800
ROOMS = [("attic", "1"), ("attic", "2"), ("cellar", "1")]


def house():
    program = Program("house")
    return program, program.event("warm", resolution="0.1")


def run(program, values, faults=()):
    given = [
        ("pi-1", "warm", value, START_S + n, {"room": ROOMS[n % 3][0], "floor": ROOMS[n % 3][1]})
        for n, value in enumerate(values)
    ]
    found = replay(program, given, faults=faults)
    assert found.failures == []
    return found


def test_a_filter_and_a_value_of_a_window_may_leave_out_the_parameters():
    program, warm = house()
    program.window(
        "w",
        source=warm,
        fold=folds.sum(),
        size_s=60,
        value=lambda event: event.value * 2,
        where=lambda event: event.value > 41,
    )
    assert uncallable(program.plan()) == []
    assert [row["sum"] for row in run(program, [20.0, 20.6, 21.0]).window("w")] == [83.2]


@pytest.mark.parametrize(
    ("where", "counted"),
    [
        (lambda event: 1, 2),
        (lambda event: Decimal(event.value > 20), 1),
        (lambda event: 0.0, 0),
        (lambda event: "false", None),
        (lambda event: None, None),
        (lambda event: event.value, None),
    ],
    ids=["1", "a decimal", "0.0", "a text", "None", "a number"],
)
def test_a_filter_gives_true_or_false_or_what_equals_them(where, counted):
    program, warm = house()
    program.window("w", source=warm, fold=folds.count(), size_s=60, where=where)
    program.window("all", source=warm, fold=folds.count(), size_s=60)
    program.result(program.filter(warm, where, "some"))
    found = replay(program, [("pi-1", "warm", 20, START_S), ("pi-1", "warm", 21, START_S + 1)])
    assert sum(row["count"] for row in found.window("w")) == (counted or 0)
    assert len(found.result("some")) == (counted or 0)
    assert [row["count"] for row in found.window("all")] == [2]
    named = [each.partition(" must give True or False, not ")[0] for each in found.failures]
    refused = ["failed: some: WrongAnswer: filter 'some'"]
    refused += ["failed: window w: WrongAnswer: where= of window 'w'"]
    assert named == (refused if counted is None else [])


@pytest.mark.parametrize("faults", [(), "rough"])
def test_a_window_over_a_scan_takes_a_filter_and_a_value_too(faults):
    program, warm = house()
    risen = program.scan("risen", source=warm, scan=scans.differences(), per_device=True)
    program.window(
        "up",
        source=risen,
        fold=folds.sum(),
        size_s=10,
        where=lambda event: event.value > 0,
        value=lambda event: event.value * 10,
    )
    found = run(program, [20.0, 20.5, 20.1, 20.2], faults)
    assert [row["sum"] for row in found.window("up")] == [6.0]


@pytest.mark.parametrize("faults", [(), "rough"])
def test_a_key_of_several_parts_is_one_key_of_them_everywhere(faults):
    program, warm = house()
    parts = {"key": lambda event: (event.tags["room"], int(event.tags["floor"]))}
    program.window("w", source=warm, fold=folds.count(), size_s=60, **parts)
    samples = program.declare_dynamic(BoundedLWWSet(bound=5), "samples", **parts)
    program.collect(warm, into=samples)
    fleet = program.fold_dynamic(program.fold(samples, folds.max(), "here"), "fleet")
    program.alert("hot", fleet, above=21)
    changed = program.scan("c", source=warm, scan=scans.changes(), per_device=True, **parts)
    program.result(changed)
    program.window(
        "again",
        source=changed,
        fold=folds.count(),
        size_s=60,
        key=lambda event: (*key_parts(event.key), "again"),
    )
    found = run(program, [20.0, 20.5, 20.1, 22.0], faults)
    keys = [("attic", 1), ("attic", 2), ("cellar", 1)]
    assert [row["key"] for row in found.window("w")] == keys
    assert [row["key"] for row in found.window("again")] == [(*key, "again") for key in keys]
    assert found.value("fleet", ("attic", 1)).number == 22.0
    assert {row["key"] for row in found.result("c")} == set(keys)
    assert {row["key"]: row["state"] for row in found.alerts}["attic", 1] == "on"


@pytest.mark.parametrize("key", [("attic", 2.5), ("attic", True), (), ("a", ("b",)), ("x" * 300,)])
def test_a_key_of_other_parts_is_refused(key):
    program, warm = house()
    program.window("w", source=warm, fold=folds.count(), size_s=60, key=lambda event: key)
    found = replay(program, [("pi-1", "warm", 20.0, START_S)])
    assert found.window("w") == []
    assert "or a tuple of texts and whole numbers" in " ".join(found.failures)


@pytest.mark.parametrize("faults", [(), "rough"])
def test_texts_are_counted_by_what_they_say(faults):
    program = Program("shop")
    item = program.event("item", text=True)
    named = {"size_s": 60, "key": lambda event: (event.value, event.tags["till"])}
    count = {"value": lambda event: 1, "where": lambda event: event.value != "bag"}
    program.window("sold", source=item, fold=folds.sum(), **named, **count)
    program.window("letters", source=item, fold=folds.max(), value=lambda e: len(e.value), size_s=9)
    assert uncallable(program.plan()) == []
    check_program(program, examples=3)
    given = [
        (f"pi-{n % 2}", "item", text, START_S + n, {"till": str(n % 2)})
        for n, text in enumerate(["tea", "bag", "tea", "é", "tea", "bag", "milk", ""])
    ]
    found = replay(program, given, faults=faults)
    sold = {row["key"]: row["sum"] for row in found.window("sold")}
    assert sold == {("tea", "0"): 3.0, ("milk", "0"): 1.0, ("é", "1"): 1.0, ("", "1"): 1.0}
    assert [row["max"] for row in found.window("letters")] == [4.0]
    assert found.failures == []


@pytest.mark.parametrize("faults", [(), "rough"])
def test_a_window_over_a_stream_of_texts_or_pairs_counts_them(faults):
    program = Program("logs")
    line = program.event("line", text=True)
    words = program.flat_map(line, lambda event: event.value.lower().split(), "words")
    pairs = program.map(words, lambda event: (event.value, len(event.value)), "pairs")
    new = program.scan(
        "new", source=words, scan=scans.changes(), key=lambda e: e.value, per_device=True
    )
    spoken = {"size_s": 60, "key": lambda event: event.value}
    one = {"value": lambda event: 1}
    program.window("of_one", source=words, fold=folds.sum(), **spoken, **one)
    program.window("counted", source=words, fold=folds.count(), **spoken)
    program.window(
        "lines", source=line, fold=folds.struct(n=folds.count(), of=folds.count()), size_s=60
    )
    program.window("both", source=[line, words], fold=folds.count(), size_s=60)
    program.window("new_words", source=new, fold=folds.count(), size_s=60)
    program.window(
        "letters",
        source=pairs,
        fold=folds.max(),
        size_s=60,
        value=lambda event: event.value[1],
        where=lambda event: event.value[0] != "started",
        key=lambda event: event.value[0][:1],
    )
    check_program(program, examples=3)
    said = ["Disk full", "disk started", "full"]
    given = [(f"pi-{n % 2}", "line", text, START_S + n) for n, text in enumerate(said)]
    found = replay(program, given, faults=faults)
    several = {"disk": 2, "full": 2, "started": 1}
    for name, part in (("of_one", "sum"), ("counted", "count")):
        assert {row["key"]: row[part] for row in found.window(name)} == several
    assert [(row["n"], row["of"]) for row in found.window("lines")] == [(3, 3)]
    assert [row["count"] for row in found.window("both")] == [8]
    assert [row["count"] for row in found.window("new_words")] == [4]
    assert {row["key"]: row["max"] for row in found.window("letters")} == {"d": 4.0, "f": 4.0}
    assert found.failures == []


@pytest.mark.parametrize("text", [True, False])
def test_a_value_of_a_text_or_a_pair_that_is_not_whole_is_refused_and_not_rounded(text):
    program = Program("till")
    sold = program.event("sold", text=True)
    pairs = program.map(sold, lambda event: tuple(event.value.split(";")), "pairs")
    program.window(
        "spent",
        source=sold if text else pairs,
        fold=folds.sum(),
        size_s=60,
        value=lambda event: float(event.value.split(";")[1] if text else event.value[1]),
    )
    given = [("a", "sold", "tea;2.50", START_S), ("a", "sold", "soup;4", START_S + 1)]
    found = replay(program, given)
    assert [row["sum"] for row in found.window("spent")] == [4.0]
    (why,) = found.failures
    of = "readings" if text else "pairs"
    assert f"window 'spent' must give a whole number, as '{of}' has no single step: count" in why


def test_equal_tags_give_windows_and_scans_the_same_key_in_whatever_order_they_come():
    program = Program("paths")
    seen = program.event("seen", resolution="1")

    def path(event):
        return "/".join(event.tags.values())

    program.window("by_path", source=seen, fold=folds.count(), size_s=60, key=path)
    for name, is_own in (("own", True), ("whole", False)):
        scan = program.scan(name, source=seen, scan=scans.changes(), key=path, per_device=is_own)
        program.result(scan)
    tags = {"room": "a", "floor": "1"}
    readings = [("d", "seen", n, 1_764_028_800 + n, tags) for n in (1, 2)]
    turned = dict(reversed(tags.items()))
    found = replay(program, [*readings, ("d", "seen", 3, 1_764_028_803, turned)])
    assert [(row["key"], row["count"]) for row in found.window("by_path")] == [("1/a", 3)]
    assert {row["key"] for name in ("own", "whole") for row in found.result(name)} == {"1/a"}


class Lot(scans.Synchronised):
    """The highest bid of each lot and how many there were; the hammer ends a lot."""

    name, parts, zero, empty = "lot", {"best": "1", "bids": "1"}, (0, 0), (0, 0)
    depends = (("hammer", "bid"), ("hammer", "hammer"))

    def step(self, state, event):
        if event.name == "bid":
            return (max(state[0], int(event.value)), state[1] + 1), []
        return (0, 0), [state]

    def join(self, state, part):
        return max(state[0], part[0]), state[1] + part[1]


@pytest.mark.parametrize("faults", [(), "rough"])
def test_what_devices_do_at_home_gives_the_rows_of_one_order(faults):
    program = Program("auction")
    bid = program.event("bid", resolution="1", least=0)
    lots = program.scan("lots", source=[bid, program.event("hammer")], scan=Lot, local=bid)
    program.result(lots)
    given = [("a", "bid", 5), ("b", "bid", 9), ("a", "bid", 7), ("c", "hammer", 1), ("b", "bid", 2)]
    given += [("c", "hammer", 1), ("a", "bid", 3)]
    found = replay(program, [(*one, START_S + n) for n, one in enumerate(given)], faults=faults)
    assert [(row["best"], row["bids"]) for row in found.result("lots")] == [(9, 3), (2, 1)]
    assert found.failures == []


@pytest.mark.parametrize("fold", [folds.count(), folds.sum(), folds.min()], ids=str)
@pytest.mark.parametrize("late_at", [1, 5])
def test_a_row_stays_whose_outputs_a_late_reading_takes_back(fold, late_at):
    program = Program("gate")
    door = program.event("door", resolution="1", least=0, most=1)
    turned = program.scan("turned", source=door, scan=scans.changes(), per_device=True)
    program.window("turns", source=turned, fold=fold, size_s=60)
    given = [("pi-1", "door", value, START_S + at) for at, value in [(-400, 0), (30, 1)]]
    given += [("pi-1", "door", 1, START_S + 1_000 + n) for n in range(3)]
    given.insert(late_at, ("pi-1", "door", 1, START_S - 390))
    found = replay(program, given)
    assert [row["start"].timestamp() for row in found.window("turns")] in (
        [START_S - 420],
        [START_S - 420, START_S],
    )
    (part,) = fold.parts
    assert [row[part] for row in found.window("turns")][1:] in ([], [0], [None])


def test_counts_in_a_session_are_whole_whatever_the_step_of_its_values():
    program = Program("meter")
    power = program.event("power", resolution="15")
    fold = folds.struct(
        bins=folds.histogram([30, 60]),
        kinds=folds.distinct(),
        n=folds.count(),
        some=folds.any(),
        every=folds.all(),
        most=folds.max(),
    )
    runs = scans.sessions(gap_s=30, fold=fold)
    program.result(program.scan("runs", source=power, scan=runs, per_device=True))
    values = [15, 15, 45, 45, 90, 0]
    given = [("pi-1", "power", value, START_S + n) for n, value in enumerate(values)]
    found = replay(program, given)
    assert found.failures == []
    (row,) = found.result("runs")
    counts = [row[part] for part in ("bins_bin_0", "bins_bin_1", "bins_bin_2", "kinds", "n")]
    assert counts == [3, 2, 1, 4, 6]
    assert {type(count) for count in counts} == {int}
    assert [row[part] for part in ("some", "every", "most")] == [1, 0, 90]
