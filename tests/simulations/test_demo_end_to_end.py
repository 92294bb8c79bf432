"""The demo with real agents, a real broker and a gateway; with Spark: test_demo_everything.py."""

import csv
import subprocess
from fractions import Fraction

import pytest

from simulations.processes.process import COMMAND
from tests.end_to_end import truth
from tests.simulations.support_demo import demo, outcomes

pytestmark = [pytest.mark.slow, pytest.mark.broker]
LINES = slice(25_000, 37_000)
"""Of the recording: the whole of it goes through agents and Spark in tests/end_to_end."""


def test_recorded_readings_give_their_windows_in_spite_of_accidents(tmp_path, shared_data):
    """A gateway merges; the job in Spark is killed in tests/end_to_end/test_accidents.py."""
    some = truth.recorded(shared_data / "rpi_mqtt_3dev" / "messages.jsonl.gz")[LINES]
    accepted = len(truth.readings_of(some, "temp", Fraction(1, 100)))
    assert accepted == len(some) - 1, "one message is an exact repeat, as the data's README says"
    recorded = truth.written(tmp_path, some)
    (tmp_path / "temporary").mkdir()
    fields = ["--time", "ts", "--device", "device", "--event", "temperature=data.temp"]
    replay = ["--replay", str(recorded), *fields, "--tag", "room=device", "--chaos", "--seed", "1"]
    kept = tmp_path / "kept"
    lines = demo(tmp_path / "temporary", *replay, "--no-cloud", "--lake", str(kept))
    assert any(line.startswith(f"Readings: {accepted:,} accepted") for line in lines)
    words = ["windows", "temperature_by_room", "--gateway", str(kept), "--csv"]
    printed = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=True).stdout
    assert {row["status"] for row in csv.DictReader(printed.splitlines())} <= {"final", "revised"}


def test_an_evening_of_ten_devices_ends_with_the_right_windows(tmp_path):
    lines = demo(tmp_path, "--no-cloud")
    assert outcomes(lines) == [
        *("(a) ok ", "(b) ok ", "(c) -  ", "(d) ok ", "(e) byt", "(f) ok ", "(g) ok "),
    ]
    assert max(map(len, lines)) <= 80, lines
    text = "\n".join(lines)
    assert "The gateway is killed (SIGKILL)" in text
    assert "waits for garage" in text
    assert text.count("An operator says: ") == 2
    assert "set for the past, revised " in " ".join(text.split())
