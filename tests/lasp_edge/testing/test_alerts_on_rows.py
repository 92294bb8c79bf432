"""Alerts on rows look at each final row, however many become final at one time."""

import pytest

from lasp_edge import Program, folds, scans
from lasp_edge.testing import replay

START_S = 1_764_028_800
SEEN = {(100, 160, 145): "on", (160, 130, 145): "off", (100, 160, 145, 130, 145): "off"}


def door(watched):
    """A program with an alert on what is made of an event: each minute, or of each reading."""
    program = Program("door")
    open_s = program.event("open_s", resolution="1")
    if watched == "window":
        rows = program.window("longest", source=open_s, fold=folds.max(), size_s=60)
    else:
        newest = scans.running(lambda _, event: event.value)
        of_device = watched == "device"
        rows = program.scan("newest", source=open_s, scan=newest, per_device=of_device)
        program.result(rows, parts={"seconds": "1"})
    program.alert("too long", rows, above=150, below=140)
    return program


@pytest.mark.parametrize("faults", [(), "rough"], ids=str)
@pytest.mark.parametrize("values", SEEN, ids=str)
@pytest.mark.parametrize("watched", ["window", "device", "fleet"])
def test_rows_that_become_final_at_one_time_are_looked_at_in_their_order(watched, values, faults):
    given = [("pi-1", "open_s", value, START_S + 60 * n) for n, value in enumerate(values)]
    found = replay(door(watched), given, faults=faults)
    assert [alert["state"] for alert in found.alerts] == [SEEN[values]]
