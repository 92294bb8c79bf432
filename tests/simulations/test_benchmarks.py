"""The cost table: its figures are compared as they say, and a missing peer is no failure."""

import pytest

from lasp_edge.protocol.limits import NEVER_US
from simulations.benchmarks import __main__ as command
from simulations.benchmarks import (
    crdt_peers,
    crdts,
    dynamic,
    files,
    fleet_replay,
    measure,
    quantile,
    shared,
    sizes,
    start,
)
from simulations.benchmarks.measure import Line, quantity, rates, show, times
from simulations.benchmarks.ordered import flamestream, shuffled

pytestmark = pytest.mark.usefixtures("frozen")


def test_a_ratio_says_how_many_times_better_ours_is():
    ours, slower, faster = rates("adds", "adds/s", 100, {"ours": 2.0, "a": 8.0, "b": 1.0})
    assert (ours.ratio, slower.ratio, faster.ratio) == (None, 4.0, 0.5)
    assert (ours.figure, slower.figure, faster.figure) == (50.0, 12.5, 100.0)
    assert ours.goal == "", "none was set"
    ours, larger = measure.sizes("state", "B", {"ours": 10.0, "a": 25.0})
    assert (ours.ratio, larger.ratio, larger.cpu_s) == (None, 2.5, None)
    ours, longer = times("join", {"ours": 0.5, "a": 2.0})
    assert (ours.cpu_s, longer.cpu_s, longer.ratio) == (0.5, 2.0, 4.0)


@pytest.mark.parametrize(("goal", "words"), [(50, "met"), (50.1, "NOT met")])
def test_a_rates_goal_is_met_from_there_on(goal, words):
    (line,) = rates("adds", "adds/s", 100, {"ours": 2.0}, goal=goal)
    assert line.goal == f">= {quantity(goal, 'adds/s')}: {words}"


@pytest.mark.parametrize(("goal", "words"), [(10, "met"), (9.9, "NOT met")])
def test_a_sizes_goal_is_met_up_to_there(goal, words):
    (line,) = measure.sizes("state", "B", {"ours": 10.0}, goal=goal)
    assert line.goal == f"<= {quantity(goal, 'B')}: {words}"


@pytest.mark.parametrize(
    ("figure", "unit", "shown"),
    [
        (None, "B", "-"),
        (1_234.5, "B", "1.23 kB"),
        (999, "B", "999 B"),
        (2_500_000, "adds/s", "2.5 M adds/s"),
        (0.0123, "s", "12.3 ms"),
        (0.000_004_5, "s", "4.5 µs"),
        (2.0, "s", "2 s"),
        (0.000_000_001, "s", "1e-09 s"),
    ],
)
def test_figures_are_shown_with_three_digits(figure, unit, shown):
    assert quantity(figure, unit) == shown


def test_the_table_puts_a_comparison_into_one_block_with_its_notes_below():
    lines = [
        Line("adds", "ours", 0.5, 100.0, "adds/s", goal=">= 90 adds/s: met", note="in batches"),
        Line("adds", "peer", 1.0, 50.0, "adds/s", 2.0),
        measure.missing("adds", "other", "not installed"),
        Line("bytes", "ours", None, 10.0, "B"),
    ]
    table = list(show(lines))
    assert [line.split() for line in table] == [
        ["adds"],
        ["ours", "0.5000", "100", "adds/s", ">=", "90", "adds/s:", "met"],
        ["peer", "1.0000", "50", "adds/s", "(2x)"],
        ["other", "-"],
        ["ours:", "in", "batches"],
        ["other:", "skipped:", "not", "installed"],
        ["bytes"],
        ["ours", "10", "B"],
    ]


@pytest.fixture
def without_peers(monkeypatch):
    monkeypatch.delenv("LASP_TYPES_EBIN", raising=False)
    for module in (crdt_peers, sizes, quantile):
        monkeypatch.setattr(module, "is_installed", lambda _name: False)
    monkeypatch.setattr(crdts, "SIZE", 50)
    monkeypatch.setattr(crdts, "DELTAS", 50)
    monkeypatch.setattr(quantile, "SAMPLES", 2_000)
    monkeypatch.setattr(dynamic, "FLEETS", (10, 100, 1_000))
    monkeypatch.setattr(dynamic, "CHANGES", 50)
    monkeypatch.setattr(shared, "SIZES", (10, 100, 1_000))
    monkeypatch.setattr(shared, "CHANGES", 50)


def test_peers_that_are_not_there_are_skipped_with_a_word(without_peers, capsys):
    command.main(["--quick", "crdts", "sizes", "dynamic", "shared", "quantile", "gateway"])
    printed = capsys.readouterr().out
    assert "pycrdt: skipped: not installed: pip install 'lasp-edge[bench]'" in printed
    assert "reference: skipped: lasp-lang/types" in printed
    assert "ddsketch: skipped: not installed" in printed
    assert printed.count("== ") == 6
    assert "goals met" in printed.splitlines()[-1]


def test_the_way_of_each_part_of_the_core_is_counted_and_counts_alike_each_time():
    ways = {what: (trail.files, trail.moves, trail.functions) for what, trail in files.trails()}
    assert set(files.GOALS) < set(ways)
    for passed, moves, functions in ways.values():
        assert all((files.ROOT / name).exists() for name in passed)
        assert 1 < len(passed) <= functions
        assert len(passed) <= moves + 1
    assert ways == {what: (t.files, t.moves, t.functions) for what, t in files.trails()}


@pytest.mark.slow
@pytest.mark.broker
def test_a_started_agent_publishes_and_what_it_took_is_told():
    cpu, real, memory = start.table(quick=True)
    assert cpu.cpu_s == cpu.figure > 0.05, "nothing imports an agent in less"
    assert (real.unit, memory.unit) == ("s", "MiB")
    assert 10 < memory.figure < 100
    assert "<= 1 s" in cpu.goal
    assert "<= 30 MiB" in memory.goal


def test_a_goal_that_is_missed_is_counted_and_is_the_exit_code(monkeypatch, capsys):
    lines = [Line("a", "ours", goal="<= 1 B: met"), Line("b", "ours", goal="<= 1 B: NOT met")]
    monkeypatch.setattr(sizes, "table", lambda quick: iter([*lines, Line("c", "ours")]))
    assert command.main(["sizes"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "1 of 2 goals met"
    monkeypatch.setattr(sizes, "table", lambda quick: iter(lines[:1]))
    assert command.main(["sizes"]) == 0


def test_a_benchmark_that_is_not_there_is_named(capsys):
    with pytest.raises(SystemExit, match="2"):
        command.main(["sizes", "dmeo"])
    assert "no benchmark dmeo; there are ingest, crdts" in capsys.readouterr().err


def test_the_tombstone_scheme_never_shrinks_and_the_bounded_set_does_not_grow():
    tombstones, kept = [], []
    for count in (200, 400, 800):
        window = sizes.TombstoneWindow(100)
        for sample in zip(*sizes.samples(count), strict=True):
            window.add(sample)
        tombstones.append(len(window.encode()))
        kept.append(len(sizes.encode(sizes.bounded(count, 100))))
    assert tombstones[0] < tombstones[1] / 1.5 < tombstones[2] / 3
    assert max(kept) - min(kept) <= 8


def test_a_gateway_replays_no_more_than_flamestream_and_nothing_where_rows_wait():
    order = shuffled(3)
    assert fleet_replay.one_by_one(order) == flamestream(order)
    for scan, keyed in fleet_replay.SCANS.values():
        steps = fleet_replay.steps_an_item(scan, 3, keyed=keyed, wait_us=NEVER_US)
        assert steps == 1
