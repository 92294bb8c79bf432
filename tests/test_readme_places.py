"""Where docs say that a lake can run: the words of their commands are those of the commands."""

import argparse
import re
import shlex
import shutil
import subprocess

from cloud_tier.command import cloud, lake, lander
from lasp_edge.checking import command as check
from tests.support_readme import BIN, block, commands

COMMANDS = {"cloud": cloud, "lander": lander, "lake": lake, "check": check}


def parsed(words):
    """Return the options of a command's words, the first of which is its name."""
    name, *rest = words
    parser = argparse.ArgumentParser(exit_on_error=False)
    COMMANDS[name].add_arguments(parser)
    return parser.parse_args(rest)


def test_units_of_systemd_start_the_job(tmp_path):
    unit = block("unit of systemd")
    (line,) = re.findall("^ExecStart=(.*)$", unit, re.MULTILINE)
    path, *words = shlex.split(line)
    assert path.endswith("/lasp-edge")
    assert parsed(words).metrics == "9100"
    if shutil.which("systemd-analyze"):
        written = tmp_path / "lasp-lake.service"
        written.write_text(unit.replace(path, str(BIN / "lasp-edge")))
        done = subprocess.run(
            ["systemd-analyze", "verify", written], check=False, capture_output=True, text=True
        )
        assert "lasp-lake" not in done.stderr, done.stderr


def test_containers_of_kubernetes_start_lander_and_job():
    manifest = block("pods")
    lines = re.findall(r"^ *command: \[(.*)\]$", manifest, re.MULTILINE)
    words = [[word.strip(' "') for word in each.split(",")] for each in lines]
    of_lander, of_job = (parsed(each[1:]) for each in words)
    assert of_lander.lake == of_job.lake == "s3a://bucket/lake"
    assert of_job.no_lander


def test_a_job_that_ends_by_itself_is_called_so():
    (line,) = commands(block("merged once"))
    words = shlex.split(line)[1:]
    assert parsed(words).once
    assert parsed(words).no_lander


def test_commands_that_look_ahead_are_called_so():
    (line,) = commands(block("plan of a lake"))
    assert parsed(shlex.split(line)[1:]).program == "lasp_edge.examples.greenhouse:program"
    (line,) = commands(block("upgrade of a lake"))
    assert parsed(shlex.split(line)[1:]).action == "upgrade"
    (line,) = commands(block("check against"))
    assert str(parsed(shlex.split(line)[1:]).against) == "former/greenhouse.py"
