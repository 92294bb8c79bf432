"""Who declares no stream pays nothing for them."""

import subprocess
import sys

TELL = """
import sys
from crdts import Replica
from device_agent.agent.changes import Restored
from device_agent.agent.core import Core
{program}
core = Core(program.plan(), "pi-1", 1, Restored())
ours = ("lasp_edge.ordered", "lasp_edge.scans", "device_agent.agent.scans")
found = [name for name in sys.modules if name.startswith(ours)]
print(len(found), core.streams is not None)
"""
STREAMED = """
from lasp_edge import Program, scans
program = Program("water")
litres = program.event("litres")
program.result(program.scan("used", source=litres, scan=scans.differences(), per_device=True))
"""


def told(program):
    words = [sys.executable, "-c", TELL.format(program=program)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()


def test_an_agent_without_streams_imports_nothing_of_them():
    assert told("from lasp_edge.examples.greenhouse import program") == ["0", "False"]
    count, runs = told(STREAMED)
    assert (int(count) > 20, runs) == (True, "True")
