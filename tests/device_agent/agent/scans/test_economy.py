"""Who declares no stream pays nothing for them: not at the start, not for a reading, not at a sink.

What is never imported runs no line, has no memory and costs no start; so what is counted are the
modules of streams in a process of its own, after readings, frames, answers and rows of windows.
"""

import subprocess
import sys

import pytest

RUN = """
import sys, tempfile
from pathlib import Path

from crdts import Replica
from device_agent.agent.core import Core, Durable
from device_agent.agent.intake.batch import Batch
from device_agent.agent.settings import Settings
from device_agent.agent.state.store import Store
from device_agent.gateway.core import GatewayCore, WaitingTerms
from device_agent.gateway.store import FleetStore
from lasp_edge.protocol.acceptance import Acceptance, Record
from lasp_edge.protocol.frontier import Listening
from lasp_edge.protocol.overheard import Overheard
from lasp_edge.protocol.topics import Topics, topic_of
{program}
SECOND_US, BEGIN_US = 1_000_000, 1_700_000_040_000_000
plan, sink = program.plan(), ("gateway", "store")
topics = Topics(plan.name)
with tempfile.TemporaryDirectory() as directory:
    agent = Store(Path(directory) / "agent")
    core = Core(plan, "pi-1", 1, agent.restored(), Settings(fence_wait_us=0))
    core.intake.sources.cursor("test")
    durable, keeper = Durable(core, agent), FleetStore(Path(directory) / "gateway")
    folds, overheard = plan.published_folds.values(), Overheard({{}})
    acceptance = Acceptance(plan.sent_streams, folds, topics, sink, overheard=overheard)
    gateway = GatewayCore(plan, acceptance, keeper, Replica(1, 7, "gateway"), WaitingTerms())
    core.handle_connected(BEGIN_US)
    entries = rows = 0
    for n in range(0, 240, 6):
        now_us = BEGIN_US + n * SECOND_US
        tags = [{{"room": "attic", "tap": "a"}}]
        durable.read(Batch("test", ["{event}"], [now_us], [float(n % 9)], tags), now_us)
        sent = [Record(now_us, each.topic, False, each.payload) for each in durable.tick(now_us)]
        turn = gateway.take(sent, Listening(now_us, BEGIN_US - 3_600 * SECOND_US))
        entries, rows = entries + len(turn.changes.entries), rows + len(turn.changes.rows)
        if turn.changes:
            keeper.commit(turn.changes)
        gateway.replies.owe(turn.accepted, now_us, keeper.commits)
        gateway.replies.answer(
            lambda each: durable.hear(topic_of(each, topics), each.encode(), now_us) or True,
            now_us,
        )
    agent.close(), keeper.close()
ours = (
    "lasp_edge.ordered", "lasp_edge.scans", "device_agent.agent.scans",
    "device_agent.gateway.streams", "device_agent.gateway.fleet_history",
    "lasp_edge.evaluation.fleet", "lasp_edge.evaluation.parted", "lasp_edge.evaluation.rows",
)
found = [name for name in sys.modules if name.startswith(ours)]
print(len(found), entries, rows, bool(core.streams), bool(gateway.streams))
"""
PLAIN = "from lasp_edge.examples.greenhouse import program"
OF_DEVICES = """
from lasp_edge import Program, scans
program = Program("water")
litres = program.event("litres")
program.result(program.scan("used", source=litres, scan=scans.differences(), per_device=True))
"""
OF_THE_FLEET = OF_DEVICES.replace("scans.differences(), per_device=True", "scans.changes()")


@pytest.mark.parametrize(
    ("program", "event", "on_device", "at_gateway"),
    [
        (PLAIN, "temperature", "False", "False"),
        (OF_DEVICES, "litres", "True", "False"),
        (OF_THE_FLEET, "litres", "False", "True"),
    ],
)
def test_who_has_no_streams_runs_no_line_of_them(program, event, on_device, at_gateway):
    words = [sys.executable, "-c", RUN.format(program=program, event=event)]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert not ended.returncode, ended.stderr
    modules, entries, rows, *streams = ended.stdout.split()
    assert streams == [on_device, at_gateway]
    assert (int(entries) > 3) is (program != OF_DEVICES), "rows of one device are not kept"
    assert (int(modules) > 20) is (program != PLAIN)
    if program == PLAIN:
        assert (int(modules), int(rows) > 3) == (0, True)
