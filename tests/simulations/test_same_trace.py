"""One seed, one trace: whatever Python's hash seed, and on every Python that the agent runs on."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import msgpack
import pytest

CHECKOUT = Path(__file__).parents[2]
MINORS = (11, 12, 13)
"""Versions 3.x that are compared."""
TRACES = """
from simulations.world.faults import KINDS
from simulations.world.run import run
from simulations.world.scenario import scenario_of

# How many operations a commit takes, and where a bit lies, is up to the SQLite of each Python.
kinds = tuple(kind for kind in KINDS if kind not in ("torn_commit", "disk_full", "bit_flip"))
for seed in range(8):
    print(run(scenario_of(seed, kinds)).trace)
"""


def pythons() -> dict[str, str]:
    """Return version -> an interpreter of it: those on the path, and those of pyenv."""
    found = {f"3.{sys.version_info.minor}": sys.executable}
    kept = sorted((Path.home() / ".pyenv" / "versions").glob("3.*/bin/python3"))
    for minor in MINORS:
        name = f"python3.{minor}"
        ours = [str(path) for path in kept if path.parents[1].name.startswith(f"3.{minor}.")]
        runs = [path for path in (shutil.which(name), *ours) if path and answers(path)]
        if runs:
            found.setdefault(f"3.{minor}", runs[0])
    return found


def answers(python: str) -> bool:
    """Return whether an interpreter starts: a shim of pyenv may stand for none."""
    return not subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode


@cache  # One of them is compared with both.
def traces(python: str, libraries: Path, hash_seed: str) -> str:
    """Return the traces of some seeds in a process of an interpreter."""
    environment = os.environ | {
        "PYTHONHASHSEED": hash_seed,
        "PYTHONPATH": os.pathsep.join((str(CHECKOUT), str(libraries))),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    ran = subprocess.run(
        [python, "-c", TRACES], env=environment, capture_output=True, text=True, check=False
    )
    assert not ran.returncode, ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """Return a folder with what the core needs; elsewhere msgpack takes its Python instead of C."""
    folder = tmp_path_factory.mktemp("libraries")
    (folder / "msgpack").symlink_to(Path(msgpack.__file__).parent)
    return folder


@pytest.mark.slow
def test_the_same_seed_gives_the_same_trace_whatever_the_hash_seed(libraries):
    first, second = (traces(sys.executable, libraries, seed) for seed in ("0", "4711"))
    assert first == second


@pytest.mark.slow
def test_the_same_seed_gives_the_same_trace_on_every_python(libraries):
    found = pythons()
    if len(found) < 2:
        pytest.skip(f"no other Python 3.11 to 3.13 is here, only {', '.join(found)}")
    said = {version: traces(python, libraries, "0") for version, python in found.items()}
    assert len(set(said.values())) == 1, said
