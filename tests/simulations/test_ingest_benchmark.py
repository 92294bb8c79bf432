"""The ingest benchmark: every way does the same job and comes to the same numbers."""

import pytest

from simulations.benchmarks import ingest
from simulations.benchmarks.ingest import BARE, MAP, Ours, Totals, bare, items, program
from simulations.benchmarks.measure import OURS, is_installed
from simulations.benchmarks.recordings import drawn, tiled

SECOND_US = 1_000_000


pytestmark = pytest.mark.usefixtures("frozen")


@pytest.fixture(scope="module")
def fleet():
    return tiled(drawn(), 6_000, 2)


@pytest.fixture(scope="module")
def truth(fleet):
    """What came of the readings, recomputed from their definition, without any of the ways."""
    found = {}
    for device, (times_us, values) in fleet.items():
        known = list(
            dict.fromkeys((t, round(v * 100)) for t, v in zip(times_us, values, strict=True))
        )
        last = [q for _, q in known[-100:]]
        panes = {}
        for time_us, quantised in known:
            panes.setdefault(time_us // 60_000_000 * 60_000_000, []).append(quantised)
        partials = {start: (len(qs), sum(qs)) for start, qs in panes.items()}
        found[device] = Totals(len(known), (len(last), sum(last)), partials)
    return found


def test_the_readings_are_of_so_many_devices_and_hold_a_repeat(fleet):
    assert len(fleet) == 6
    assert sum(len(values) for _, values in fleet.values()) == 6_000
    for times_us, values in fleet.values():
        assert len(times_us) == len(values) > len(set(zip(times_us, values, strict=True)))


@pytest.mark.parametrize(
    "ours",
    [
        Ours(program(60), 500),
        Ours(program(60), 5_000),
        Ours(program(60), 1, 100),
        Ours(program(60, handler=True), 500),
    ],
    ids=["columns", "one column", "one at a time", "by a handler"],
)
def test_our_ways_come_to_the_true_numbers(ours, fleet, truth):
    assert ours.core_only(fleet) == truth


def test_with_commits_it_is_the_same(fleet, truth):
    assert Ours(program(60), 500).with_commits(fleet) == truth


def test_the_bare_loop_comes_to_the_true_numbers(fleet, truth):
    assert bare(items(fleet), 60 * SECOND_US) == truth


@pytest.mark.skipif(not is_installed("bytewax"), reason="bytewax is not installed: extra `bench`")
@pytest.mark.parametrize("by_batch", [False, True])
def test_bytewax_comes_to_the_true_numbers(fleet, truth, by_batch):
    assert ingest.bytewax(items(fleet), 60 * SECOND_US, by_batch=by_batch) == truth


def test_a_way_that_comes_to_other_numbers_is_an_error(fleet, truth):
    wrong = truth | {next(iter(truth)): Totals(0, (0, 0), {})}
    with pytest.raises(RuntimeError, match="bare loop does not come to the same numbers"):
        ingest.measured({OURS: lambda: truth, BARE: lambda: wrong}, 1)


@pytest.mark.slow
def test_it_runs_quickly_and_has_a_line_for_every_way(monkeypatch):
    monkeypatch.setattr(ingest, "QUICK_READINGS", 4_000)
    lines = list(ingest.table(quick=True))
    first = [line for line in lines if line.what == lines[0].what]
    assert {"lasp-edge", "with commits", "bare loop", MAP} <= {line.way for line in first}
    assert all(line.figure and line.cpu_s for line in lines if not line.note.startswith("skipped"))
    assert next(line.goal for line in lines if line.way == OURS).startswith(">= 750 k readings/s")


def test_without_bytewax_it_says_so(monkeypatch):
    monkeypatch.setattr(ingest, "is_installed", lambda name: False)
    monkeypatch.setattr(ingest, "recorded", lambda: (drawn(), "drawn"))
    monkeypatch.setattr(ingest, "QUICK_READINGS", 1_000)
    skipped = [line for line in ingest.table(quick=True) if line.way == MAP]
    assert [line.note.partition(":")[0] for line in skipped] == ["skipped", "skipped"]
