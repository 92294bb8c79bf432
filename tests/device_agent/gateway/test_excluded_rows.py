"""Rows of an order over the fleet name who is missing in them, as rows of windows do."""

import json
from contextlib import closing

import pytest

from crdts import ControlLog, Frontier, Member, Membership, Version
from crdts.frontier import Promise
from device_agent.gateway import streams as streams_module
from device_agent.gateway.store import FleetStore
from lasp_edge import Program, folds, scans
from lasp_edge.protocol.acceptance import Accepted
from lasp_edge.protocol.commands import CommandLog
from lasp_edge.protocol.frames import EVERY_WINDOW
from lasp_edge.protocol.owed import owed_until
from tests.device_agent.gateway.support_streams import (
    DEVICES,
    FIRST_US,
    SECOND_US,
    TERMS,
    Fleet,
    doors,
)
from tests.device_agent.gateway.test_streams_killed import MortalFleet

WITH_X = TERMS._replace(tentative_after_us=15 * SECOND_US, dead_after_us=10 * 86_400 * SECOND_US)


def seconds(place):
    return (place[0] - FIRST_US) / SECOND_US


def named(fleet, name="all"):
    """Return time -> whom the row there names, its status and its revision."""
    rows = fleet.stored(name).items()
    return {seconds(at): (row.excluded, row.status, row.revision) for at, row in rows}


def goes_on(fleet, devices, *times_s):
    """Let some devices go on while the others are silent, for longer than they are waited for."""
    entries = [fleet.reads(device, at_s, 5) for at_s in times_s for device in devices[:1]]
    fleet.land(entries)
    fleet.pass_time(601)
    fleet.land([], max(times_s) + 1, devices)


@pytest.fixture(params=[50_000, 4], ids=["live", "cut"])
def fleet(request, keeper, monkeypatch):
    """A fleet of which all have read something and promised; its gateway keeps much, or little."""
    monkeypatch.setattr(streams_module, "LIVE_ITEMS", request.param)
    made = Fleet(doors(), keeper)
    made.land([made.reads(device, n, 5) for n, device in enumerate(DEVICES)], 20)
    return made


def test_a_row_that_is_final_without_a_silent_device_names_it_until_it_is_back(fleet):
    goes_on(fleet, ("pi-0", "pi-1"), 30, 40, 90, 200)
    without = dict.fromkeys((30, 40, 90, 200), (("pi-2",), "final", 1))
    assert named(fleet) == {1: ((), "final", 0), 2: ((), "final", 0), **without}
    fleet.restart()
    fleet.promise("pi-2", 100)
    back = dict.fromkeys((30, 40, 90), ((), "revised", 2))
    assert named(fleet) == {**named(fleet), **back, 200: (("pi-2",), "final", 1)}
    fleet.land([], 201)
    assert named(fleet)[200] == ((), "revised", 2)
    before = named(fleet)
    fleet.land([], 300)
    assert named(fleet) == before, "each row is written once more"
    fleet.check()


def test_what_a_device_brings_back_revises_rows_that_still_name_another_one(fleet):
    goes_on(fleet, ("pi-0",), 30, 40)
    assert named(fleet)[40] == (("pi-1", "pi-2"), "final", 1)
    fleet.land([fleet.reads("pi-1", 35, 7)])
    assert named(fleet)[40] == (("pi-1", "pi-2"), "revised", 2)
    fleet.promise("pi-1", 50)
    assert named(fleet)[35] == (("pi-2",), "revised", 1)
    assert named(fleet)[40] == (("pi-2",), "revised", 3)
    fleet.promise("pi-2", 38)
    assert (named(fleet)[35], named(fleet)[40][0]) == (((), "revised", 2), ("pi-2",))
    fleet.check()


def test_a_device_that_joins_a_fleet_that_has_gone_on_is_missing_until_it_has_caught_up(keeper):
    fleet = Fleet(doors(), keeper, TERMS._replace(roster=None))
    fleet.promise("pi-0", 10)
    fleet.pass_time(601)
    fleet.land([fleet.reads("pi-0", n, 5) for n in (1, 2, 30)])
    fleet.promise("pi-0", 40)
    assert named(fleet)[30] == ((), "final", 1)
    fleet.promise("pi-9", 20)
    fleet.land([fleet.reads("pi-0", 25, 6)])
    # Of rows that were final before anybody knew of it, as of windows, only those revised name it.
    assert named(fleet)[25] == (("pi-9",), "final", 0)
    assert named(fleet)[30] == (("pi-9",), "revised", 2)
    fleet.promise("pi-9", 28)
    assert named(fleet)[25] == ((), "revised", 1)
    fleet.promise("pi-9", 50)
    assert named(fleet)[30] == ((), "revised", 3)


def test_a_device_that_may_have_lost_readings_is_named_for_ever(fleet):
    goes_on(fleet, ("pi-0", "pi-1"), 30, 50, 70)
    promise = Promise(Version(2, 8, 1), FIRST_US + 90 * SECOND_US, False, fleet._now_us)  # noqa: FBT003
    accepted = Accepted(promises=Frontier({"pi-2": promise}))
    accepted.begun["pi-2"] = ((EVERY_WINDOW, FIRST_US + 60 * SECOND_US),)
    fleet._join(accepted)
    of = {at: each[0] for at, each in named(fleet).items() if at >= 30}
    assert of == {30: ("pi-2",), 50: ("pi-2",), 70: ()}


def test_rows_that_were_final_name_a_device_once_it_states_that_a_lost_store_had_more(fleet):
    fleet.land([fleet.reads("pi-0", at_s, 5) for at_s in (30, 105, 120, 140)], 100)
    fleet.land([], 150, DEVICES[:2])
    for seq in (1, 2):
        low_us = FIRST_US + 150 * SECOND_US
        promise = Promise(Version(2, 8, seq), low_us, False, fleet._now_us)  # noqa: FBT003
        accepted = Accepted(promises=Frontier({"pi-2": promise}))
        if seq == 2:
            fleet.restart()
            accepted.begun["pi-2"] = ((EVERY_WINDOW, FIRST_US + 130 * SECOND_US),)
        fleet._join(accepted)
        of = {at: each for at, each in named(fleet).items() if at >= 30}
        more = (("pi-2",), "revised", 2) if seq == 2 else ((), "final", 1)
        assert of == {30: ((), "final", 0), 105: more, 120: more, 140: ((), "final", 1)}
    fleet.check()


def test_a_retired_device_that_owes_readings_is_named_until_they_are_there(fleet):
    goes_on(fleet, ("pi-0", "pi-1"), 30, 50)
    version = Version(1, 1, 900)
    members = Membership({"pi-2": Member(fleet._now_us // SECOND_US, True, version)})  # noqa: FBT003
    fleet.gateway.acceptance.membership |= members
    accepted = Accepted()
    accepted.commands |= type(accepted.commands)(members)
    accepted.owed_us |= owed_until(members, fleet._now_us, {})
    fleet._join(accepted)
    fleet.land([fleet.reads("pi-0", 40, 5)])
    assert {named(fleet)[at][0] for at in (30, 40, 50)} == {("pi-2",)}
    fleet.promise("pi-2", 1_000_000)
    assert {named(fleet)[at][0] for at in (30, 40, 50)} == {()}


def test_without_x_a_tentative_row_names_nobody(fleet):
    fleet.land([fleet.reads("pi-0", 30, 5)])
    fleet.promise("pi-0", 40)
    assert named(fleet)[30] == ((), "tentative", 0)
    fleet.pass_time(599)
    assert named(fleet)[30] == ((), "tentative", 0)


def test_where_x_is_over_a_tentative_row_names_whom_it_did_not_wait_for(keeper):
    fleet = Fleet(doors(), keeper, WITH_X)
    fleet.land([fleet.reads("pi-0", 1, 5), fleet.reads("pi-1", 3, 8)])
    fleet.promise("pi-0", 10)
    fleet.promise("pi-1", 2)
    fleet.pass_time(16)
    assert named(fleet) == {3: (("pi-1", "pi-2"), "tentative", 0)}
    (newest,) = [each for name, _, each in fleet.gateway.core.streams.newest() if name == "all"]
    assert json.loads(newest.as_json())["tentative"]["excluded"] == ["pi-1", "pi-2"]
    fleet.promise("pi-1", 9)
    assert named(fleet) == {3: (("pi-1", "pi-2"), "tentative", 0)}, "as it was written"
    fleet.land([fleet.reads("pi-2", 2, 6)])
    assert named(fleet) == {2: (("pi-2",), "tentative", 0), 3: (("pi-2",), "tentative", 1)}
    fleet.restart()
    fleet.land([], 20)
    assert named(fleet) == {2: ((), "final", 1), 3: ((), "final", 2)}


def test_once_all_others_are_done_rows_that_time_alone_brings_name_who_is_missing(keeper):
    """The session ends 30 s after its last reading, and F is where the last device was done."""
    fleet = Fleet(doors(), keeper)
    fleet.land([fleet.reads("pi-0", 1, 5)], 2)
    fleet.pass_time(601)

    def done(device, low_s, seq):
        promise = Promise(Version(1, 7, seq), FIRST_US + low_s * SECOND_US, True, fleet._now_us)  # noqa: FBT003
        fleet._join(Accepted(promises=Frontier({device: promise})))

    fleet.promise("pi-1", 2.5)
    done("pi-0", 3, 901)
    done("pi-1", 3, 902)
    assert named(fleet, "by_room") == {31: (("pi-2",), "final", 0)}
    fleet.restart()
    fleet.promise("pi-2", 20)
    fleet.promise("pi-2", 40)
    assert named(fleet, "by_room") == {31: ((), "revised", 1)}


def test_a_killed_gateway_names_whom_it_named_and_nobody_who_has_caught_up(tmp_path, monkeypatch):
    """Killed in front of each statement of the turn in which rows are final, and of the return."""
    monkeypatch.setattr(streams_module, "LIVE_ITEMS", 4)
    fleet = MortalFleet(doors(), tmp_path)
    fleet.land([fleet.reads("pi-0", 1, 5)], 20)
    entries = [fleet.reads("pi-0", at_s, 5) for at_s in (30, 40, 90)]
    fleet.pass_time(601)
    fleet.promise("pi-0", 100)
    turns = [(entries, "pi-1"), ([], "pi-2")]
    for number, (sent, device) in enumerate(turns):

        def turn(sent=sent, device=device, number=number):
            low_us, version = FIRST_US + 100 * SECOND_US, Version(1, 7, 900 + number)
            promise = Promise(version, low_us, False, fleet._now_us)  # noqa: FBT003
            fleet._join(Accepted(rows=list(sent), promises=Frontier({device: promise})))

        statements = 0
        while fleet.dies_in(turn, statements):
            statements += 1
        assert statements >= 4
        turn()
    assert named(fleet) == dict.fromkeys((30, 40, 90), ((), "revised", 1))


def test_eight_names_of_many_are_stored(tmp_path):
    roster = tuple(f"pi-{number}" for number in range(12))
    with closing(FleetStore(tmp_path)) as store:
        fleet = Fleet(doors(), store, TERMS._replace(roster=roster))
        fleet.land([fleet.reads("pi-0", 1, 5), fleet.reads("pi-0", 2, 5)])
        fleet.pass_time(601)
        fleet.promise("pi-0", 10)
        assert named(fleet) == {2: (tuple(sorted(roster[1:]))[:8], "final", 1)}


def others():
    """Return a program that has neither the event nor a result of `doors`."""
    program = Program("doors")
    program.window("litres", source=program.event("water"), fold=folds.sum(), size_s=30)
    return program.plan()


def test_what_a_device_promises_while_another_program_runs_is_known_to_the_rows_once_they_are_back(
    fleet,
):
    goes_on(fleet, ("pi-0", "pi-1"), 30, 40, 90, 200)
    fleet.restart(others())
    fleet.promise("pi-2", 100)
    fleet.restart(doors())
    fleet.land([])
    back = dict.fromkeys((30, 40, 90), ((), "revised", 2))
    assert named(fleet) == {**named(fleet), **back, 200: (("pi-2",), "final", 1)}
    fleet.check()


def test_rows_that_are_back_know_what_was_promised_before_an_entry_that_came_with_them(fleet):
    goes_on(fleet, ("pi-0", "pi-1"), 30, 40, 90, 200)
    fleet.restart(others())
    fleet.promise("pi-2", 100)
    fleet.restart(doors())
    entry = ControlLog().set("offset", "", FIRST_US, "1", "ann")
    fleet._join(Accepted(commands=CommandLog(control=entry)))
    back = dict.fromkeys((30, 40, 90), ((), "revised", 2))
    assert named(fleet) == {**named(fleet), **back, 200: (("pi-2",), "final", 1)}
    fleet.check()


def test_who_could_promise_nothing_after_an_entry_is_named_until_it_promises_what_it_had_before(
    fleet,
):
    entry = ControlLog().set("offset", "", FIRST_US, "1", "ann")
    fleet._join(Accepted(commands=CommandLog(control=entry)))
    nothing = Promise(Version(1, 7, 2), None, False, fleet._now_us)  # noqa: FBT003
    fleet._join(Accepted(promises=Frontier({"pi-2": nothing})))
    fleet._ticks = 2
    fleet.land([fleet.reads("pi-0", 10, 5)], 30, DEVICES[:2])
    assert named(fleet)[10][0] == ("pi-2",)
    fleet.promise("pi-2", 20)
    assert named(fleet)[10][0] == ()
    fleet.check()


@pytest.mark.parametrize("back_s", [20, 35])
def test_who_was_silent_for_long_after_an_entry_is_named_until_it_promises_what_it_had_before(
    fleet, back_s
):
    entry = ControlLog().set("offset", "", FIRST_US, "1", "ann")
    fleet._join(Accepted(commands=CommandLog(control=entry)))
    fleet.pass_time(601)
    fleet._ticks = 2
    fleet.land([fleet.reads("pi-0", 10, 5)], 30, DEVICES[:2])
    assert named(fleet)[10][0] == ("pi-2",)
    fleet.promise("pi-2", back_s)
    assert named(fleet)[10][0] == ()
    fleet.check()


def test_what_a_device_has_lost_is_known_to_the_rows_that_another_program_left_out(fleet):
    fleet.land([fleet.reads("pi-0", at_s, 5) for at_s in (30, 105, 120, 140)], 100)
    fleet.land([], 150, DEVICES[:2])
    for seq, plan in ((1, doors()), (2, others())):
        fleet.restart(plan)
        low_us = FIRST_US + 150 * SECOND_US
        promise = Promise(Version(2, 8, seq), low_us, False, fleet._now_us)  # noqa: FBT003
        accepted = Accepted(promises=Frontier({"pi-2": promise}))
        if seq == 2:
            accepted.begun["pi-2"] = ((EVERY_WINDOW, FIRST_US + 130 * SECOND_US),)
        fleet._join(accepted)
    fleet.restart(doors())
    fleet.land([])
    of = {at: each for at, each in named(fleet).items() if at >= 30}
    more = (("pi-2",), "revised", 2)
    assert of == {30: ((), "final", 0), 105: more, 120: more, 140: ((), "final", 1)}


def test_rows_that_a_start_makes_of_a_new_result_name_who_is_missing(keeper, monkeypatch):
    monkeypatch.setattr(streams_module, "LIVE_ITEMS", 4)  # the rows are in memory, or in the store
    program = Program("doors")
    program.result(program.scan("steps", source=program.event("door"), scan=scans.differences()))
    fleet = Fleet(program.plan(), keeper)
    fleet.land([fleet.reads(device, n, 5) for n, device in enumerate(DEVICES)], 20)
    goes_on(fleet, ("pi-0", "pi-1"), 30, 40, 90, 200)
    fleet.plan = doors()
    fleet.restart(fleet.plan)
    fleet.land([])
    missing = dict.fromkeys((30, 40, 90, 200), (("pi-2",), "final", 0))
    assert named(fleet) == {1: ((), "final", 0), 2: ((), "final", 0), **missing}
    fleet.check()


def test_which_readings_a_device_lacks_by_a_beat_that_was_overtaken_does_not_count(keeper):
    fleet = Fleet(doors(), keeper)
    fleet.land([], 20)
    overtaken = Promise(Version(1, 7, 0), FIRST_US, False, fleet._now_us)  # noqa: FBT003
    accepted = Accepted(promises=Frontier({"pi-2": overtaken}))
    accepted.begun["pi-2"] = ((EVERY_WINDOW, FIRST_US + 130 * SECOND_US),)
    fleet._join(accepted)
    assert keeper.restored().begun == {}
