"""The whole story on stand-ins for the commands: no Spark, real processes, wires and signals."""

import argparse
import io
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from lasp_edge.errors import EnvironmentLacks, Exit
from lasp_edge.tool.screen import Screen
from lasp_edge.tool.typed import typed_in
from simulations.demo import command, story
from simulations.demo.site import Trouble
from simulations.processes.broker import find_broker
from tests.simulations.watching import eventually, processes_of, runs
from tests.support_missing import lacks

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
    monkeypatch.setenv("TMPDIR", str(tmp_path))
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
    assert max(map(len, lines)) <= 80, text
    assert "bedroom is killed" in text
    assert "kitchen is cut off" in text
    assert [line[:7] for line in lines if line.startswith("(")] == [
        "(a) ok ", "(b) ok ", "(c) ok ", "(d) ok ", "(e) byt", "(f) ok "
    ]  # fmt: skip
    assert list(quick.iterdir()) == []


def test_each_check_sees_what_it_is_there_for(monkeypatch, quick):
    monkeypatch.setenv("FAKE_LASP_EDGE", "a,b,c,d")
    code, lines = play()
    assert code == Exit.DIFFERS
    assert lines[-1].startswith("RESULT differs: "), lines
    text = "\n".join(lines)
    assert [letter for letter in "abcd" if f"({letter}) DIFFERS" in text] == list("abcd"), text
    assert list(quick.iterdir()) == []


def test_a_cloud_that_is_idle_too_early_is_started_again_and_a_lake_that_is_asked_for_is_kept(
    monkeypatch, quick
):
    """It ends well once nothing came for some seconds, and on a busy machine more comes then."""
    monkeypatch.setenv("FAKE_LASP_EDGE", "hasty")
    code, lines = play("--lake", str(quick / "kept"))
    assert (code, lines[-1]) == (Exit.FINE, "RESULT ok"), lines
    assert f"  {typed_in(Path())} windows house --lake {quick / 'kept'}" in lines
    assert [path.name for path in quick.iterdir()] == ["kept"]


def test_an_agent_that_ends_by_itself_is_told_with_its_last_words(monkeypatch, quick):
    monkeypatch.setenv("FAKE_LASP_EDGE", "crash")
    code, lines = play()
    assert code == Exit.DIFFERS
    assert lines[-2:] == [
        "  | the disk is full",
        "RESULT differs: cellar ended by itself, with exit code 1",
    ]
    assert list(quick.iterdir()) == []


def test_a_missing_part_ends_with_the_line_to_type(monkeypatch, quick):
    monkeypatch.setenv("FAKE_LASP_EDGE", "java")
    with pytest.raises(
        Trouble, match="there is no Java; to bring it, type: pip install x"
    ) as caught:
        play()
    assert caught.value.exit_code == Exit.ENVIRONMENT
    assert list(quick.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_at_any_time_leaves_nothing_behind(number, quick):
    demo = subprocess.Popen(
        [sys.executable, "-c", PLAY],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert demo.stdout is not None
    wait_for_line(demo.stdout, "They measure")
    started = processes_of(quick)
    assert len(started) >= 7, "a broker, a cloud job and five agents"
    demo.send_signal(number)
    code = demo.wait()
    demo.stdout.close()
    assert code == (-number if number == signal.SIGKILL else Exit.INTERRUPTED)
    assert eventually(lambda: not any(map(runs, started)))
    assert eventually(lambda: not list(quick.iterdir()))


PLAY = f"""
import sys
from lasp_edge.tool.command_line import main
from simulations.demo import command
command.COMMAND = ({sys.executable!r}, {FAKE!r})
sys.exit(main(["demo"]))
"""


def wait_for_line(lines: Iterable[str], part: str) -> None:
    for line in lines:
        if part in line:
            return
    pytest.fail(f"it ended before it printed {part!r}")
