"""Every built-in fold over recorded data, against its plain definition."""

import pytest

from tests.end_to_end import spread, tables, truth
from tests.end_to_end.conftest import replayed

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.broker]
LINES = 6_000
"""Of the recording: some 100 windows, among them one of two readings, and all bins are met."""


@pytest.fixture(scope="module")
def spreads(tmp_path_factory, lines, spark):
    """Each window of ten minutes beside what its readings are like."""
    folder, lines = tmp_path_factory.mktemp("every fold"), lines[:LINES]
    options = {"program": spread.SPEC, "fields": tuple(spread.FIELDS)}
    site, _ = replayed(folder, truth.written(folder, lines), spark, **options)
    held = {
        (row["key"], int(row["start_us"])): row
        for row in tables.windows(site.lake, "spread_by_device")
    }
    given = {at: truth.spread(rows) for at, rows in truth.placed(lines, truth.SPREAD).items()}
    assert held.keys() == given.keys()
    return [(held[at], given[at]) for at in sorted(given)]


def number(text):
    """Return a printed number; None where nothing is printed."""
    return float(text) if text else None


def test_deviation_and_variance_are_the_exact_ones_rounded_once(spreads):
    for row, given in spreads:
        assert number(row["deviation"]) == given.deviation
        assert number(row["variance"]) == given.variance


def test_first_and_last_go_by_the_readings_own_time(spreads):
    for row, given in spreads:
        assert (number(row["first"]), number(row["last"])) == (
            float(given.first),
            float(given.last),
        )


def test_bins_hold_what_lies_between_their_edges(spreads):
    for row, given in spreads:
        assert tuple(int(row[f"bins_bin_{at}"]) for at in range(4)) == given.bins
    assert all(sum(given.bins[at] for _, given in spreads) for at in range(4))


def test_quantiles_are_within_one_percent_of_the_reading_of_their_rank(spreads):
    for row, given in spreads:
        for name, exact in (("quantile_p50", given.median), ("quantile_p99", given.p99)):
            assert abs(number(row[name]) - exact) <= abs(exact) * 0.01 * (1 + 1e-12)


def test_distinct_readings_are_estimated(spreads):
    for row, given in spreads:
        assert abs(int(row["distinct"]) - given.distinct) <= max(1, 0.02 * given.distinct)
    assert max(given.distinct for _, given in spreads) > 10


def test_the_three_greatest(spreads):
    for row, given in spreads:
        found = [number(row[f"top_{at}"]) for at in (1, 2, 3)]
        assert [value for value in found if value is not None] == list(map(float, given.top))


def test_any_and_all(spreads):
    for row, given in spreads:
        assert (row["any"], row["all"]) == (str(given.any), str(given.all))
