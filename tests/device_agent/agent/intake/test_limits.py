"""A pane stays within its columns' limits, however large the readings of one batch are."""

import pytest

from device_agent.agent.intake.batch import Batch
from lasp_edge import Program, folds
from lasp_edge.folds.numbers import LIMIT
from lasp_edge.units import SECOND_US
from tests.device_agent.agents import NOW_US, Device


def spread():
    made = Program("spread")
    made.window("spread", source=made.event("level"), fold=folds.variance(), size_s=60)
    return made.plan()


def read(device, values, start_us):
    times_us = [start_us + at for at in range(len(values))]
    tags = [{}] * len(values)
    names = ["level"] * len(values)
    device.durable.read(Batch("test", names, times_us, values, tags, refused={}), device.now_us)


@pytest.mark.parametrize("least", [1, 10**9], ids=["columns", "one by one"])
@pytest.mark.parametrize(
    ("value", "many", "fits"),
    [(LIMIT - 1, 5, 2), (2**26, 3_000, 2**11 - 1), (2**20, 3_000, 3_000)],
)
def test_squares_that_would_leave_their_range_are_not_in_the_window(
    tmp_path, least, value, many, fits
):
    device = Device(tmp_path, spread())
    device.core.intake.column_least = least
    start_us = NOW_US - NOW_US % (60 * SECOND_US)
    read(device, [float(value)] * many, start_us)
    fold = device.program.windows["spread"].fold
    (entry,) = device.core.panes.memory.entries.values()
    assert entry.partial == (fits, fits * value, fits * value**2)
    assert fold.within_limits(entry.partial)
    failed = device.counted.get("failed: window spread: the partial is out of range", 0)
    assert (device.counted["accepted"], failed) == (many, many - fits)
