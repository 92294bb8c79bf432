"""The wheel of this checkout, built as `make wheel` builds it, but without any network."""

import importlib.util
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import msgpack
import paho

from tests.brokers import PATIENCE_S
from tests.support_missing import lacks

CHECKOUT = Path(__file__).parent.parent
OFFLINE = ("--no-build-isolation", "--no-index")
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
PACKAGES = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")


def build_wheel(folder):
    """Build the wheel into a folder by the command of `make wheel`, and return its path."""
    if importlib.util.find_spec("pip") is None or importlib.util.find_spec("hatchling") is None:
        lacks("pip or hatchling is not installed; type: make setup")
    # Under `make test` this is a make within a make, which also prints the folder that it enters.
    planned = subprocess.check_output(["make", "--dry-run", "wheel"], cwd=CHECKOUT, text=True)
    (command,) = (line for line in planned.splitlines() if " -m pip wheel " in line)
    _python, *words = command.split()
    words[words.index("dist")] = str(folder)
    subprocess.run([sys.executable, *words, *OFFLINE], cwd=CHECKOUT, check=True, timeout=PATIENCE_S)
    (found,) = folder.glob("*.whl")
    return found


def install_wheel(wheel, venv):
    """Install a wheel into a new virtual environment; return the environment of its processes.

    The two packages that it depends on are lent by this environment, and no other.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    words = ["--python", venv / "bin" / "python", "install", "--no-deps", "--no-index", wheel]
    subprocess.run([*PIP, *words], check=True, timeout=PATIENCE_S)
    lent = venv / "lent"
    lent.mkdir()
    for package in (msgpack, paho):
        place = Path(next(iter(package.__path__)))
        (lent / place.name).symlink_to(place)
    return os.environ | {"PYTHONPATH": str(lent)}
