"""Runs `lasp-edge demo` as a newcomer does."""

import os
import subprocess
from pathlib import Path

from lasp_edge.errors import Exit
from simulations.demo.lake import COMMAND
from tests.simulations.watching import eventually, processes_of

MOST_S = 400


def demo(folder: Path, *words: str, working_in: Path | None = None) -> list[str]:
    """Run the demo with its temporary files in a folder and return what it printed."""
    ran = subprocess.run(
        [*COMMAND, "demo", *words],
        capture_output=True,
        text=True,
        timeout=MOST_S,
        cwd=working_in,
        env=os.environ | {"TMPDIR": str(folder)},
        check=False,
    )
    lines = ran.stdout.splitlines()
    assert (ran.returncode, lines[-1:]) == (Exit.FINE, ["RESULT ok"]), ran.stdout + ran.stderr
    assert eventually(lambda: not processes_of(folder))
    return lines
