"""The demo as a newcomer starts it: agents, broker, Spark and Delta, nothing replaced."""

import subprocess
from fractions import Fraction

import pytest

from lasp_edge.errors import EnvironmentLacks
from simulations.demo.broker import find_broker
from simulations.demo.lake import COMMAND
from tests.end_to_end import truth
from tests.simulations.support_demo import demo
from tests.support_missing import lacks
from tests.support_readme import checks_shown, shape

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.broker]
MOST_LINES = 56
LINES = slice(25_000, 37_000)
"""Of the recording: the whole of it goes through agents and Spark in tests/end_to_end."""


@pytest.fixture(autouse=True)
def parts():
    """What the demo needs of the machine."""
    pytest.importorskip("pyspark", reason="needs the extra `cloud`")
    try:
        find_broker()
    except EnvironmentLacks as error:
        lacks(str(error))


def test_five_devices_agree_and_spark_confirms_it(tmp_path):
    lines = demo(tmp_path)
    checks = [line[:7] for line in lines if line.startswith("(")]
    assert checks == ["(a) ok ", "(b) ok ", "(c) ok ", "(d) ok ", "(e) byt", "(f) ok "]
    assert sum(not line.startswith("  ... ") for line in lines) <= MOST_LINES, lines
    assert list(tmp_path.iterdir()) == []
    printed = [shape(line)[:4] for line in lines]
    for begins in checks_shown():
        assert begins in printed, "the README shows another output"


def test_recorded_readings_give_their_windows_in_spite_of_accidents(tmp_path, shared_data):
    some = truth.recorded(shared_data / "rpi_mqtt_3dev" / "messages.jsonl.gz")[LINES]
    accepted = len(truth.told(some, "temp", Fraction(1, 100)))
    assert accepted == len(some) - 1, "one message is an exact repeat, as the data's README says"
    recorded = truth.written(tmp_path, some)
    (tmp_path / "temporary").mkdir()
    fields = ["--time", "ts", "--device", "device", "--event", "temperature=data.temp"]
    replay = ["--replay", str(recorded), *fields, "--tag", "room=device", "--chaos", "--seed", "1"]
    lake = tmp_path / "lake"
    lines = demo(tmp_path / "temporary", *replay, "--lake", str(lake))
    assert any(line.startswith(f"Readings: {accepted:,} accepted") for line in lines)
    ran = subprocess.run(
        [*COMMAND, "windows", "temperature_by_room", "--lake", str(lake), "--csv"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.startswith("key,start_us,end_us,mean,")
