"""Both type checkers take all programs that README and docs show, and refuse what is wrong.

Each runs once, over one folder. pyright comes as basedpyright, which brings its own node.
"""

import importlib.util
import json
import subprocess
import sys
from collections import defaultdict

import pytest

from tests.support_missing import lacks
from tests.support_readme import BLOCKS, CHECKOUT
from tests.support_typed import LINES, PRELUDE

SHOWN = {f"block_{n}": b.text for n, b in enumerate(BLOCKS) if b.language == "python"}
UNTYPED = ("pyarrow", "duckdb", "deltalake", "spark", "Lake(")
"""What a block uses whose packages bring no types: pyright knows nothing of these values."""
LEADING = PRELUDE.count("\n") + 1
WRONG = PRELUDE + "".join(f"    {line}\n" for line in LINES)
MYPY = ["mypy", "--no-error-summary", "--no-pretty", "--hide-error-context", "--strict"]
STRICT = """# pyright: strict
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return a folder of all programs, those of README and docs and the wrong ones."""
    folder = tmp_path_factory.mktemp("typed")
    for name, text in SHOWN.items():
        of_users = not any(each in text for each in UNTYPED)
        (folder / f"{name}.py").write_text(text + (STRICT if of_users else ""))
    (folder / "wrong.py").write_text(WRONG + STRICT)
    return folder


def run(words):
    """Return what a checker prints; it has to end as one that found something."""
    command = [sys.executable, "-m", *map(str, words)]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr  # the wrong lines are found
    return done.stdout


@pytest.fixture(scope="module")
def of_mypy(written):
    """Return file -> line -> the codes of mypy's errors there."""
    found = defaultdict(lambda: defaultdict(set))
    for line in run([*MYPY, *sorted(written.glob("*.py"))]).splitlines():
        place, _, message = line.partition(": error: ")
        if message:
            path, at = place.rsplit(":", 1)
            found[path.rsplit("/", 1)[-1]][int(at)].add(message.rpartition("[")[2].rstrip("]"))
    return found


@pytest.fixture(scope="module")
def of_pyright(written):
    """Return file -> line -> the rules of pyright's errors there."""
    if importlib.util.find_spec("basedpyright") is None:
        lacks(
            "basedpyright is not installed; to bring it, type: .venv/bin/pip install -e '.[types]'"
        )
    settings = {
        "typeCheckingMode": "standard",
        "pythonVersion": "3.11",
        "extraPaths": [str(CHECKOUT)],
        "include": ["."],
    }
    (written / "pyrightconfig.json").write_text(json.dumps(settings))
    words = ["basedpyright", "--outputjson", "--pythonpath", sys.executable, "-p", written]
    found = defaultdict(lambda: defaultdict(set))
    for each in json.loads(run(words))["generalDiagnostics"]:
        if each["severity"] == "error":
            at = each["range"]["start"]["line"] + 1
            found[each["file"].rsplit("/", 1)[-1]][at].add(each["rule"])
    return found


def test_mypy_takes_every_program_that_is_shown(of_mypy):
    assert {name: dict(of_mypy[name]) for name in of_mypy if name != "wrong.py"} == {}


def test_pyright_takes_every_program_that_is_shown(of_pyright):
    assert {name: dict(of_pyright[name]) for name in of_pyright if name != "wrong.py"} == {}


def test_mypy_refuses_each_wrong_line_and_no_other(of_mypy):
    found = of_mypy["wrong.py"]
    assert not [at for at in found if at < LEADING], dict(found)
    missed = {
        line: found[LEADING + n]
        for n, (line, (code, _)) in enumerate(LINES.items())
        if code not in (found[LEADING + n] or {None})
    }
    assert not missed


def test_pyright_refuses_each_wrong_line_and_no_other(of_pyright):
    found = of_pyright["wrong.py"]
    assert not [at for at in found if at < LEADING], dict(found)
    missed = {
        line: found[LEADING + n]
        for n, (line, (_, rule)) in enumerate(LINES.items())
        if rule not in found[LEADING + n]
    }
    assert not missed
