"""`lasp-edge new` makes files that work as they are."""

import configparser
import json
import subprocess
import sys
from pathlib import Path

import pytest

from device_agent.console.command import template
from lasp_edge.errors import Exit
from lasp_edge.tool.command_line import main
from lasp_edge.tool.typed import typed_in
from simulations.processes.broker import PrivateBroker
from tests.brokers import PATIENCE_S, Mosquitto, broker_program, free_port, runs_as_us
from tests.support_containers import compose, parsed

FILES = {
    *("README.md", "compose.yaml", "data", "fleet.toml", "house.py", "mosquitto.conf"),
    "lasp-edge-house.service",
}


@pytest.fixture
def house(tmp_path, monkeypatch, capsys):
    """The directory of a new program, which is the current one."""
    monkeypatch.chdir(tmp_path)
    assert main(["new", "house"]) == Exit.FINE
    said = capsys.readouterr().out
    assert f"  {typed_in(Path('house'))} agent --config fleet.toml\n" in said
    monkeypatch.chdir(tmp_path / "house")
    monkeypatch.syspath_prepend(str(tmp_path / "house"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path / "house"
    sys.modules.pop("house", None)


def test_the_program_passes_check_and_the_files_name_each_other(house, capsys):
    assert {path.name for path in house.iterdir()} == FILES
    assert not [path for path in house.iterdir() if path.is_file() and "NAME" in path.read_text()]
    assert main(["check", "house", "--examples", "5", "--no-record"]) == Exit.FINE
    assert capsys.readouterr().out.startswith("Every law holds.\n")
    services = compose(house / "compose.yaml")["services"]
    assert list(services) == ["broker", "one", "two"]
    for name in ("one", "two"):
        assert (parsed(services[name]).device, str(parsed(services[name]).config)) == (
            name,
            "fleet.toml",
        )
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str
    unit.read(house / "lasp-edge-house.service")
    assert unit["Service"]["WorkingDirectory"] == str(house)
    assert unit["Service"]["ReadWritePaths"] == str(house / "data")
    assert unit["Service"]["ExecStart"].endswith(" -m lasp_edge agent --config fleet.toml")


@pytest.mark.slow
@pytest.mark.broker
def test_the_agent_starts_with_the_file_and_needs_no_sensor(house):
    with PrivateBroker(house / "broker", broker_program()) as broker:
        file = house / "fleet.toml"
        file.write_text(file.read_text().replace("mqtt://127.0.0.1", broker.url))
        words = ["agent", "--config", "fleet.toml", "--interval", "0.2", "--report", "0.2"]
        agent = subprocess.Popen(
            [sys.executable, "-m", "lasp_edge", *words], stdout=subprocess.PIPE, text=True
        )
        try:
            value = None
            for _, line in zip(range(100), agent.stdout, strict=False):
                report = json.loads(line)
                value = report["values"]["cpu_everywhere"]["parts"]["mean"]
                if report["connected"] and value is not None:
                    break
            assert value is not None, "no reading came in 20 seconds"
            assert (report["device"], 0 <= value <= 100) == ("one", True)
        finally:
            agent.terminate()
            assert agent.wait(timeout=PATIENCE_S) == 0


@pytest.mark.broker
def test_its_broker_takes_its_configuration(tmp_path):
    port = free_port()
    text = template.BROKER.replace("1883", str(port)).replace("/mosquitto/data", str(tmp_path))
    with Mosquitto(tmp_path / "broker", "\n".join([text, *runs_as_us()]) + "\n", port):
        pass


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("house", "house is there already, and nothing in it is overwritten"),
        ("a-b", "a name such as greenhouse is needed: letters, digits, _, first no digit"),
        ("class", "a name such as greenhouse is needed"),
        ("json", "a module 'json' is installed already; choose another name"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(
    tmp_path, monkeypatch, capsys, name, text
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "house").mkdir()
    (tmp_path / "house" / "mine").write_text("mine")
    assert main(["new", name]) == Exit.USAGE
    assert capsys.readouterr().err.startswith(f"lasp-edge new: {text}")
    assert [path.name for path in tmp_path.rglob("*")] == ["house", "mine"]
