"""A gateway's table and Spark's are one table: every revision of every window, row by row."""

from decimal import Decimal

import pytest

from device_agent.gateway.core import WaitingTerms
from lasp_edge import folds
from tests.cloud_tier.lakes import LakeUnderTest, batches
from tests.cloud_tier.support_devices import (
    BEGIN_US,
    SECOND_US,
    history,
    readings_of,
    rooms_program,
    row,
    tick,
)
from tests.device_agent.gateway.support_gateway import GatewayUnderTest
from tests.lasp_edge.support_folds import ONE_EACH

pytestmark = pytest.mark.spark

MINUTE_US = 60 * SECOND_US
ROSTER = ["pi-0", "pi-1", "pi-2"]


def every_fold():
    """Return `rooms` with a further window, of every built-in fold by room."""
    program = rooms_program()
    (temperature,) = program.plan().events.values()
    every = folds.struct(**{f"its_{name}": fold for name, fold in ONE_EACH.items()})
    room = {"key": lambda event: event.tags["room"]}
    program.window("every", source=temperature, fold=every, size_s=50, slide_s=20, **room)
    return program.plan()


def lake_rows(lake):
    """Return all rows of a lake's windows as a gateway has them."""
    found = []
    for each in lake.rows(lake.lake.windows):
        columns = lake.program.windows[each["window"]].fold.columns_named
        partial = tuple(int(v) if isinstance(v, Decimal) else v for v in map(each.get, columns))
        excluded = tuple(name for name in each["excluded"].split(",") if name)
        at = (each["window"], each["key"], each["start_us"])
        record = (each["devices_in"], each["devices_expected"], excluded, each["status"])
        rest = (each["revision"], each["frontier"], each["stream"])
        found.append((at, each["end_us"], partial, *record, *rest))
    return sorted(found, key=lambda made: (made[0], made[7]))


def gateway_rows(gateway):
    return sorted([tuple(row) for row in gateway.rows], key=lambda row: (row[0], row[7]))


def test_each_revision_of_each_window_is_equal_row_by_row(spark, tmp_path):
    """Shuffled, repeated batches; a device that is not waited for comes back, and revises."""
    seed, plan = 5, every_fold()
    rows = history(plan, readings_of(seed, each=8), seed)
    lake = LakeUnderTest(spark, plan, tmp_path, dead_after_us=MINUTE_US, roster=ROSTER)
    gateway = GatewayUnderTest(plan, terms=WaitingTerms(ROSTER, MINUTE_US))
    for number, batch in enumerate(batches(rows, seed, count=3)):
        at_us = BEGIN_US + number * 45 * SECOND_US
        told = [tick(number + 1, at_us)]
        for name in ROSTER[: 3 - number]:  # the last of them falls silent, and then one more
            low = {"low_us": at_us + 50 * SECOND_US, "done": False, "received_us": at_us}
            told.append(row("promise", name, 9, 1, number + 1, **low))
        lake.step([*batch, *told])
        gateway.step([*batch, *told])
        gateway.restart()
    assert gateway_rows(gateway) == lake_rows(lake), f"replay with seed={seed}"
    statuses = {row.status for row in gateway.rows}
    assert statuses == {"tentative", "final", "revised"}
    assert {row.excluded for row in gateway.rows} == {(), ("pi-2",)}
