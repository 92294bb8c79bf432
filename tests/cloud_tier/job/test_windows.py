"""The status of window rows in SQL is the one that the protocol's table gives."""

from itertools import product

import pytest

from cloud_tier.job.windows import status_after
from lasp_edge.protocol import status
from lasp_edge.protocol.status import STATUSES

pytestmark = pytest.mark.spark


def test_status_in_sql_is_that_of_the_protocol_in_every_case(spark):
    cases = list(product((None, *STATUSES), (False, True), (False, True)))
    rows = [
        (None if before is None else STATUSES.index(before), passed, differs)
        for before, passed, differs in cases
    ]
    frame = spark.createDataFrame(rows, "status int, passed boolean, differs boolean").alias("old")
    after = status_after(passed="passed", differs="differs")
    found = [row.after for row in frame.selectExpr(f"{after} AS after").collect()]
    assert [STATUSES[place] for place in found] == [
        status.status_after(before, passed=passed, differs=differs)
        for before, passed, differs in cases
    ]
