"""The same program; whoever loads it has Spark take even few rows as it takes many."""

from cloud_tier.job import step
from tests.cloud_tier.support_devices import rooms_program

SPEC = "tests.cloud_tier.spark.support_many_rows:program"

step.MOST_ROWS = 0  # type: ignore[misc]

program = rooms_program()
