"""A rate that is rounded to 0 is named, and one in a part of a second that was meant in an hour."""

import pytest

from lasp_edge import Program, scans
from lasp_edge.checking.rates import flat_rates, rates_of_changes


def rates(per_s, resolution="0.001", **span):
    program = Program("attic")
    warm = program.event("warm", resolution="0.1", **span)
    scan = scans.rate(per_s=per_s, resolution=resolution)
    program.result(program.scan("rise", source=warm, scan=scan, per_device=True))
    return flat_rates(program.plan())


@pytest.mark.parametrize("meant_s", [60, 3_600, 86_400])
@pytest.mark.parametrize("span", [{}, {"least": -40, "most": 60}])
def test_a_rate_in_a_part_of_a_second_is_named_with_the_span_that_was_meant(meant_s, span):
    (line,) = rates(1 / meant_s, **span)
    assert line.startswith("scan rise: its rate is the change in ")
    assert line.endswith(f"; write per_s={meant_s}")
    assert rates(meant_s, **span) == rates(1, **span) == []


@pytest.mark.parametrize(
    ("per_s", "resolution", "span", "is_named"),
    [
        (1, "1", {"least": 0, "most": 0.4}, True),
        (1, "1", {"least": 0, "most": 0.6}, False),
        (1, "1", {"least": 0}, False),
        (0.001, "0.001", {"least": -10, "most": 10}, False),  # in a millisecond
        (0.001, "0.1", {"least": -10, "most": 10}, True),
    ],
)
def test_a_rate_that_no_change_in_a_second_lifts_from_0_is_named(per_s, resolution, span, is_named):
    lines = rates(per_s, resolution, **span)
    assert ["a second or more apart is rounded to 0" in line for line in lines] == [True] * is_named


@pytest.mark.parametrize(("first", "is_named"), [("differences", True), ("rate", False)])
def test_a_rate_of_changes_is_named_and_a_rate_of_a_rate_is_not(first, is_named):
    program = Program("house")
    meter = program.event("meter", resolution="0.1", unit="kWh")
    used = program.scan("used", source=meter, scan=getattr(scans, first)(), per_device=True)
    program.scan("load", source=used, scan=scans.rate(per_s=3_600), per_device=True)
    lines = rates_of_changes(program.plan())
    assert [line.endswith("for the rate of meter, write source=meter") for line in lines] == [
        True
    ] * is_named
