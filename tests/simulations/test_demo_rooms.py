"""What the demo's rooms measure, and what is proposed at its end."""

import re
import shlex
from argparse import ArgumentParser
from importlib import import_module
from itertools import islice
from json import loads
from pathlib import Path
from random import Random
from statistics import mean

import pytest

from lasp_edge.tool.command_line import commands
from lasp_edge.tool.loading import load_plan
from lasp_edge.tool.typed import typed_in
from simulations.demo import ending
from simulations.demo.program import program
from simulations.demo.rooms import ROOMS, measurements, source_words


def test_rooms_differ_by_more_than_they_wander():
    lines = {room: [loads(line) for line in islice(measurements(room, Random(1)), 300)]
            for room in ROOMS}  # fmt: skip
    means = {room: mean(each["temperature"] for each in of_room) for room, of_room in lines.items()}
    assert all(abs(means[room] - ROOMS[room]) < 0.5 for room in ROOMS), means
    assert len({round(value) for value in means.values()}) == len(ROOMS)
    assert {each["room"] for each in lines["attic"]} == {"attic"}


@pytest.mark.parametrize(
    ("events", "sources"),
    [
        (program.plan().events, ["host", "stdin"]),
        (load_plan(ending.EXAMPLE).events, ["stdin"]),
        (["temperature", "cpu"], ["host"]),
        (["load"], ["host"]),
        (["other"], ["host"]),  # which says what it offers
    ],
)
def test_a_program_is_given_what_it_asks_for(events, sources):
    words = source_words(events)
    assert [words[n + 1] for n, word in enumerate(words) if word == "--source"] == sources


@pytest.mark.parametrize("lake", [None, Path("a lake")])
def test_what_is_proposed_is_understood_when_typed(lake, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("tables").mkdir()
    _, *lines = ending.next_lines("house", lake)
    for line in lines:
        assert re.match(r"  \S", line)
        name, *words = shlex.split(line.strip().removeprefix(typed_in(Path())))
        parser = ArgumentParser(exit_on_error=False)
        import_module(commands()[name]).add_arguments(parser)
        parsed = parser.parse_args(words)
        if getattr(parsed, "program", None):
            load_plan(parsed.program)
        assert name != "demo" or parsed.lake in {None, Path("tables-2")}, "the other one is taken"
