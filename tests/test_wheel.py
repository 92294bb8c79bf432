"""A wheel of this checkout carries all that the packages have, installs, and runs."""

import configparser
import json
import subprocess
import tomllib
from itertools import islice
from pathlib import Path
from zipfile import ZipFile

import pytest

from lasp_edge.release import RELEASE
from tests.brokers import free_port
from tests.support_wheel import CHECKOUT, build_wheel, install_wheel

PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
PACKAGES = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
PROGRAM = "lasp_edge.examples.greenhouse:program"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(tmp_path_factory.mktemp("wheel"))


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
    assert {Path(name).suffix for name in carried} > {".py", ".properties"}


def test_an_agent_that_was_installed_from_it_takes_a_reading(wheel, tmp_path):
    venv = tmp_path / "venv"
    environment = install_wheel(wheel, venv)

    def run(*command):
        return subprocess.check_output(
            [venv / "bin" / command[0], *command[1:]],
            cwd=tmp_path,
            env=environment,
            text=True,
            timeout=300,
        )

    assert run("lasp-edge", "--version").startswith(f"lasp-edge {RELEASE}, ")
    place = run("python", "-c", "import lasp_edge; print(lasp_edge.__file__)")
    assert place.startswith(str(venv))
    (tmp_path / "readings.jsonl").write_text('{"ts": 1735689600, "temperature": 21.37}\n')
    words = ["agent", PROGRAM, "--device", "kitchen", "--broker", f"mqtt://127.0.0.1:{free_port()}"]
    words += ["--data-dir", "data", "--source", "jsonl:readings.jsonl", "--time", "ts"]
    words += ["--with-tag", "room=kitchen"]
    agent = subprocess.Popen(
        [venv / "bin" / "lasp-edge", *words, "--report", "0.5"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # it says that there is no broker
        text=True,
    )
    try:
        assert any(json.loads(line)["accepted"] == 1 for line in islice(agent.stdout, 600))
    finally:
        agent.terminate()
        assert agent.wait(timeout=300) == 0
    assert "device kitchen" in run("lasp-edge", "status", "--data-dir", "data")


def test_its_commands_are_those_of_the_project(wheel):
    with ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith("entry_points.txt")]
        text = archive.read(name).decode()
    points = configparser.ConfigParser()
    points.read_string(text)
    registered = PROJECT["project"]["entry-points"]["lasp_edge.commands"]
    assert dict(points["lasp_edge.commands"]) == registered
