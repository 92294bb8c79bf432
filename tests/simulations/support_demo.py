"""Runs `lasp-edge demo` as a newcomer does."""

import os
import subprocess
from pathlib import Path

from lasp_edge.errors import EnvironmentLacks, Exit
from simulations.processes.broker import find_broker
from simulations.processes.process import COMMAND
from tests.brokers import PATIENCE_S
from tests.simulations.watching import eventually, processes_of
from tests.support_missing import lacks


def demo(folder: Path, *words: str, working_in: Path | None = None) -> list[str]:
    """Run the demo with its temporary files in a folder and return what it printed."""
    try:
        find_broker()
    except EnvironmentLacks as error:
        lacks(str(error))
    ran = subprocess.run(
        [*COMMAND, "demo", *words],
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE_S,
        cwd=working_in,
        env=os.environ | {"TMPDIR": str(folder)},
        check=False,
    )
    lines = ran.stdout.splitlines()
    assert (ran.returncode, lines[-1:]) == (Exit.FINE, ["RESULT ok"]), ran.stdout + ran.stderr
    assert eventually(lambda: not processes_of(folder))
    return lines


def outcomes(lines: list[str]) -> list[str]:
    """Return how each check of a demo ended."""
    return [line[:7] for line in lines if line.startswith("(")]
