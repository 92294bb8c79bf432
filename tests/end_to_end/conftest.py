"""What the end-to-end tests need of the machine, and the recorded data."""

from pathlib import Path

import pytest

from tests.brokers import broker_program
from tests.end_to_end import truth


@pytest.fixture(scope="session")
def recording(shared_data) -> Path:
    """The recorded messages, where all that a replay needs is there."""
    pytest.importorskip("pyspark", reason="needs the extra `cloud`")
    broker_program("mosquitto")
    return shared_data / "rpi_mqtt_3dev" / "messages.jsonl.gz"


@pytest.fixture(scope="session")
def lines(recording) -> list[str]:
    """Its lines."""
    return truth.recorded(recording)
