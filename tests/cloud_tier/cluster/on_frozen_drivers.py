"""A driver that is frozen in the midst of a batch, another one that takes the lake over, and both.

As where a machine stood still, and its job was started elsewhere: the lock of the lake's directory
does not reach there, so it is taken away here. No part of the suite: see `make test-cluster`.
"""

import os
import signal
from contextlib import contextmanager
from pathlib import Path

import pytest
from deltalake import write_deltalake

from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.statements import newest_statement
from cloud_tier.lake.status import JOB_LOCK
from cloud_tier.lake.tables import LakeTables
from lasp_edge.errors import Exit
from tests.cloud_tier.cluster.support_cluster import all_merged, until
from tests.cloud_tier.cluster.support_rooms import SPEC
from tests.cloud_tier.lakes import ReadLake
from tests.cloud_tier.support_devices import (
    BEGIN_US,
    history,
    readings_of,
    rooms,
    table,
    tick,
    true_windows,
)
from tests.end_to_end.support_site import Process

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROGRAM = rooms()
READINGS = readings_of(11)
PARTS = 5


class Drivers:
    """A lake in which parts of a history land, and the jobs that merge them.

    Args:
        folder: of the jobs' output.
        lake: where it is.
        options: of the jobs.
    """

    def __init__(self, folder, lake, options=()):
        self.folder, self.tables, self.options = folder, LakeTables(lake), options
        prepare(PROGRAM, self.tables)
        rows = history(PROGRAM, READINGS)
        self.parts = [[*rows[at::PARTS], tick(at + 1, BEGIN_US)] for at in range(PARTS)]
        self.started = []

    def land(self):
        rows = table(PROGRAM, self.parts.pop(0))
        write_deltalake(self.tables.landing, rows, mode="append", schema_mode="merge")

    def start(self, name):
        """Start a job as on another machine."""
        Path(self.tables.root, JOB_LOCK).unlink(missing_ok=True)
        driver = Process(self.folder, name)
        self.started.append(driver)
        lake = ["--lake", self.tables.root, "--no-lander", "--trigger", "0.5"]
        driver.run(["cloud", SPEC, *lake, *self.options])
        return driver

    def all_merged(self):
        """Return whether a job has merged all that landed; of a store the tables tell it."""
        if self.tables.is_local:
            return all_merged(self.tables)
        stated = newest_statement(self.tables.table(self.tables.windows))
        return stated is not None and stated.landing >= self.version(self.tables.landing)

    def version(self, path):
        return self.tables.table(path).version()


def signalled(driver, number):
    """Send a signal to a driver and its JVM."""
    for pid in driver.members():
        os.kill(pid, number)


@contextmanager
def ended(drivers):
    """Let no driver outlive the block."""
    try:
        yield drivers
    finally:
        for driver in drivers.started:
            signalled(driver, signal.SIGCONT)
            driver.end()


def test_frozen_drivers_that_wake_end_in_one_line_and_no_revision_is_twice(tmp_path):
    # Who is to end some time has a JVM that starts quickly.
    with ended(Drivers(tmp_path, tmp_path / "lake", ["--until-idle", "3600"])) as drivers:
        check_frozen(drivers, "lattice")


def check_frozen(drivers, table):
    """Freeze the driver behind its commit to a table, and let another take over.

    Without processes, tests/cloud_tier/job/test_fence.py freezes one before each of the tables.
    """
    drivers.land()
    driver = drivers.start("first")
    until(drivers.all_merged, driver)
    driver = taken_over(drivers, driver, table)
    drivers.land()
    until(drivers.all_merged, driver)
    assert driver.stop() == Exit.FINE
    found = ReadLake(PROGRAM, drivers.tables)
    assert found.current() == true_windows(PROGRAM, READINGS)
    assert found.statuses(), "revisions count without a gap"


def taken_over(drivers, older, name):
    """Freeze a driver behind its commit to a table, and return the one that takes over."""
    path = f"{drivers.tables.root}/{name}"
    before = drivers.version(path)
    drivers.land()
    until(lambda: drivers.version(path) > before, older)
    signalled(older, signal.SIGSTOP)
    drivers.land()
    newer = drivers.start(f"behind {name}")
    until(drivers.all_merged, newer)
    signalled(older, signal.SIGCONT)
    drivers.land()
    until(drivers.all_merged, newer)
    until(lambda: not older.runs, older)
    assert older.exit_code == Exit.DIFFERS
    (line,) = [each for each in older.last_words().splitlines() if "lasp-edge cloud: " in each]
    assert "another `lasp-edge cloud` merges into" in line
    assert "Traceback" not in older.last_words()
    return newer
