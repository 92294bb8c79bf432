"""Membership is data: who is retired counts no more, until it is admitted again."""

import argparse
import json
from itertools import pairwise

import pytest

from crdts import Membership, Replica, Version
from crdts.membership import Member
from device_agent.console.command import status
from lasp_edge.protocol.commands import CommandFrame
from lasp_edge.protocol.frames import (
    BeatFrame,
    PaneFrame,
    VariableFrame,
    VariableReport,
)
from lasp_edge.protocol.inputs import membership_text
from lasp_edge.protocol.limits import CLOCK_NUMBERS, CONTROLS_AHEAD
from lasp_edge.protocol.repeating import CORRECT_US, REPEAT_US
from lasp_edge.protocol.shards import key_shard
from lasp_edge.units import SECOND_US
from simulations.oracle import PublishedPartial, inputs
from tests.device_agent.agents import NOW_US, Device, rooms
from tests.device_agent.support_entries import PEER, beat, entry, fleet
from tests.support_commands import member_command

OPERATOR = Replica(1, 5, "operator")
OTHER = Replica(4, 44, "pi-3")


@pytest.fixture
def device(tmp_path):
    device = Device(tmp_path)
    device.read([20.0])
    device.tick()
    for replica in (PEER, OTHER):
        device.hear(entry(device, replica, 1, (1, 2200)))
    return device


def word(control=1, *, retired=True, replica=PEER, seq=60):
    return member_command(OPERATOR, 1, replica.device, control, retired, Version.of(replica, seq))


def test_a_retired_device_counts_no_more_and_again_when_it_is_admitted(device):
    before = fleet(device)
    assert (before.partial, before.devices) == ((3, 6400), 3)
    device.hear(word())
    assert (fleet(device).partial, fleet(device).devices) == ((2, 4200), 2)
    assert device.core.agreements.all()["global_average"].devices == 2
    assert fleet(device).inputs != before.inputs
    device.hear(word(2, retired=False))
    assert fleet(device) == before


def test_the_last_agreement_is_stored_though_readings_end_it_before_the_next_commit(tmp_path):
    device = Device(tmp_path)
    device.read([20.0])
    device.land(10)  # it is alone, and agrees
    device.hear(entry(device, PEER, 1, (1, 2200)))
    device.hear(beat(device))
    agreed = device.core.agreements.all()["global_average"]
    assert (agreed.settled, agreed.devices) == (True, 2)
    device.read([21.0])
    device.land(10)
    assert not device.core.agreements.all()["global_average"].settled
    stored = device.store.restored().facts.settled["global_average"]
    assert stored == (agreed.inputs, 2)


def test_what_a_retired_device_says_is_stored_and_counts_when_it_is_back(device):
    device.hear(word())
    device.hear(entry(device, PEER, 2, (5, 500)))
    assert fleet(device).partial == (2, 4200)
    device.hear(entry(device, Replica(1, 1, "pi-4"), 1, (1, 100)))
    device.hear(word(replica=Replica(0, 0, "pi-4"), seq=0))  # it was never heard of panes
    device.hear(word(2, retired=False))
    assert fleet(device).partial == (7, 4700)


def test_so_it_is_with_keys(tmp_path):
    device = Device(tmp_path, rooms())
    stream = device.program.local_folds["here"].stream
    shard = key_shard("attic")
    for replica in (PEER, OTHER):
        columns = ((1,), (5,))
        device.hear(VariableFrame(replica, 1, "here", stream, shard, ("attic",), (1,), columns))
    device.hear(word())
    keys = device.core.results.fleet()["everywhere"]
    assert {key: result.partial for key, result in keys.items()} == {"attic": (1, 5)}
    device.hear(word(replica=OTHER))
    assert device.core.results.fleet()["everywhere"] == {}
    device.hear(word(2, replica=OTHER, retired=False))
    device.hear(word(2, retired=False))
    assert device.core.results.fleet()["everywhere"]["attic"].partial == (2, 10)


def test_inputs_are_the_definitions(device):
    device.hear(word())
    me = device.core.replica
    words = {
        ("", "pi-1"): PublishedPartial(Version.of(me, 1), (1, 2000)),
        ("", "pi-2"): PublishedPartial(Version.of(PEER, 1), (1, 2200)),
        ("", "pi-3"): PublishedPartial(Version.of(OTHER, 1), (1, 2200)),
    }
    retired = {"pi-2": Version(3, 33, 60)}
    assert inputs(device.program, "global_average", words, retired) == fleet(device).inputs
    device.hear(word(2, retired=False))
    assert inputs(device.program, "global_average", words, {}) == fleet(device).inputs


def test_devices_with_other_knowledge_of_membership_show_other_inputs(tmp_path):
    program = rooms()
    a, b = Device(tmp_path / "a", program, name="a"), Device(tmp_path / "b", program, name="b")
    nobody = Replica(0, 0, "never-heard")
    a.hear(word(replica=nobody, seq=0))
    said = [device.core.agreements.all()["everywhere"].inputs for device in (a, b)]
    assert said[0] != said[1]
    b.hear(word(replica=nobody, seq=5))
    assert b.core.agreements.all()["everywhere"].inputs not in said
    a.hear(word(replica=nobody, seq=5))  # of two words of one number the one that lets more count
    said = {device.core.agreements.all()["everywhere"].inputs for device in (a, b)}
    assert len(said) == 1


def test_nobody_waits_for_a_retired_device(device):
    digest = device.core.exchange.reports()[0].digest
    for replica in (PEER, OTHER):
        report = VariableReport("local_average", 1, digest)
        device.hear(BeatFrame(replica, 1, (), done=False, reports=(report,)))
    assert fleet(device).settled
    device.read([21.0])
    device.tick()
    assert not fleet(device).settled
    device.hear(word())
    device.hear(word(replica=OTHER))
    assert (fleet(device).settled, fleet(device).offline) == (True, ())
    device.hear(word(2, retired=False))
    assert not fleet(device).settled


def test_the_membership_is_durable(device):
    device.hear(word())
    device.hear(word(3, retired=False, replica=OTHER))
    device.tick()
    device.restart()
    members = device.core.commands.membership.entries
    assert members == {
        "pi-2": Member(1, retired=True, version=Version(3, 33, 60)),
        "pi-3": Member(3, retired=False, version=Version(4, 44, 60)),
    }
    device.hear(entry(device, PEER, 1, (1, 2200)))
    device.tick()
    assert fleet(device).partial == (1, 2000)
    assert device.core.report()["retired"] == ["pi-2"]


def test_the_greater_control_wins_in_any_order(device):
    words = [word(1), word(2, retired=False), word(3, seq=70)]
    for frame in (words[2], words[0], words[1], words[2]):
        device.hear(frame)
    assert device.core.commands.membership.retired == {"pi-2": Version(3, 33, 70)}


def test_a_control_far_ahead_is_refused_and_counted(device):
    device.hear(word(1 + CLOCK_NUMBERS + CONTROLS_AHEAD))
    assert device.core.commands.membership == Membership()
    assert device.counted["frame: command: control too far ahead"] == 1
    device.hear(word(CLOCK_NUMBERS + CONTROLS_AHEAD))
    assert device.core.commands.membership.retired


def test_a_stranger_cannot_fill_the_membership(device, monkeypatch):
    monkeypatch.setattr("lasp_edge.protocol.commands.MEMBERS", 3)
    for number in range(5):
        device.hear(word(replica=Replica(0, 0, f"x-{number}")))
    assert len(device.core.commands.membership.entries) == 3
    assert device.counted["frame: command: too many members"] == 2
    device.hear(word(2, retired=False, replica=Replica(0, 0, "x-1")))
    assert sorted(device.core.commands.membership.retired) == ["x-0", "x-2"]


def test_a_word_on_anothers_topic_is_refused(device):
    device.hear(word(), device.core.agent.topics.of("command", "pi-3"))
    assert device.core.commands.membership == Membership()
    assert device.counted["frame: on another's topic"] == 1


def words_said(device, seconds):
    """Return the commands that a device repeats, each in its own name and numbered."""
    said = [f for _ in range(seconds) for f in device.frames(CommandFrame, device.tick())]
    assert {frame.sender for frame in said} <= {device.core.replica}
    assert all(after.number > before.number for before, after in pairwise(said))
    return [frame.commands().membership for frame in said]


def test_who_hears_nobody_say_a_word_says_it_again(device):
    device.hear(word())
    assert words_said(device, REPEAT_US // SECOND_US - 1) == []
    assert words_said(device, REPEAT_US // SECOND_US + 2) == [word().commands().membership]


def test_who_hears_it_waits_on(device):
    device.hear(word())
    for _ in range(20):
        assert words_said(device, REPEAT_US // SECOND_US // 2) == []
        device.hear(word())


def test_who_hears_an_older_word_corrects_it(device):
    device.hear(word(2, retired=False))
    device.hear(word())
    assert words_said(device, 2 * CORRECT_US // SECOND_US + 1) == [
        word(2, retired=False).commands().membership
    ]


def test_after_a_reconnect_a_word_is_said_soon_unless_the_broker_has_it(device):
    device.hear(word())
    device.core.handle_connected(device.now_us)
    assert words_said(device, 2 * CORRECT_US // SECOND_US + 1) == [word().commands().membership]
    device.core.handle_connected(device.now_us)
    device.hear(word())
    assert words_said(device, 2 * CORRECT_US // SECOND_US + 1) == []


def test_a_word_is_retained(device):
    device.hear(word())
    said = [p for _ in range(200) for p in device.tick() if "/command/" in p.topic]
    assert said
    assert all(p.retain and p.topic == device.core.agent.topics.of("command", "pi-2") for p in said)


def test_a_device_that_is_retired_itself_goes_on_and_knows(device):
    device.hear(word(replica=device.core.replica, seq=1))
    assert fleet(device).partial == (2, 4400)
    device.read([25.0])
    device.tick()
    assert fleet(device).partial == (2, 4400)
    assert device.core.results.local()["local_average"][""].partial == (2, 4500)
    device.hear(word(2, replica=device.core.replica, seq=1, retired=False))
    assert fleet(device).partial == (4, 8900)


def test_a_device_that_is_retired_itself_notes_what_to_type_until_it_is_admitted(device):
    own, name = device.core.replica, device.core.agent.topics.fleet
    device.hear(word(replica=own, seq=1))
    for _ in range(2):
        (line,) = device.core.report()["notices"]
        assert line.startswith("this device is retired: ")
        assert f"type lasp-edge admit {own.device} --fleet {name} --broker " in line
        device.tick()
        device.restart()
    device.hear(word(2, replica=own, seq=1, retired=False))
    assert device.core.report()["notices"] == []


def test_a_beat_says_the_newest_durable_pane_entry(tmp_path):
    device = Device(tmp_path)
    device.tick()
    assert [beat.seq for beat in device.frames(BeatFrame)] == [0]
    device.read([1.0, 2.0], [NOW_US - 30 * SECOND_US, NOW_US])
    device.tick(20)
    stored = max(row.seq for _, row in device.rows())
    assert device.frames(BeatFrame)[-1].seq == stored == 2
    sent = [seq for f in device.frames(PaneFrame) for b in f.blocks for seq in b.seqs]
    assert max(sent) == stored
    device.restart()
    device.tick()
    assert device.frames(BeatFrame)[-1].seq == 0  # of the new life


def test_membership_text_is_canonical():
    assert membership_text(Membership()) == ""
    membership = Membership()
    for device, version in (("b", Version(1, 2, 3)), ("a", Version(4, 5, 6))):
        membership |= membership.retire(device, version)
    assert membership_text(membership) == "a=4.5.6\x1fb=1.2.3"
    membership |= membership.admit("a")
    assert membership_text(membership) == "b=1.2.3"


def test_status_names_who_is_retired(device, capsys):
    device.hear(word())
    device.hear(word(2, retired=False, replica=OTHER))
    device.tick()
    for words in (["--json"], []):
        arguments = argparse.ArgumentParser()
        status.add_arguments(arguments)
        assert status.run(arguments.parse_args(["--data-dir", str(device.directory), *words])) == 0
    as_json, *plain = capsys.readouterr().out.splitlines()
    assert json.loads(as_json)["retired"] == ["pi-2"]
    assert any("retired        pi-2 (no longer counted)" in line for line in plain)


def test_a_command_costs_what_it_says_and_not_what_all_before_it_said(tmp_path):
    device, rows = Device(tmp_path), []
    write = device.store.commit
    device.store.commit = lambda changes: rows.append(changes.facts.membership) or write(changes)
    for number in range(30):
        peer = Replica(3, 33, "pi-2")
        version = Version(1, 5, number)
        device.hear(member_command(peer, number + 1, f"x-{number:02}", 1, True, version))  # noqa: FBT003
        device.tick()
    written = [len(membership.entries) for membership in rows if membership is not None]
    assert written == [1] * 30
    assert len(device.core.commands.retired) == 30
    membership = device.core.commands.membership
    device.restart()
    assert device.core.commands.membership == membership
    digests = {fold.entries.digest for fold in device.core.samples.published.values()}
    again = next(iter(device.core.samples.published.values())).entries
    again.set_membership(membership)
    assert digests == {again.digest}


def test_an_operators_command_that_is_overruled_is_an_alarm_of_the_device(device):
    """It stands on the topic of the device's state, which `watch` shows, and in `status`."""
    device.hear(member_command(OPERATOR, 1, "pi-3", 9, True, Version(2, 5, 60)))  # noqa: FBT003
    assert not device.core.agent.notices.alarms
    device.hear(member_command(OPERATOR, 1, "pi-3", 4, False, Version(2, 5, 60)))  # noqa: FBT003
    device.tick(60)
    (alarm,) = device.core.report()["alarms"]
    assert "about pi-3 came after a later one" in alarm
    assert alarm in device.store.restored().facts.notices
    for _ in range(3_600 // 60 + 1):
        device.tick(60)
    assert not device.core.report()["alarms"]
