"""`lasp-edge replay`: what the readings of a lake or a gateway give, beside the rows there."""

import argparse
import importlib.metadata
import json
import tomllib
from pathlib import Path

import pytest

from cloud_tier.command import replay
from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.tables import LakeTables
from device_agent.gateway.core import WaitingTerms
from device_agent.gateway.run import _describe
from device_agent.gateway.store import FleetStore
from lasp_edge.errors import CommandError
from lasp_edge.ordered.cells import PRESENT, Item
from tests.cloud_tier.lake.test_items import BEGIN_US, PLAN, item, land
from tests.device_agent.gateway.test_streams import FIRST_US, Fleet
from tests.support_readme import block, commands

TERMS = WaitingTerms(("pi-0", "pi-1", "pi-2"))
DOORS = """
from lasp_edge import Program, scans

program = Program("doors")
door, bell = program.event("door"), program.event("bell", text=True)
program.result(program.scan("all", source=door, scan=scans.differences()))
program.result(program.scan("rung", source=bell, scan=scans.changes()), parts={"of": "text"})
"""
MORE = """
from lasp_edge import Program, scans

program = Program("doors")
door, knock = program.event("door"), program.event("knock")
program.result(program.scan("all", source=[door, knock], scan=scans.differences()))
program.result(program.scan("own", source=door, scan=scans.differences(), per_device=True))
"""
UNTIL = ("--until", "2023-11-15T22:00")


@pytest.fixture
def typed(tmp_path, monkeypatch):
    """Return a function that runs the command, in a directory with programs."""
    (tmp_path / "doors.py").write_text(DOORS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    declared = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]

    def points(*, group, name):
        value = declared["entry-points"][group][name]
        return (importlib.metadata.EntryPoint(name, value, group),)

    monkeypatch.setattr(importlib.metadata, "entry_points", points)

    def run(*words):
        parser = argparse.ArgumentParser()
        replay.add_arguments(parser)
        return replay.run(parser.parse_args(words))

    return run


def shown(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.fixture
def lake(tmp_path):
    made = LakeTables(tmp_path / "lake")
    prepare(PLAN, made)
    return made


@pytest.fixture
def gateway(tmp_path):
    """A gateway's directory with the readings of the docs, and its rows."""
    shown = {}
    exec(block("entrance"), shown)
    plan, store = shown["program"].plan(), FleetStore(tmp_path / "gateway")
    _describe(plan, store)
    fleet, of = Fleet(plan, store, TERMS), {"front": "pi-0", "cellar": "pi-1", "back": "pi-2"}
    entries = []
    for line in block("readings of doors").splitlines():
        read = json.loads(line)
        at_s = read["ts"] - FIRST_US // 1_000_000
        entries.append(fleet.reads(of[read["of"]], at_s, read["door"], tags={"house": "oak"}))
    fleet.land(entries, promised_s=4_000)
    return store


@pytest.mark.parametrize("times", [1, 2])
def test_what_a_lake_holds_is_replayed_whatever_came_twice(lake, typed, capsys, times):
    for _ in range(times):
        land(lake, "pi-0", {item(1, 4): PRESENT}, {item(12, 9): PRESENT})
        land(lake, "pi-1", {item(5, 20): PRESENT}, life=2)
    assert typed("doors", "all", "--lake", lake.root, *UNTIL, "--json") == 0
    rows = shown(capsys)
    assert [(row["time_us"] - BEGIN_US) // 1_000_000 for row in rows] == [5, 12]
    assert [row["difference"] for row in rows] == [16, -11]
    assert {row["where"] for row in rows} == {"replay"}  # no rows are kept
    typed("doors", "all", "--lake", lake.root, "--since", str(BEGIN_US + 6_000_000), *UNTIL)
    *_, row, summary = capsys.readouterr().out.splitlines()
    assert row.split()[-1] == "replay"
    assert summary == "0 rows as kept, 1 in the replay alone, 0 kept alone"
    typed("doors", "all", "--lake", lake.root, "--since", "2024", "--until", "2025")
    assert "0 rows as kept, 0 in the replay alone" in capsys.readouterr().out, "a year, no times"


@pytest.mark.usefixtures("gateway")
def test_a_gateways_rows_are_those_of_a_replay(typed, tmp_path, capsys):
    (tmp_path / "entrance.py").write_text(block("entrance"))
    typed("entrance", "visits", "--gateway", str(tmp_path / "gateway"), *UNTIL, "--json")
    rows = shown(capsys)
    assert [row["count"] for row in rows] == [3, 2]
    assert {row["where"] for row in rows} == {"both"}


@pytest.mark.usefixtures("gateway")
def test_another_program_over_the_same_readings_is_as_shown(typed, tmp_path, capsys):
    (tmp_path / "entrance.py").write_text(block("entrance"))
    (tmp_path / "changed.py").write_text(block("entrance").replace("gap_s=300", "gap_s=240"))
    (line,) = commands(block("other visits"))
    words = line.replace("~/gateway", str(tmp_path / "gateway")).split()
    assert words[:2] == ["lasp-edge", "replay"]
    assert typed(*words[2:]) == 0
    assert capsys.readouterr().out == block("other visits shown")


def test_rows_of_one_item_are_compared_by_what_they_say_and_not_by_their_number():
    def rows(*values, item=1):
        return [
            {"key": "", "time_us": 5, "place": f"a5!!pi-1!!x!!!!a{item}!!a{n}", "v": v, "v_q": v}
            for n, v in enumerate(values)
        ]

    found = replay._compared(rows(1, 2, 2), rows(3, 1, 2) + rows(2, item=2), ["v", "v_q"])
    assert [(row["v"], row["where"], row["place"][-6:]) for row in found] == [
        (3, "replay", "a1!!a0"),
        (1, "both", "a1!!a1"),
        (2, "both", "a1!!a2"),
        (2, "kept", "a1!!a2"),
        (2, "replay", "a2!!a0"),
    ]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["doors", "none", "--lake", "lake"], "not 'none', for it is not there; there are: all"),
        (["doors", "all", "--lake", "nowhere"], "nowhere"),
        (["doors", "all", "--lake", "lake", "--since", "soon"], "--since: a time such as"),
        (["doors", "all", "--lake", "lake", "--with", "more"], "it needs knock, and devices"),
        (["doors", "rung", "--lake", "lake"], "there are no readings of it"),
        (["doors", "all", "--gateway", "nowhere"], "holds no gateway's data"),
        (["more", "own", "--lake", "lake"], "it is of each device by itself"),
    ],
)
def test_a_mistake_is_answered_by_what_is_needed(lake, typed, tmp_path, words, why):
    land(lake, "pi-0", {Item(BEGIN_US, 1, ""): PRESENT})
    (tmp_path / "more.py").write_text(MORE)
    with pytest.raises(CommandError, match=why):
        typed(*words)
