"""Commits of others to the table landing: a lander looks at all of them."""

from deltalake import DeltaTable

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


def test_rows_that_are_removed_right_before_a_segment_lands_are_missed(station):
    lake = landed(station)
    write = station.landing._write

    def after_others(table, added, number):
        DeltaTable(station.lake.landing).restore(0)
        write(table, added, number)

    station.landing._write = after_others
    station.turn(message(panes(PROGRAM, 1, first_seq=3)), after_s=1)
    station.turn(after_s=1)
    assert station.landing.lake_id != lake
