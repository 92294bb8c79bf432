"""A value that has a step is that step's multiple for all: map, filter, scan, window and result."""

from decimal import Decimal
from fractions import Fraction

import pytest

from lasp_edge import Program, folds, scans
from lasp_edge.testing import replay

START_S = 1_764_028_800
WARM = [20.4, 20.04, 20.06, 19.96]


class Halves(scans.Scan):
    """Half of each value, in steps that it does not keep by itself."""

    name, version = "halves", 1

    def at(self, resolution):
        self.resolution = resolution
        return self

    def step(self, state, event):
        return state, (event.value / 2,)


def program_of(made):
    program = Program("steps")
    warm = program.event("warm", resolution="0.01")
    stream = made(program, warm)
    above = program.filter(stream, lambda event: event.value > 20, "above")
    program.result(above)
    program.window("count", source=above, fold=folds.count(), size_s=60)
    program.window("all", source=stream, fold=folds.sum(), size_s=60)
    return program


def mapped(program, warm):
    return program.map(warm, lambda event: Decimal(str(event.value)), "tenths", resolution="0.1")


def thirds(program, warm):
    return program.map(warm, lambda event: Fraction(str(event.value)), "tenths", resolution="0.1")


def flat(program, warm):
    return program.flat_map(warm, lambda event: [event.value], "tenths", resolution="0.1")


def united(program, warm):
    return program.union(mapped(program, warm), flat_named(program, warm), "both")


def flat_named(program, warm):
    return program.flat_map(warm, lambda event: [], "none", resolution="0.1")


def run(program, values=WARM):
    given = [("a", "warm", value, START_S + n) for n, value in enumerate(values)]
    return replay(program, given)


@pytest.mark.parametrize("made", [mapped, thirds, flat, united])
def test_a_filter_sees_the_value_that_a_window_counts(made):
    found = run(program_of(made))
    assert [row["value"] for row in found.result("above")] == [20.4, 20.1]
    assert [row["count"] for row in found.window("count")] == [2]
    assert [row["sum"] for row in found.window("all")] == [80.5]
    assert found.failures == []


def test_the_outputs_of_a_scan_of_ones_own_are_rounded_to_its_step():
    program = Program("steps")
    warm = program.event("warm", resolution="0.1")
    halves = program.scan("halves", source=warm, scan=Halves(), per_device=True)
    program.result(program.filter(halves, lambda event: event.value < 10.1, "low"))
    found = run(program, [20.1, 20.0])
    assert [row["value"] for row in found.result("low")] == [10.0], "10.05 is 10.1"


def test_what_is_no_number_in_range_is_no_output_and_says_so():
    program = Program("steps")
    warm = program.event("warm", resolution="0.1")
    program.result(program.map(warm, lambda event: event.value * 1e9, "much", resolution="0.1"))
    found = run(program, [20.0, 0.0])
    assert [row["value"] for row in found.result("much")] == [0.0]
    assert "choose a coarser resolution" in " ".join(found.failures)


def test_only_what_a_function_makes_of_rounded_values_means_something_else_than_before():
    """Streams of a former release, which saw such values before they were rounded, begin again."""
    streams = program_of(united).plan().streams
    before = '["map", "tenths", 1, "", "1/10", false, ["warm", "1/100", false]]'
    assert streams["tenths"].fingerprint == before
    assert {name for name, each in streams.items() if '"rounded"' in each.fingerprint} == {"above"}
