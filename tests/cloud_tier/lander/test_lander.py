"""The lander on a fake link and a clock that stands still: kills, repeats, acknowledgements."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from cloud_tier.lander.segments import DEVICES_FILE
from crdts import Replica
from lasp_edge.link import Disconnected
from lasp_edge.protocol.acks import RUNS_IN_AN_ACK, NotTaken
from lasp_edge.protocol.fencing import HelloFrame, SourceHigh
from lasp_edge.protocol.kinds import decode
from lasp_edge.protocol.repeating import REPEAT_US
from lasp_edge.protocol.sizes import MAX_FRAME_BYTES
from tests.cloud_tier.frames import CONNECTED, message
from tests.cloud_tier.support_devices import BEGIN_US, SECOND_US, rooms
from tests.lasp_edge.protocol.support_frames import (
    ME,
    TOPICS,
    beat,
    command,
    panes,
)

PROGRAM = rooms()
LIFE = (ME.incarnation, ME.nonce)


class Killed(BaseException):
    """The process ends here."""


def dies(*_args, **_options):
    raise Killed


def test_message_lands_and_is_acknowledged_to_broker_and_device(station):
    station.turn(CONNECTED, message(panes(PROGRAM, 4)), message(panes(PROGRAM, 5, first_seq=3)))
    assert [m.topic for m in station.link.acknowledged] == [TOPICS.of("pane", "pi-0")] * 2
    assert station.link.acks() == {}
    station.turn(after_s=1)
    assert len(station.rows()) == 4
    assert station.link.acks() == {"pi-0": {LIFE: [1, 2, 3, 4]}}
    assert station.landing.lake_id == station.lake.lake_id()


def test_data_promises_and_tick_are_one_commit(station):
    before = DeltaTable(station.lake.landing).version()
    station.turn(CONNECTED, message(panes(PROGRAM, 4)), message(beat(1, 10)))
    station.turn(after_s=1)
    assert DeltaTable(station.lake.landing).version() == before + 1
    assert [len(station.rows(kind)) for kind in ("pane", "promise", "tick")] == [2, 1, 1]


def test_a_device_that_only_promises_hears_now_and_then_that_the_lake_is_there(station):
    lake = station.landing.lake_id
    station.turn(CONNECTED, message(beat(1, 10, store=lake)))
    station.turn(after_s=3)
    (greeting,) = station.link.ack_frames()
    assert (greeting.about, greeting.sink, greeting.store) == ("pi-0", "lake", lake)
    assert (greeting.taken, greeting.not_taken) == ((), ())
    station.link.published.clear()
    station.turn(message(beat(2, 11, store=lake)), after_s=100)
    station.turn(after_s=3)
    assert station.link.acks() == {}, "it was greeted just now"
    station.turn(message(beat(3, 12, store=lake)), after_s=150)
    station.turn(after_s=3)
    assert station.link.acks() == {"pi-0": {}}


def test_a_device_that_delivers_to_another_lake_is_told_of_this_one_and_its_promise_is_not_taken(
    station,
):
    station.turn(CONNECTED, message(beat(1, 10, store=station.landing.lake_id)))
    station.turn(after_s=3)
    station.link.published.clear()
    station.turn(message(beat(2, 99, store="another lake")))
    station.turn(after_s=3)
    assert station.link.acks() == {"pi-0": {}}
    assert [row["low_us"] for row in station.rows("promise")] == [10]


def test_kill_before_the_sync_leaves_the_message_with_the_broker(station, monkeypatch):
    monkeypatch.setattr(station.log, "sync", dies)
    with pytest.raises(Killed):
        station.turn(CONNECTED, message(panes(PROGRAM, 4)))
    assert station.link.acknowledged == []


def test_kill_after_the_sync_lands_at_the_next_start(station):
    station.turn(CONNECTED, message(panes(PROGRAM, 4)))
    assert station.link.acknowledged
    station.start()
    assert len(station.rows()) == 2
    station.turn(CONNECTED)
    assert station.link.acks() == {"pi-0": {LIFE: [1, 2]}}
    station.start()
    assert len(station.rows()) == 2


def test_kill_before_the_commit_lands_once(station, monkeypatch):
    monkeypatch.setattr(station.landing, "land", dies)
    station.turn(CONNECTED, message(panes(PROGRAM, 4)))
    with pytest.raises(Killed):
        station.turn(after_s=1)
    station.start()
    assert len(station.rows()) == 2


def test_kill_after_the_commit_does_not_land_again(station, monkeypatch):
    monkeypatch.setattr(station.log, "keep_devices", dies)
    station.turn(CONNECTED, message(panes(PROGRAM, 4)))
    with pytest.raises(Killed):
        station.turn(after_s=1)
    assert len(station.rows()) == 2
    station.start()
    assert len(station.rows()) == 2
    station.turn(CONNECTED, message(panes(PROGRAM, 4)))
    station.turn(after_s=1)
    assert station.link.acks() == {"pi-0": {LIFE: [1, 2]}}, "it sent again, and hears it now"
    assert len(station.rows()) == 4, "a repeat is harmless, for the lattice joins it"


def test_kill_between_rejects_and_landing_counts_the_reject_once(station, monkeypatch):
    bad = message(panes(PROGRAM, 4, stream=1))
    write = station.landing._write

    def write_rejects_only(table, added, number):
        if table is station.landing._landing:
            raise Killed
        write(table, added, number)

    monkeypatch.setattr(station.landing, "_write", write_rejects_only)
    station.turn(CONNECTED, bad, bad)
    with pytest.raises(Killed):
        station.turn(after_s=1)
    station.start()
    (row,) = DeltaTable(station.lake.rejects).to_pyarrow_table().to_pylist()
    assert (row["reason"], row["frames"]) == ("unknown stream", 2)
    assert row["frame"] == bad.payload
    assert len(station.rows("tick")) == 1


def test_panes_of_an_unknown_stream_are_not_taken_and_hold_no_others(station):
    unknown, known = panes(PROGRAM, 4, stream=1).blocks[0], panes(PROGRAM, 4, first_seq=3)
    mixed = replace(known, blocks=(unknown, *known.blocks))
    station.turn(CONNECTED, message(mixed))
    station.turn(after_s=1)
    assert station.link.acknowledged
    assert station.link.acks() == {"pi-0": {LIFE: [3, 4]}}
    assert station.link.not_taken() == [("pi-0", NotTaken.UNKNOWN_STREAM)]
    assert [row["seq"] for row in station.rows()] == [3, 4]


def test_acknowledgements_wait_for_the_broker(station):
    station.turn(CONNECTED, message(panes(PROGRAM, 4)))
    station.link.connected = False
    station.turn(after_s=1)
    assert station.link.acks() == {}
    station.link.connected = True
    station.turn()
    assert station.link.acks() == {"pi-0": {LIFE: [1, 2]}}


def test_many_entries_without_neighbours_go_in_frames_of_bounded_size(station):
    seqs = [3 * n for n in range(1, 3 * RUNS_IN_AN_ACK // 2)]
    frames = [panes(PROGRAM, n, seqs=(seq, seq)) for n, seq in enumerate(seqs, 1)]
    station.turn(CONNECTED, *map(message, frames))
    station.turn(after_s=1)
    assert station.link.acks() == {"pi-0": {LIFE: seqs}}
    assert len(station.link.published) == 2
    assert max(len(payload) for _, payload in station.link.published) < MAX_FRAME_BYTES


def test_the_acknowledgement_of_many_neighbours_is_short(station):
    frames = [message(panes(PROGRAM, n, first_seq=2 * n)) for n in range(1, 2_502)]
    station.turn(CONNECTED, *frames)
    station.turn(after_s=1)
    assert station.link.acks() == {"pi-0": {LIFE: list(range(2, 5_004))}}
    assert len(station.link.published[0][1]) < 100


def test_promises_alone_land_later_than_data(station):
    station.turn(CONNECTED, message(beat(1, 10)))
    station.turn(after_s=2)
    assert station.rows("promise") == []
    station.turn(after_s=1)
    assert len(station.rows("promise")) == 1


def test_many_bytes_land_before_their_time(station):
    station.pace = replace(station.pace, full_bytes=100)
    station.start()
    station.turn(CONNECTED, message(panes(PROGRAM, 4)), message(panes(PROGRAM, 5, first_seq=3)))
    assert len(station.rows()) == 4


def test_idle_lander_ticks_seldom(station):
    station.turn(CONNECTED)
    for _ in range(40):
        station.turn(after_s=1)
    ticks = sorted(station.rows("tick"), key=lambda row: row["seq"])
    assert [row["now_us"] - BEGIN_US for row in ticks] == [15 * SECOND_US, 30 * SECOND_US]
    assert {row["since_us"] for row in ticks} == {BEGIN_US}


def test_no_time_passes_without_a_broker(station):
    station.turn(CONNECTED, message(panes(PROGRAM, 4)), after_s=5)
    station.turn(Disconnected("gone"), after_s=0.5)
    (tick,) = station.rows("tick")
    assert tick["now_us"] - tick["since_us"] == 0.5 * SECOND_US
    for _ in range(100):
        station.turn(after_s=1)
    assert len(station.rows("tick")) == 1
    station.turn(CONNECTED)
    station.turn(after_s=15)
    assert max(row["since_us"] for row in station.rows("tick")) == BEGIN_US + 105_500_000


@pytest.mark.parametrize("off_s", [-3_600, 3_600])
def test_a_step_of_the_clock_ends_the_segment_as_it_was_and_listening_begins_again(station, off_s):
    station.turn(CONNECTED, message(panes(PROGRAM, 4)))
    station.off_us = off_s * SECOND_US
    station.turn(message(panes(PROGRAM, 1, first_seq=3)))
    assert station.lander.must_restart
    (tick,) = station.rows("tick")
    assert (tick["now_us"], tick["since_us"]) == (BEGIN_US, BEGIN_US)
    assert len(station.rows()) == 2, "what came after the step is of the next segment"
    station.lander.stop()
    assert len(station.rows()) == 4
    station.start()
    station.turn(CONNECTED, message(beat(1, 10)))
    station.turn(after_s=3)
    *_, tick = sorted(station.rows("tick"), key=lambda row: row["seq"])
    assert (tick["now_us"], tick["since_us"]) == (
        BEGIN_US + (off_s + 3) * SECOND_US,
        BEGIN_US + off_s * SECOND_US,
    )
    assert not station.lander.must_restart


def test_segments_are_numbered_on_over_processes(station):
    for _ in range(2):
        station.turn(CONNECTED, message(beat(1, 10)))
        station.turn(after_s=3)
        station.start()
    assert sorted(row["seq"] for row in station.rows("tick")) == [1, 2]


def test_lost_log_goes_on_after_what_has_landed(station):
    station.turn(CONNECTED, message(beat(1, 10)))
    station.turn(after_s=3)
    for path in (station.folder / "log").glob("*.segment"):
        path.unlink()
    station.start()
    station.turn(CONNECTED, message(panes(PROGRAM, 4)))
    station.turn(after_s=1)
    assert len(station.rows()) == 2


def test_known_incarnations_are_read_back(station):
    station.turn(CONNECTED, message(beat(1, 10)))
    station.turn(after_s=3)
    station.start()
    station.turn(CONNECTED, message(beat(2, 10, replica=Replica(2_000, 1, "pi-0"))))
    station.turn(after_s=3)
    (row,) = DeltaTable(station.lake.rejects).to_pyarrow_table().to_pylist()
    assert row["reason"] == "incarnation too far ahead"


def test_stop_lands_what_is_logged(station):
    station.turn(CONNECTED, message(panes(PROGRAM, 4)))
    station.lander.stop()
    assert len(station.rows()) == 2
    assert station.link.acks() == {"pi-0": {LIFE: [1, 2]}}


def test_what_an_operator_said_is_repeated_and_kept_by_the_broker(station):
    sent = command(1, seq=5)
    station.turn(CONNECTED, message(sent))
    station.turn(after_s=1)
    assert station.link.retained == {}
    station.turn(after_s=2 * REPEAT_US / SECOND_US)
    ((topic, payload),) = station.link.retained.items()
    assert "/command/" in topic
    assert decode(payload).commands().membership == sent.commands().membership


def vouches(station):
    """Return the lander's answers."""
    sent = [decode(payload) for topic, payload in station.link.published if "/vouch/" in topic]
    return [(frame.about, frame.challenge, frame.subject, frame.highs) for frame in sent]


def test_who_asks_is_told_what_was_known_when_all_before_had_landed(station):
    high = SourceHigh(8, 60, 2)
    sent = replace(panes(PROGRAM, 4), highs=(high,))
    hello = HelloFrame(ME._replace(incarnation=1, nonce=99), 1, ME.device, 4711, 1)
    stranger = HelloFrame(ME, 2, "nobody", 4712, 1)
    station.turn(CONNECTED, message(sent), message(hello), message(stranger))
    assert vouches(station) == []
    station.turn(after_s=1)
    nobody = Replica(0, 0, "nobody")
    assert vouches(station) == [(ME.device, 4711, ME, (high,)), (ME.device, 4712, nobody, ())]


def test_a_lander_that_was_killed_still_knows_how_far_a_device_had_come(station):
    high = SourceHigh(8, 60, 2)
    station.turn(CONNECTED, message(replace(panes(PROGRAM, 4), highs=(high,))))
    station.turn(after_s=1)
    station.start()
    station.turn(CONNECTED, message(HelloFrame(ME, 1, ME.device, 4711, 1)))
    station.turn(after_s=1)
    assert vouches(station) == [(ME.device, 4711, ME, (high,))]


def test_a_lander_that_was_killed_before_it_kept_that_finds_it_in_its_log(station, monkeypatch):
    high = SourceHigh(8, 60, 2)
    monkeypatch.setattr(station.log, "keep_devices", dies)
    station.turn(CONNECTED, message(replace(panes(PROGRAM, 4), highs=(high,))))
    with pytest.raises(Killed):
        station.turn(after_s=1)
    assert len(station.rows()) == 2, "they have landed, and the device may have lost its store"
    station.start()
    station.turn(CONNECTED, message(HelloFrame(ME._replace(nonce=99), 1, ME.device, 4711, 1)))
    station.turn(after_s=1)
    assert vouches(station) == [(ME.device, 4711, ME, (high,))]


def test_a_lander_that_is_killed_twice_before_it_kept_that_finds_both_in_its_log(
    station, monkeypatch
):
    highs = (SourceHigh(8, 60, 2), SourceHigh(9, 70, 1))
    for number, high in enumerate(highs):
        monkeypatch.setattr(station.log, "keep_devices", dies)
        sent = replace(panes(PROGRAM, 1, first_seq=1 + 2 * number), highs=(high,))
        station.turn(CONNECTED, message(sent))
        with pytest.raises(Killed):
            station.turn(after_s=1)
        station.start()
    station.turn(CONNECTED, message(HelloFrame(ME._replace(nonce=99), 1, ME.device, 4711, 1)))
    station.turn(after_s=1)
    assert vouches(station) == [(ME.device, 4711, ME, highs)]


def test_what_devices_told_is_on_the_disk_before_the_log_forgets_it(station, monkeypatch):
    synced, dropped = {}, []
    right, drop = os.fsync, station.log.drop
    folder = station.folder / "log"

    def fsync(descriptor):
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        synced[path] = path.read_bytes() if path.is_file() else sorted(path.iterdir())
        right(descriptor)

    def dropping(number):
        known = (folder / DEVICES_FILE).read_bytes()
        assert known
        assert synced[folder / "devices.new"] == known, "its content, under the name it had"
        assert folder / DEVICES_FILE in synced[folder], "and its name"
        dropped.append(number)
        drop(number)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(station.log, "drop", dropping)
    sent = replace(beat(1, 10), highs=(SourceHigh(5, 1_000, 3),))
    station.turn(CONNECTED, message(sent))
    synced.clear()
    station.turn(after_s=3)
    assert dropped == []
    station.turn(message(beat(2, 11)))
    station.turn(after_s=3)
    assert dropped == [1]
