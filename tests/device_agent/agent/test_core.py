"""The agent as a state machine: clocks, sources that end, and how little it says."""

import subprocess
import sys
from pathlib import Path

import pytest

from device_agent.agent.settings import Settings
from lasp_edge import Program
from lasp_edge.protocol.frames import BeatFrame, PaneFrame, PresenceFrame, VariableFrame
from lasp_edge.protocol.limits import EARLIEST_PANE_US
from lasp_edge.protocol.sharing import SharedFrame
from lasp_edge.units import SECOND_US
from tests.device_agent.agents import HOUR_US, NOW_US, Device, greenhouse

CHECKOUT = Path(__file__).parents[2]


# Time.


def test_a_clock_that_is_set_back_stops_nothing(device):
    device.read([20.0], [NOW_US])
    (lost,) = device.frames(PaneFrame, device.tick(20))
    device.now_us -= 24 * HOUR_US
    device.read([21.0])
    published = [p for _ in range(30) for p in device.tick()]
    assert [f for f in device.frames(PaneFrame, published) if f.number != lost.number]
    assert len(device.frames(BeatFrame, published)) >= 3  # one for each pane of 10 s
    assert device.frames(VariableFrame, published)


def test_a_slow_pane_is_sent_after_the_clock_was_set_back(tmp_path):
    device = Device(tmp_path, greenhouse(size_s=86_400, slide_s=86_400))
    device.read([20.0])
    device.now_us -= 24 * HOUR_US
    assert any(device.frames(PaneFrame, device.tick()) for _ in range(12))


def test_promises_are_numbered_and_only_change_with_what_they_say(device):
    device.read([20.0], [NOW_US])
    device.land(20)
    for _ in range(30):
        device.land(2)
    numbers = [frame.number for frame in device.frames(BeatFrame)]
    assert numbers == list(range(1, len(numbers) + 1))
    device.sent.clear()
    for _ in range(50):
        device.land(2)
    assert len(device.frames(BeatFrame)) == 10  # one in five is said though nothing is new


def test_an_idle_agent_says_little(device):
    device.read([20.0], [NOW_US], done=True)
    for _ in range(30):
        device.land(1)
    device.sent.clear()
    for _ in range(3_600):
        device.land(1)
    sent = sum(len(p.topic) + len(p.payload) for p in device.sent)
    assert sent < 3_600 * 15  # bytes a second


def test_nothing_is_published_while_disconnected_and_everything_after(device):
    device.core.handle_disconnected()
    device.read([20.0], [NOW_US])
    assert [device.tick(20) for _ in range(5)] == [[]] * 5
    device.core.handle_connected(device.now_us)
    kinds = {type(frame) for frame in device.frames(object, device.tick())}
    assert kinds == {VariableFrame, SharedFrame, PaneFrame, BeatFrame, PresenceFrame}


def test_a_broker_that_lost_everything_is_told_everything_again(device):
    device.read([20.0], [NOW_US])
    device.land(20)
    device.tick()
    device.core.handle_disconnected()
    device.core.handle_connected(device.now_us)
    frames = device.frames(object, device.tick())
    kinds = {VariableFrame, SharedFrame, BeatFrame, PresenceFrame}
    assert {type(frame) for frame in frames} == kinds
    entries = [frame for frame in frames if isinstance(frame, VariableFrame | SharedFrame)]
    assert {frame.variable for frame in entries} == {"local_average", "total"}


@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_link_that_takes_little_at_once_gets_everything_in_the_end(device, most):
    device.read([20.0], [NOW_US])
    device.land(20)
    device.core.handle_connected(device.now_us)
    everything = {p.topic for p in device.tick()}
    device.core.handle_connected(device.now_us)
    taken: list = []
    while everything != {p.topic for p in taken} and len(taken) < 60:
        device.now_us += 100_000
        for number, publication in enumerate(device.durable.tick(device.now_us)):
            if number == most:
                device.core.handle_unsent(publication)
                break
            taken.append(publication)
    assert everything == {p.topic for p in taken}


def test_a_will_that_is_told_too_late_is_contradicted(device):
    for _ in range(5):
        device.tick(2)
    device.hear(PresenceFrame(device.core.replica, 1, online=False))
    assert [f.online for f in device.frames(PresenceFrame, device.tick(2))] == [True]


@pytest.mark.parametrize("nonce", [0, 2**32 - 1], ids=["lesser", "greater"])
def test_so_is_one_of_a_process_before_on_a_store_that_was_lost(device, nonce):
    """It had the same incarnation, and any nonce; nobody may be there who remembers it."""
    device.tick(2)
    former = device.core.replica._replace(nonce=nonce)
    device.hear(PresenceFrame(former, 1, online=False))
    assert [f.online for f in device.frames(PresenceFrame, device.tick(2))] == [True]


# Sources that end.


def test_a_source_that_was_done_goes_on_where_its_file_has_grown(device):
    device.read([20.0], [NOW_US], cursor="1", done=True)
    device.settle()
    device.tick()
    device.restart()
    assert device.core.intake.sources.cursor("test") == "1"
    assert not device.core.intake.sources.finished
    device.tick(2)
    assert device.low_us <= NOW_US  # no word of the last window's end before the file is looked at
    device.read([21.0], [NOW_US + 1], cursor="2", done=True)
    assert "late" not in device.counted
    assert device.core.intake.sources.finished


def test_a_source_that_has_nothing_more_is_done_again_after_a_restart(device):
    device.read([20.0], [NOW_US], cursor="1", done=True)
    device.settle()
    device.tick()
    device.restart()
    device.read([], cursor="1", done=True)
    device.tick(2)
    assert device.core.done
    assert device.low_us == NOW_US + 60 * SECOND_US


def test_a_replay_without_any_reading_is_done_and_promises_nothing(device):
    # A promise of today would put windows of old recordings below the lake's floor for ever.
    device.read([], done=True)
    device.tick(2)
    beat = device.frames(BeatFrame)[-1]
    assert (beat.done, device.low_us) == (True, None)


def test_a_stopped_agent_goes_on_reading_after_a_restart(device):
    device.read([20.0])
    device.settle()
    device.restart()
    device.read([21.0])
    assert not device.core.intake.sources.finished
    assert device.counted["accepted"] == 2


def test_nothing_is_promised_before_anything_is_known(device):
    device.tick(2)
    assert device.low_us == EARLIEST_PANE_US  # before all readings: it has only now begun
    device.tick(20)
    device.tick(2)
    assert device.low_us is None


def test_of_two_sources_the_slower_one_holds_the_promise(device):
    device.core.intake.sources.cursor("fast")
    device.take([20.0], [NOW_US], [{}], source="fast", done=True)
    device.take([20.0], [NOW_US - HOUR_US], [{}], source="test")
    device.land(20)
    device.land(20)
    device.land(2)
    assert device.low_us == NOW_US - HOUR_US - device.settings.lateness_us
    assert not device.core.intake.sources.finished


def test_late_readings_are_counted_over_restarts(device):
    device.read([20.0], [NOW_US])
    device.land(20)
    device.land(20)
    device.tick(20)
    device.restart()
    device.read([20.0], [NOW_US - HOUR_US])
    assert device.counted["late"] == 1


def test_the_last_agreement_is_in_the_store_though_nothing_was_read_since(device):
    device.read([20.0])
    device.tick()
    for _ in range(12):
        device.tick()
    settled = device.store.restored().facts.settled["global_average"]
    assert settled == (device.core.results.fleet()["global_average"][""].inputs, 1)


def test_an_idle_agent_commits_nothing(device):
    device.read([20.0], [NOW_US], done=True)
    for _ in range(30):
        device.land(1)
    commits = []
    whole = device.store.commit
    device.store.commit = lambda changes: (commits.append(changes), whole(changes))
    for _ in range(600):
        device.land(1)
    assert commits == []


def test_the_same_inputs_give_the_same_frames(tmp_path):
    runs = []
    for name in ("a", "b"):
        device = Device(tmp_path / name)
        device.restart(nonce=7)
        for step in range(50):
            device.read([20.0 + step % 3], [NOW_US + step * 3 * SECOND_US])
            device.tick(3)
        runs.append(device.sent)
        device.kill()
    assert runs[0] == runs[1]


def test_a_program_without_windows_or_handlers_runs(tmp_path):
    program = Program("plain")
    program.event("temperature")
    device = Device(tmp_path, program.plan(), settings=Settings())
    device.read([20.0], [NOW_US], done=True)
    device.tick(2)
    device.tick(2)
    assert device.core.done
    assert device.low_us == NOW_US


def test_the_agent_imports_neither_spark_nor_pandas():
    code = (
        "import sys, device_agent.console.command.run_agent, device_agent.console.command.status\n"
        "heavy = {'pyspark', 'pandas', 'numpy', 'pyarrow', 'deltalake', 'hypothesis'}\n"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, check=False).returncode == 0
