"""The status of window rows in SQL is the one that the protocol's table gives."""

from itertools import product
from types import SimpleNamespace

import pytest

from cloud_tier.job.windows import current, status_after
from lasp_edge import Column, Op
from lasp_edge.protocol import status
from lasp_edge.protocol.lake_columns import LAKE_COLUMNS
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


def test_names_beside_a_folds_columns_are_those_of_the_lake_or_begin_with_an_underscore():
    """A program whose column has a name of the lake is refused, so nothing stands there twice."""
    given = []
    rows = SimpleNamespace(grouped=lambda _identity, newest: given.extend(newest))
    current(rows, [Column("names", Op.SUM), Column("most", Op.MAX)])
    names = [each.rpartition(" AS ")[2].strip("`") for each in given]
    assert len(names) == len(set(names)), names
    assert {each for each in names if each[0] != "_"} <= LAKE_COLUMNS | {"names", "most"}
