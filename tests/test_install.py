"""What a device gets: the base install needs two packages, imports no Spark, and stays small."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from simulations.demo.broker import PrivateBroker
from tests.brokers import broker_program

CHECKOUT = Path(__file__).parent.parent
PEAK_MIB = 29
READINGS = 20_000


@pytest.fixture(scope="module")
def device(tmp_path_factory):
    """A virtual environment with the base install of this checkout, and nothing else."""
    venv = tmp_path_factory.mktemp("device") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    pip = [sys.executable, "-m", "pip", "--python", venv / "bin" / "python"]
    subprocess.run([*pip, "install", "--quiet", CHECKOUT], check=True)
    return venv


def installed(venv):
    pip = [sys.executable, "-m", "pip", "--python", venv / "bin" / "python"]
    listed = subprocess.check_output([*pip, "list", "--format", "json"], text=True)
    return {package["name"] for package in json.loads(listed)}


@pytest.mark.slow
def test_base_install_brings_two_packages(device):
    assert installed(device) - {"pip", "setuptools"} == {"lasp-edge", "paho-mqtt", "msgpack"}


@pytest.mark.slow
def test_agent_imports_neither_spark_nor_pandas(device):
    code = "import device_agent.console.command.agent, sys; print(*sys.modules)"
    modules = subprocess.check_output([device / "bin" / "python", "-c", code], text=True).split()
    assert "device_agent.agent.core" in modules
    assert not {"pyspark", "pandas", "pyarrow", "numpy", "asyncio"} & set(modules)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "extra"),
    [("cloud", "cloud"), *((name, "lake") for name in ("windows", "lander", "dashboard"))],
)
def test_missing_extra_gives_the_line_to_type(device, command, extra):
    words = [device / "bin" / "lasp-edge", command, "x", "--lake", "y"]
    words += [] if command == "windows" else ["--broker", "mqtt://z"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    python = device / "bin" / "python"
    assert done.stderr.endswith(f"type: {python} -m pip install '{CHECKOUT}[{extra}]'\n")


@pytest.mark.slow
@pytest.mark.broker
def test_agent_of_the_base_install_stays_under_29_mib(device, tmp_path):
    recorded = tmp_path / "readings.jsonl"
    lines = (
        json.dumps({"ts": 1_700_000_000 + index, "temperature": 20 + index % 7, "room": "attic"})
        for index in range(READINGS)
    )
    recorded.write_text("\n".join(lines) + "\n")
    with PrivateBroker(tmp_path / "broker", broker_program()) as broker:
        words = [
            *("agent", "lasp_edge.examples.greenhouse:program", "--device", "pi-1"),
            *("--broker", broker.url, "--data-dir", tmp_path / "data", "--report", "0.2"),
            *("--source", f"jsonl:{recorded}", "--time", "ts", "--tag", "room=room"),
        ]
        agent = subprocess.Popen(
            [device / "bin" / "lasp-edge", *words], stdout=subprocess.PIPE, text=True
        )
        for line in agent.stdout:
            if json.loads(line)["accepted"] == READINGS:
                break
        status = Path(f"/proc/{agent.pid}/status")
        if not status.exists():
            pytest.skip("resident memory is read from /proc, which this system lacks")
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        agent.terminate()
        agent.communicate(timeout=20)
    resident, peak = (int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    print(f"agent after {READINGS} readings: {resident:.1f} MiB resident, peak {peak:.1f} MiB")
    assert agent.returncode == 0
    assert peak < PEAK_MIB
