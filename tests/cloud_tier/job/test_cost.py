"""What a step asks of Spark, in counts: these do not depend on the machine."""

import pytest

from simulations.benchmarks.cloud_rows import fleet_rows, greenhouse, landed
from simulations.benchmarks.cloud_steps import Machine
from tests.cloud_tier.lakes import LakeUnderTest
from tests.cloud_tier.support_devices import BEGIN_US, SECOND_US, Device, rooms, tick

pytestmark = pytest.mark.spark

PROGRAM = greenhouse()
WARM = 3
REMEMBERED = 10
"""Queries whose plans Spark keeps for its page."""


def test_warm_step_compiles_no_class_and_is_three_jobs(spark, tmp_path):
    """Frontier, coverage, spans and panes differ from step to step; Spark sees the same text."""
    lake = LakeUnderTest(spark, PROGRAM, tmp_path)
    for name in ("spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode"):
        spark.conf.unset(name)
    machine, scheduler = Machine(spark), spark.sparkContext._jsc.sc().dagScheduler()
    counts = []
    for number in range(WARM + 4):
        rows = landed(PROGRAM, list(fleet_rows(PROGRAM, 7 * number, devices=3 + number)))
        before = machine.compiled(), scheduler.numTotalJobs()
        outcome = lake.step(rows.to_pylist())
        counts.append((machine.compiled() - before[0], scheduler.numTotalJobs() - before[1]))
        assert outcome.windows > 0
        assert outcome.globals == 1
    assert counts[WARM:] == [(0, 3)] * 4
    # It lets a tenth of them go at once, in a thread of its own.
    known = spark._jsparkSession.sharedState().statusStore().executionsCount()
    assert known <= 2 * REMEMBERED, "what Spark keeps of each step grows"


def test_step_of_a_fleet_that_measures_nothing_is_one_job(spark, tmp_path):
    """Which reads the batch: there is neither a pane nor a row in what the frontier passes."""
    lake, scheduler = LakeUnderTest(spark, rooms(), tmp_path), spark.sparkContext._jsc.sc()
    device, counts = Device(lake.program, "pi-0"), []
    for number in (1, 2):
        at_us = BEGIN_US + number * 3_600 * SECOND_US
        before = scheduler.dagScheduler().numTotalJobs()
        lake.step([device.promise(at_us, at_us), tick(number, at_us)])
        assert lake.known.frontier == at_us
        counts.append(scheduler.dagScheduler().numTotalJobs() - before)
    assert counts == [1, 1]
