"""The release that runs: devices tell each other, so that mixed fleets can be seen."""

from typing import Final

RELEASE: Final = "0.1.0"
"""The version of the package, as `pyproject.toml` has it: reading it from the installed package's
metadata would cost an agent's memory and start."""
