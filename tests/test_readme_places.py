"""Where docs say that a lake can run: the words of their commands are those of the commands."""

import argparse
import re
import shlex
import shutil
import subprocess

from cloud_tier.command import cloud, lander
from tests.support_readme import BIN, CHECKOUT, FENCED

COMMANDS = {"cloud": cloud, "lander": lander}


def blocks(language):
    """Return the blocks of a language on the page about lakes."""
    text = (CHECKOUT / "docs" / "cloud.md").read_text()
    return [block for each, block in FENCED.findall(text) if each == language]


def parsed(words):
    """Return the options of a command's words, the first of which is its name."""
    name, *rest = words
    parser = argparse.ArgumentParser(exit_on_error=False)
    COMMANDS[name].add_arguments(parser)
    return parser.parse_args(rest)


def test_units_of_systemd_start_the_job(tmp_path):
    (unit,) = blocks("ini")
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
    (manifest,) = blocks("yaml")
    commands = re.findall(r"^ *command: \[(.*)\]$", manifest, re.MULTILINE)
    words = [[word.strip(' "') for word in each.split(",")] for each in commands]
    of_lander, of_job = (parsed(each[1:]) for each in words)
    assert of_lander.lake == of_job.lake == "s3a://bucket/lake"
    assert of_job.no_lander


def test_a_job_that_ends_by_itself_is_called_so():
    (line,) = [line for block in blocks("sh") for line in block.splitlines() if "--until" in line]
    assert parsed(shlex.split(line)[1:]).until_idle == 30
