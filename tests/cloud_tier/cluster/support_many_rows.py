"""The same program; whoever loads it has Spark take even few rows as it takes many."""

from cloud_tier.job import step
from tests.cloud_tier.support_devices import rooms_program

SPEC = "tests.cloud_tier.cluster.support_many_rows:program"


def __getattr__(name):
    """Give the program, and only then change the process: collecting tests imports this, too."""
    if name != "program":
        raise AttributeError(name)
    step.MOST_ROWS = 0
    return rooms_program()
