"""What a device gets: a wheel that carries the packages, needs two others, and stays small."""

import configparser
import json
import subprocess
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

from lasp_edge.release import RELEASE
from simulations.processes.broker import PrivateBroker
from tests.brokers import PATIENCE_S, broker_program
from tests.support_wheel import CHECKOUT, PACKAGES, PROJECT, build_wheel, install_wheel

PROGRAM = "lasp_edge.examples.greenhouse:program"
PEAK_MIB = 28
READINGS = 20_000

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def device(wheel, tmp_path_factory):
    """Return a function that starts a command of a device on which the wheel alone is installed."""
    home = tmp_path_factory.mktemp("device")
    environment = install_wheel(wheel, home / "venv")

    def start(command, *words, **options):
        started = [home / "venv" / "bin" / command, *words]
        return subprocess.Popen(
            started, cwd=home, env=environment, stdout=subprocess.PIPE, text=True, **options
        )

    return start


def printed(process):
    """Return what a process printed when it ended well."""
    text, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    return text


def test_it_carries_every_file_of_the_packages_and_no_other(wheel):
    here = {
        str(path.relative_to(CHECKOUT))
        for package in PACKAGES
        for path in (CHECKOUT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with ZipFile(wheel) as archive:
        carried = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert carried == here
    assert {f"{package}/py.typed" for package in PACKAGES} <= carried
    assert "cloud_tier/spark/log4j2.properties" in carried


def test_two_builds_are_equal_byte_for_byte_and_fit_every_machine(wheel, tmp_path):
    assert wheel.name.endswith("-py3-none-any.whl")
    assert build_wheel(tmp_path).read_bytes() == wheel.read_bytes()


def test_its_commands_are_those_of_the_project(wheel):
    with ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith("entry_points.txt")]
        text = archive.read(name).decode()
    points = configparser.ConfigParser()
    points.read_string(text)
    registered = PROJECT["project"]["entry-points"]["lasp_edge.commands"]
    assert dict(points["lasp_edge.commands"]) == registered


def test_it_needs_two_packages(device):
    code = "from importlib.metadata import requires; print(*requires('lasp-edge'), sep='\\n')"
    needed = printed(device("python", "-c", code)).splitlines()
    base = {line.partition("<")[0] for line in needed if "extra ==" not in line}
    assert base == {"msgpack", "paho-mqtt"}


@pytest.mark.parametrize(
    ("machine", "fits", "too_new"),
    [("aarch64", "1.2.4", "2.0"), ("armv7l", "1.0.3", "1.0.6"), ("armv6l", "1.0.5", "1.2.4")],
)
def test_32_bit_arm_needs_a_msgpack_that_installs_without_a_compiler(machine, fits, too_new):
    needed = [Requirement(each) for each in PROJECT["project"]["dependencies"]]
    (msgpack,) = [
        each
        for each in needed
        if each.name == "msgpack" and each.marker.evaluate({"platform_machine": machine})
    ]
    assert fits in msgpack.specifier
    assert too_new not in msgpack.specifier


def test_an_agent_imports_neither_spark_nor_pandas(device):
    code = "import device_agent.console.command.run_agent, sys; print(*sys.modules)"
    modules = printed(device("python", "-c", code)).split()
    assert "device_agent.agent.core" in modules
    assert not {"pyspark", "pandas", "pyarrow", "numpy", "asyncio"} & set(modules)


@pytest.mark.parametrize(
    ("command", "extra"),
    [("cloud", "cloud"), *((name, "lake") for name in ("windows", "lander", "dashboard"))],
)
def test_a_missing_extra_gives_the_line_to_type(device, wheel, command, extra):
    words = [
        command,
        "x",
        "--lake",
        "y",
        *([] if command == "windows" else ["--broker", "mqtt://z"]),
    ]
    refused = device("lasp-edge", *words, stderr=subprocess.PIPE)
    _, told = refused.communicate(timeout=PATIENCE_S)
    assert refused.returncode == 4
    assert told.endswith(f" -m pip install 'lasp-edge[{extra}] @ {wheel.as_uri()}'\n")


@pytest.mark.broker
def test_an_agent_takes_readings_and_stays_under_28_mib(device, tmp_path):
    version = printed(device("lasp-edge", "--version"))
    assert version.startswith(f"lasp-edge {RELEASE}, ")
    recorded = tmp_path / "readings.jsonl"
    lines = (
        json.dumps({"ts": 1_700_000_000 + index, "temperature": 20 + index % 7, "room": "attic"})
        for index in range(READINGS)
    )
    recorded.write_text("\n".join(lines) + "\n")
    with PrivateBroker(tmp_path / "broker", broker_program()) as broker:
        words = ["agent", PROGRAM, "--device", "pi-1", "--broker", broker.url]
        words += ["--data-dir", tmp_path / "data", "--report", "0.2"]
        words += ["--source", f"jsonl:{recorded}", "--time", "ts", "--tag", "room=room"]
        agent = device("lasp-edge", *words)
        assert any(json.loads(line)["accepted"] == READINGS for line in agent.stdout)
        status = Path(f"/proc/{agent.pid}/status")
        if not status.exists():
            pytest.skip("resident memory is read from /proc, which this system lacks")
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        agent.terminate()
        printed(agent)
    assert "device pi-1" in printed(device("lasp-edge", "status", "--data-dir", tmp_path / "data"))
    resident, peak = (int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    print(f"agent after {READINGS} readings: {resident:.1f} MiB resident, peak {peak:.1f} MiB")
    assert peak < PEAK_MIB
