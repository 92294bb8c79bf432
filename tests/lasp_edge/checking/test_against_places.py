"""What a changed program does with the data that an agent, a gateway or a lake has."""

import os
import sqlite3

import pytest

from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.tables import LakeTables
from device_agent.gateway.run import _describe
from device_agent.gateway.store import FleetStore
from lasp_edge.errors import Exit
from lasp_edge.tool.command_line import main
from lasp_edge.tool.loading import load_plan
from tests.device_agent.agents import NOW_US, Device

PROGRAM = """
from crdts import BoundedLWWSet
from lasp_edge import Program, folds

program = Program("house")
warm = program.event("warm", resolution="{step}")
samples = program.declare_dynamic(BoundedLWWSet(bound={bound}), "samples")
program.collect(warm, into=samples)
program.window("{window}", source=warm, fold=folds.max(), size_s=60)
"""
LINES = (
    "event warm has other steps, 0.1 to 0.01",
    "window by_minute is gone",
    "window by_minutes is new: each device makes it again of the readings with own times",
    "variable samples is converted, samples of warm in steps of 0.1 to",
    "kept as it is: nothing",
)


@pytest.fixture
def house(tmp_path, monkeypatch):
    """Return the directory with a program that ran, and one that is to follow."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, step, bound, window in (("ran", "0.1", 100, "by_minute"), ("next_", "0.01", 50, "")):
        text = PROGRAM.format(step=step, bound=bound, window=window or "by_minutes")
        (tmp_path / f"house_{name}.py").write_text(text)
    return tmp_path


def agent(directory, plan):
    device = Device(directory, plan)
    device.read([21.5], [NOW_US], name="warm")
    device.tick(60)
    device.kill()


def gateway(directory, plan):
    store = FleetStore(directory)
    _describe(plan, store)
    store.close()


def lake(directory, plan):
    prepare(plan, LakeTables(str(directory)))


def against(capsys, *words):
    code = main(["check", "house_next_:program", "--against", *words])
    printed = capsys.readouterr()
    return code, printed.out.splitlines(), printed.err


@pytest.mark.parametrize("kind", [agent, gateway, lake])
def test_each_place_says_what_becomes_of_its_data(kind, house, capsys):
    kind(house / "data", load_plan("house_ran:program"))
    words = ["--lake", "data"] if kind is lake else ["data"]
    for given in (words, ["data"]):
        code, (head, *lines), _ = against(capsys, *given)
        notes, found = lines[: -len(LINES)], lines[-len(LINES) :]
        assert (code, kind.__name__ in head) == (Exit.FINE, True)
        starts = [line[: len(start)] for line, start in zip(found, LINES, strict=True)]
        assert starts == list(LINES)
        assert bool(notes) == (kind is agent)
    if kind is agent:
        assert "it still has its readings from" in notes[0]
        assert notes[-1] == "1 pane entries are not delivered yet: they are sent in any case"


def test_a_place_has_no_texts_of_functions_and_says_so(house, capsys):
    gateway(house / "data", load_plan("house_ran:program"))
    text = PROGRAM.format(step="0.1", bound=100, window="by_minute")
    keyed = text.replace("size_s=60", "size_s=60, key=lambda event: event.device")
    (house / "house_keyed.py").write_text(keyed)
    assert main(["check", "house_keyed:program", "--against", "data"]) == Exit.FINE
    note = capsys.readouterr().out.splitlines()[1]
    assert note.startswith("no text of a function is stored: whether keys, handlers and folds mean")


@pytest.mark.parametrize("kind", [agent, gateway])
def test_a_damaged_place_is_named_in_one_line(kind, house, capsys):
    kind(house / "data", load_plan("house_ran:program"))
    (path,) = (house / "data").glob("*.sqlite")
    with path.open("r+b") as file:
        file.seek(4_096)
        file.write(os.urandom(8_192))
    code, lines, error = against(capsys, "data")
    assert (code != Exit.FINE, lines, error.count("\n")) == (True, [], 1)
    assert f"{path.name} cannot be read" in error


def test_a_place_of_an_earlier_release_says_what_to_do(house, capsys):
    gateway(house / "data", load_plan("house_ran:program"))
    with sqlite3.connect(house / "data" / "gateway.sqlite") as db:
        db.execute("DELETE FROM fact WHERE name = 'summary'")
    code, _, error = against(capsys, "data")
    assert (code != Exit.FINE, "Start the gateway once with this release" in error) == (True, True)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["data"], "it holds no data of an agent, a gateway or a lake"),
        (["data/none"], "there is no such directory"),
        (["--lake", "data"], "no lake with a table 'programs' in"),
        ([], "--against needs the former program"),
        (["house_ran.py", "--lake", "data"], "write --against --lake DIR, and no file"),
    ],
)
def test_what_is_no_place_is_named(words, expected, house, capsys):
    (house / "data").mkdir()
    code, _, error = against(capsys, *words)
    assert (code != Exit.FINE, expected in error) == (True, True), error
