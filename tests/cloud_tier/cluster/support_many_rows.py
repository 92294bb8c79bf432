"""The same program; whoever loads it has Spark take even few rows as it takes many."""

from cloud_tier.job import frames
from tests.cloud_tier.support_devices import rooms_program

SPEC = "tests.cloud_tier.cluster.support_many_rows:program"


def __getattr__(name):
    """Give the program, and only then change the process: collecting tests imports this, too."""
    if name != "program":
        raise AttributeError(name)
    frames.MOST_ROWS = 0
    return rooms_program()
