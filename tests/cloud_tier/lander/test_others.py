"""Commits of others to the table landing: a lander looks at all of them."""

import pytest
from deltalake import DeltaTable

from cloud_tier.lander.landing import Landing
from tests.cloud_tier.frames import CONNECTED, message
from tests.cloud_tier.support_devices import rooms
from tests.lasp_edge.protocol.support_frames import panes

PROGRAM = rooms()


def landed(station):
    """Let a device's entries land, and return the lake's id as a store."""
    station.turn(CONNECTED, message(panes(PROGRAM, 1)))
    station.turn(after_s=1)
    return station.landing.lake_id


def test_rows_that_were_removed_are_missed_behind_a_later_commit_of_others(station):
    lake = landed(station)
    DeltaTable(station.lake.landing).restore(0)
    DeltaTable(station.lake.landing).alter.set_table_properties({"delta.appendOnly": "false"})
    station.landing.refresh()
    assert station.landing.lake_id != lake


class Killed(BaseException):
    """The process was killed at this point."""


def remove_before_the_next(station, *, then=None):
    """Let somebody remove rows right before the next segment lands, and raise what comes then."""
    write = station.landing._write

    def after_others(table, added, number):
        DeltaTable(station.lake.landing).restore(0)
        write(table, added, number)
        if then is not None:
            raise then

    station.landing._write = after_others
    station.turn(message(panes(PROGRAM, 1, first_seq=3)), after_s=1)


def test_rows_that_are_removed_right_before_a_segment_lands_are_missed(station):
    lake = landed(station)
    remove_before_the_next(station)
    station.turn(after_s=1)
    assert station.landing.lake_id != lake


def test_a_lander_that_is_killed_before_it_looks_misses_the_rows_when_it_starts(station):
    lake = landed(station)
    remove_before_the_next(station, then=Killed)
    with pytest.raises(Killed):
        station.turn(after_s=1)
    station.start()
    found = station.landing.lake_id
    assert found != lake
    station.start()
    assert station.landing.lake_id == found, "it has begun since the rows were removed"


def test_rows_that_were_removed_before_another_lander_landed_are_missed(station):
    lake = landed(station)
    other = Landing(station.lake, "another")
    DeltaTable(station.lake.landing).restore(0)
    other._check_restored = lambda _commits: None  # it is killed before it looks
    other.land(1, station.lake.table(station.lake.landing).to_pyarrow_table()[:0], {})
    station.landing.refresh()
    assert station.landing.lake_id != lake


def test_rows_that_were_removed_are_missed_however_many_commits_others_made_since(station):
    lake = landed(station)
    DeltaTable(station.lake.landing).restore(0)
    for number in range(25):
        others = DeltaTable(station.lake.landing)
        others.alter.set_table_properties({"delta.appendOnly": str(bool(number % 2)).lower()})
    station.start()
    found = station.landing.lake_id
    assert found != lake
    station.start()
    assert station.landing.lake_id == found, "it has begun since the rows were removed"
