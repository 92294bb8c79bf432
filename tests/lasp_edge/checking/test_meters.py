"""A sum of what a meter shows is named; one of differences, or of what was used, is right."""

import pytest

from lasp_edge import Program, folds, scans
from lasp_edge.checking.meters import summed_meters


def summed(name, unit, fold=None, scan=None, **more):
    program = Program("house")
    read = program.event(name, resolution="0.1", unit=unit)
    program.window("w", source=read, fold=fold or folds.sum(), size_s=60, **more)
    if scan is not None:
        used = program.scan("used", source=read, scan=scan, per_device=True)
        program.window("right", source=used, fold=folds.sum(), size_s=60)
    return [line.partition(":")[0] for line in summed_meters(program.plan())]


@pytest.mark.parametrize(
    ("name", "unit", "scan", "is_named"),
    [
        ("meter", "kWh", None, True),
        ("water_meter", "l", None, True),
        ("odometer", "km", None, True),
        ("energy", "kWh", None, False),  # perhaps that of an hour
        ("counter", "", None, False),
        ("perimeter", "m", None, False),
        ("energy", "kWh", scans.differences(reset=True), True),
        ("energy", "kWh", scans.rate(reset=True), True),
        ("energy", "kWh", scans.differences(), False),
    ],
    ids=lambda given: getattr(given, "name", str(given)),
)
def test_a_sum_of_what_a_meter_shows_is_named(name, unit, scan, is_named):
    assert summed(name, unit, scan=scan) == ["window w"] * is_named
    struct = folds.struct(n=folds.count(), total=folds.sum())
    assert summed(name, unit, struct, scan) == ["window w, part total"] * is_named
    assert summed(name, unit, folds.max(), scan) == []
    assert summed(name, unit, scan=scan, value=lambda event: event.value % 1) == []
