"""What the pages show of shared variables in a lake."""

import sys

import pytest
from deltalake import write_deltalake

from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.lake import Lake
from cloud_tier.lake.shared import table_of
from cloud_tier.lake.tables import LakeTables
from crdts import GSet
from lasp_edge.errors import NotFound
from lasp_edge.protocol.acceptance import SharedNews
from tests.support_readme import block, succeeds


@pytest.fixture
def lake(tmp_path):
    """A lake of the program in "Acting on a value" with one notice."""
    made, tables = {}, LakeTables(tmp_path / "lake")
    exec(block("acting"), made)
    plan = made["program"].plan()
    prepare(plan, tables)
    news = SharedNews("notices", plan.shared_streams["notices"], GSet({"3.5 °C on attic"}), 1)
    write_deltalake(tables.shared, table_of([news]), mode="append")
    return tables


def test_the_block_of_the_page_shows_the_value(lake, tmp_path):
    assert succeeds([sys.executable, "-c", block("shared variables")], tmp_path).splitlines() == [
        "notices frozenset({'3.5 °C on attic'})",
        "[{'part': '', 'key': '', 'value': '\"3.5 °C on attic\"'}]",
    ]


def test_another_name_is_refused_with_those_that_there_are(lake):
    with pytest.raises(NotFound, match=r"no shared variable 'doors' in .*; there are: notices"):
        Lake(lake.root).shared("doors")
