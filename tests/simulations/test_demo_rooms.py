"""What the demo's rooms say, and what is proposed at its end."""

import asyncio
import re
import shlex
from argparse import ArgumentParser
from importlib import import_module
from io import StringIO
from itertools import islice
from json import loads
from pathlib import Path
from random import Random
from statistics import mean

import pytest

from lasp_edge.tool.command_line import commands
from lasp_edge.tool.loading import load_plan
from lasp_edge.tool.screen import Screen
from lasp_edge.tool.typed import typed_in
from simulations.demo import what_next
from simulations.demo.program import program
from simulations.demo.rooms import ROOMS, measurements, source_words
from simulations.demo.stage import Cast, Stage
from simulations.demo.trouble import Trouble


def test_rooms_differ_by_more_than_they_wander():
    told = {room: [loads(line) for line in islice(measurements(room, Random(1)), 300)]
            for room in ROOMS}  # fmt: skip
    means = {room: mean(each["temperature"] for each in said) for room, said in told.items()}
    assert all(abs(means[room] - ROOMS[room]) < 0.5 for room in ROOMS), means
    assert len({round(value) for value in means.values()}) == len(ROOMS)
    assert {each["room"] for each in told["attic"]} == {"attic"}


@pytest.mark.parametrize(
    ("events", "sources"),
    [
        (program.plan().events, ["host", "stdin"]),
        (load_plan(what_next.EXAMPLE).events, ["stdin"]),
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
    _, *lines = what_next.next_lines("house", lake)
    for line in lines:
        assert re.match(r"  \S", line)
        name, *words = shlex.split(line.strip().removeprefix(typed_in(Path())))
        parser = ArgumentParser(exit_on_error=False)
        import_module(commands()[name]).add_arguments(parser)
        parsed = parser.parse_args(words)
        if getattr(parsed, "program", None):
            load_plan(parsed.program)
        assert name != "demo" or parsed.lake in {None, Path("tables-2")}, "the other one is taken"


def test_spark_is_waited_for_as_long_as_it_commits(tmp_path):
    async def wait(commits):
        cast = Cast("", program.plan(), [], [], tmp_path / f"lake-{commits}", [])
        stage = Stage(cast, Screen(StringIO()))
        log = stage.lake / "windows" / "_delta_log"
        log.mkdir(parents=True)
        done = []

        async def merge():
            for number in range(commits):
                await asyncio.sleep(0.3)
                (log / f"{number:020}.json").touch()
            done.append(True)

        merging = asyncio.create_task(merge())
        try:
            await stage.until(lambda: bool(done) and commits > 0, 0.7, "merged",
                              moving=stage.cloud_progress)  # fmt: skip
        finally:
            await merging
            await stage.children.close()

    asyncio.run(wait(5))
    with pytest.raises(Trouble, match=r"after 1 s still not merged"):
        asyncio.run(wait(0))
