"""A lake that was put back, or lost rows, is another store: devices send again what they keep."""

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.cloud_tier.frames import CONNECTED, message
from tests.cloud_tier.support_devices import rooms
from tests.lasp_edge.protocol.support_frames import ME, beat, panes

PROGRAM = rooms()


def test_a_lake_that_was_put_back_is_another_store_once_a_device_repeats_what_it_lacks(station):
    lake = station.landing.lake_id
    station.turn(CONNECTED, message(panes(PROGRAM, 1)))
    station.turn(after_s=1)
    shutil.copytree(station.lake.root, station.folder / "image")
    station.turn(message(panes(PROGRAM, 1, first_seq=3)), after_s=1)
    station.turn(after_s=1)
    commits = [frame.commit for frame in station.link.ack_frames()]
    assert commits == sorted(commits)

    put_back(station)
    for path in (station.folder / "log").glob("*.segment"):
        path.unlink()  # the log would say so, too
    station.start()
    known = station.landing.newest
    assert known < commits[-1]
    for number, commit in enumerate((known, commits[-1]), 1):
        assert station.landing.lake_id == lake
        station.turn(CONNECTED, message(beat(number, 10 * number, store=lake, commit=commit)))
        station.turn(after_s=3)
    assert [row["low_us"] for row in station.rows("promise")] == [10]
    assert station.landing.lake_id != lake
    assert station.link.ack_frames()[-1].store == station.landing.lake_id
    station.start()
    assert station.landing.lake_id != lake


def test_a_promise_that_came_with_the_beat_that_shows_it_speaks_of_the_store_before(station):
    """The other device is yet to send again what the lake lacks."""
    lake, other = station.landing.lake_id, ME._replace(device="pi-2")
    station.turn(CONNECTED, message(panes(PROGRAM, 1)))
    station.turn(after_s=1)
    lacks = message(beat(2, 20, store=lake, commit=station.landing.newest + 5))
    station.turn(message(beat(1, 50, replica=other, store=lake)), lacks)
    station.turn(after_s=3)
    assert station.landing.lake_id != lake
    assert station.rows("promise") == []


def put_back(station):
    shutil.rmtree(station.lake.root)
    (station.folder / "image").rename(station.lake.root)


def test_a_lake_that_was_put_back_is_another_store_at_the_next_start(station):
    """No device speaks before the lake has as many commits as it had."""
    station.turn(CONNECTED, message(panes(PROGRAM, 1)))
    station.turn(after_s=1)
    lake = station.landing.lake_id
    shutil.copytree(station.lake.root, station.folder / "image")
    for number in (3, 5):
        station.turn(message(panes(PROGRAM, 1, first_seq=number)))
        station.turn(after_s=1)
    put_back(station)
    station.start()
    again = station.landing.lake_id
    assert again != lake
    for _ in range(3):
        station.turn(CONNECTED, message(beat(1, 10)))
        station.turn(after_s=3)
        station.start()
        assert station.landing.lake_id == again


def restored(path):
    DeltaTable(path).restore(0)


def without_a_file(path):
    Path(DeltaTable(path).file_uris()[0]).unlink()
    DeltaTable(path).alter.set_table_properties({"delta.appendOnly": "false"})
    DeltaTable(path).repair()


@pytest.mark.parametrize("loses_rows", [restored, without_a_file])
def test_a_landing_that_lost_rows_is_another_store(station, loses_rows):
    lake = station.landing.lake_id
    station.turn(CONNECTED, message(panes(PROGRAM, 1)))
    station.turn(after_s=1)
    loses_rows(station.lake.landing)
    station.turn(message(panes(PROGRAM, 1, first_seq=3)), after_s=1)
    station.turn(after_s=1)
    renewed = station.landing.lake_id
    assert renewed != lake
    assert station.link.ack_frames()[-1].store == renewed
    station.start()
    assert station.landing.lake_id == renewed
