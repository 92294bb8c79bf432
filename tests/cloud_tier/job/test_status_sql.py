"""The status in SQL is the protocol's table, whatever the newest row, the frontier, the result."""

import itertools

import pytest

from cloud_tier.job.windows import _status_after
from lasp_edge.protocol.status import STATUSES, status_after

pytestmark = pytest.mark.spark


def test_spark_gives_the_status_that_the_table_says(spark):
    cases = list(itertools.product((None, *STATUSES), (False, True), (False, True)))
    rows = [
        (None if before is None else STATUSES.index(before), passed, differs)
        for before, passed, differs in cases
    ]
    frame = spark.createDataFrame(rows, "status int, passed boolean, differs boolean").alias("old")
    found = frame.selectExpr(f"{_status_after('old.passed', '(old.differs)')} AS after").collect()
    assert [STATUSES[row.after] for row in found] == [
        status_after(before, passed=passed, differs=differs) for before, passed, differs in cases
    ]
