"""The whole story on stand-ins for the commands: no Spark, real processes, wires and signals."""

import argparse
import io
import sys
import tempfile
from pathlib import Path

import pytest

from lasp_edge.errors import EnvironmentLacks, Exit
from simulations.demo import command, ending, story
from simulations.demo.broker import find_broker
from simulations.demo.live import Screen
from simulations.demo.trouble import Trouble
from tests.lacking import lacks

FAKE = str(Path(__file__).with_name("fake_lasp_edge.py"))

pytestmark = [pytest.mark.broker, pytest.mark.slow]


@pytest.fixture(autouse=True)
def quick(monkeypatch, tmp_path):
    """A story of seconds, in a temporary directory of its own."""
    try:
        find_broker()
    except EnvironmentLacks as error:
        lacks(str(error))
    for name in ("MEASURE_S", "KILLED_S", "BETWEEN_S", "CUT_OFF_S"):
        monkeypatch.setattr(story, name, 0.6)
    monkeypatch.setattr(command, "COMMAND", (sys.executable, FAKE))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def play(*words: str) -> tuple[int, list[str]]:
    out = io.StringIO()
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    code = command.play(parser.parse_args(words), Screen(out))
    return code, out.getvalue().splitlines()


def test_the_demo_kills_cuts_off_settles_and_finds_everything_equal(quick):
    code, lines = play()
    text = "\n".join(lines)
    assert (code, lines[-1]) == (Exit.FINE, "RESULT ok"), text
    assert len(lines) <= 45, text
    assert "pi-2 is killed" in text
    assert "pi-4 is cut off" in text
    assert [line[:7] for line in lines if line.startswith("(")] == [
        "(a) ok ", "(b) ok ", "(c) ok ", "(d) ok ", "(e) byt"
    ]  # fmt: skip
    assert list(quick.iterdir()) == []


@pytest.mark.parametrize("letter", ["a", "b", "c", "d"])
def test_each_check_sees_what_it_is_there_for(letter, monkeypatch, quick):
    monkeypatch.setenv("FAKE_LASP_EDGE", letter)
    monkeypatch.setattr(story, "SETTLE_S", 5.0)
    code, lines = play()
    assert code == Exit.DIFFERS
    assert lines[-1].startswith("RESULT differs: "), lines
    assert f"({letter}) DIFFERS" in "\n".join(lines)
    assert list(quick.iterdir()) == []
