"""A wheel of this checkout carries all that the packages have, installs, and runs."""

import configparser
import importlib.util
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import msgpack
import paho
import pytest

from lasp_edge.release import RELEASE
from tests.support_missing import lacks

CHECKOUT = Path(__file__).parent.parent
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
PACKAGES = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built without any network."""
    if importlib.util.find_spec("pip") is None or importlib.util.find_spec("hatchling") is None:
        lacks("pip or hatchling is not installed; type: make setup")
    made = tmp_path_factory.mktemp("wheel")
    words = ["wheel", CHECKOUT, "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*PIP, *words, "--wheel-dir", made], check=True, timeout=120)
    (found,) = made.glob("*.whl")
    return found


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


def test_it_installs_and_runs_by_its_own_commands(wheel, tmp_path):
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    words = ["--python", venv / "bin" / "python", "install", "--no-deps", "--no-index", wheel]
    subprocess.run([*PIP, *words], check=True, timeout=120)
    # What it depends on is lent; the network stays out of it.
    lent = {str(Path(next(iter(found.__path__))).parent) for found in (msgpack, paho)}
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sorted(lent))}

    def run(*command):
        return subprocess.check_output(
            [venv / "bin" / command[0], *command[1:]],
            cwd=tmp_path,
            env=environment,
            text=True,
            timeout=60,
        )

    assert run("lasp-edge", "--version").startswith(f"lasp-edge {RELEASE}, ")
    place = run("python", "-c", "import lasp_edge; print(lasp_edge.__file__)")
    assert place.startswith(str(venv))


def test_its_commands_are_those_of_the_project(wheel):
    with ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith("entry_points.txt")]
        text = archive.read(name).decode()
    points = configparser.ConfigParser()
    points.read_string(text)
    registered = PROJECT["project"]["entry-points"]["lasp_edge.commands"]
    assert dict(points["lasp_edge.commands"]) == registered
