"""Print the readings that an agent kept, as JSON lines in the order of acceptance.

An agent keeps them when it runs with --keep-readings. `value` is as read, `q` is what it was
quantised to. A reading that was taken back later is there as it came.
"""

import argparse
import json
import sys
from pathlib import Path

from device_agent.agent.state.store import existing_store
from lasp_edge.errors import Exit

SECTION = "a device"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--data-dir", type=Path, required=True, help="the agent's data directory")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    store = existing_store(arguments.data_dir)
    device = (store.replica() or (0, 0, ""))[2]
    there = False
    for reading in store.readings():
        there = True
        print(json.dumps({"device": device, **reading}))  # noqa: T201
    store.close()
    if not there:
        kept = "it keeps what it accepts from now on if it is started with --keep-readings"
        print(f"{device or 'it'} kept no reading; {kept}", file=sys.stderr)  # noqa: T201
    return Exit.FINE
