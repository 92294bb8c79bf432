"""What the end-to-end tests need of the machine, and the recorded data."""

from pathlib import Path

import pytest

from tests.brokers import broker_program
from tests.end_to_end import truth
from tests.end_to_end.support_site import Site

DEVICES = ["iot-device-01", "iot-device-02", "iot-device-03"]


@pytest.fixture(scope="session")
def recording(shared_data) -> Path:
    """The recorded messages, where all that a replay needs is there."""
    pytest.importorskip("pyspark", reason="needs the extra `cloud`")
    broker_program()
    return shared_data / "rpi_mqtt_3dev" / "messages.jsonl.gz"


@pytest.fixture(scope="session")
def lines(recording) -> list[str]:
    """Its lines."""
    return truth.recorded(recording)


def replayed(folder, recording, spark, *, meanwhile=False, **site_options):
    """Replay a whole recording as fast as it goes; return the site, all ended, and the reports.

    The job merges in the session given: also once meanwhile, or only when all has landed. It ends
    by itself in between, so that no batch is cut off and merged twice. As a process of its own
    it merges in the tests of accidents and in the demo.
    """
    with Site(folder, recording, DEVICES, **site_options) as site:
        site.start_lander()
        site.start_agents()
        if meanwhile:
            site.heard()
            site.merge_landed(spark)
        site.settle()
        site.merge(spark)
        reports = site.reports()
        site.stop()
    return site, reports
