"""How sure a window is: what a lost store had, which starts wait, and who has sent all since."""

import pytest

from crdts import Frontier, Version
from crdts.frontier import Promise
from device_agent.gateway.finality import HeldStarts, TurnFinality, begun_after
from lasp_edge.language.fleet_regimes import StartSpan
from lasp_edge.protocol.acceptance import Accepted
from lasp_edge.protocol.frames import EVERY_WINDOW
from lasp_edge.protocol.frontier import AwaitedDevices, Coverage
from lasp_edge.protocol.lost_stores import EarlierLives, LackingStretches, lost_after
from lasp_edge.protocol.status import FINAL
from lasp_edge.protocol.waiting import WindowWaiting
from lasp_edge.protocol.window_rows import FleetRow, WindowStart
from tests.cloud_tier.support_devices import rooms

WINDOW = next(iter(rooms().windows.values()))


def promised(low_us):
    return {"a": Promise(Version(1, 7, 1), low_us, done=False, heard_us=0)}


@pytest.mark.parametrize(("known_us", "since_us"), [(10, 10), (70, 30)])
def test_what_a_lost_store_had_accepted_begins_with_the_first_that_may_be_lost(known_us, since_us):
    known = {"a": (known_us, 50)}
    found = lost_after(known, {"a": ((EVERY_WINDOW, 80),)}, {"a": EarlierLives(30, 0)})
    assert found == {"a": (since_us, 80)}


def test_a_held_start_is_released_when_all_have_promised_past_the_end_of_its_window():
    held = HeldStarts([StartSpan("w", 0, 100)])
    held.release(50, lambda _name: 30)
    assert [at for at in range(0, 101, 10) if ("w", at) in held] == list(range(20, 101, 10))
    held.release(130, lambda _name: 30)
    assert not held.spans


@pytest.mark.parametrize(("low_us", "is_complete"), [(30, False), (59, False), (60, True)])
def test_a_window_is_completed_by_who_has_promised_past_its_end(low_us, is_complete):
    row = FleetRow(
        WindowStart(WINDOW.name, "", 20), 60, (), 1, 2, ("a",), FINAL, 0, 50, WINDOW.stream
    )
    coverage, no_waiting = Coverage(50, ("a", "b"), ("a",)), WindowWaiting.of(())
    known = (
        no_waiting,
        lambda: AwaitedDevices((), ()),
        None,
        {},
        promised(low_us),
        range(0),
        LackingStretches(),
    )
    finality = TurnFinality(coverage, *known)
    assert finality.renames(row, WINDOW) == is_complete


@pytest.mark.parametrize(("named", "differs"), [(("a",), False), ((), True)])
def test_a_row_that_would_name_the_same_devices_again_is_not_written_twice(named, differs):
    """One that has sent all is awaited again while not all know the window's parameters."""
    coverage = Coverage(80, ("a", "b"), ())
    known = (WindowWaiting.of(()), lambda: AwaitedDevices((), ()), None)
    finality = TurnFinality(coverage, *known, {}, promised(80), range(0), LackingStretches())
    at = WindowStart(WINDOW.name, "", 20)
    row = FleetRow(at, 60, (), 1, 2, ("a",), FINAL, 0, 70, WINDOW.stream)
    assert finality.renames(row, WINDOW)
    assert finality.differs(row, row, WINDOW, lambda: named) == differs


@pytest.mark.parametrize(("begun_us", "lacks"), [(19, ()), (20, ()), (21, ("a",))])
def test_a_window_lacks_no_device_that_has_built_from_its_start_on(begun_us, lacks):
    coverage = Coverage(80, ("a", "b"), ())
    known = (WindowWaiting.of(()), lambda: AwaitedDevices((), ()), None)
    begun = {"a": ((WINDOW.stream, begun_us),)}
    finality = TurnFinality(coverage, *known, begun, promised(80), range(0), LackingStretches())
    assert finality.excluded(WINDOW, 20, 60) == lacks


def test_a_window_lacks_nothing_of_a_device_that_does_not_count():
    coverage = Coverage(80, ("b",), ())  # `a` is retired
    known = (WindowWaiting.of(()), lambda: AwaitedDevices((), ()), None)
    begun = {"a": ((WINDOW.stream, 21),)}
    finality = TurnFinality(coverage, *known, begun, promised(80), range(0), LackingStretches())
    assert finality.excluded(WINDOW, 20, 60) == ()


def test_a_beat_that_comes_after_a_newer_one_states_nothing_of_readings():
    known, newest = {"a": ((7, 50),)}, Promise(Version(1, 7, 4), 60, done=False, heard_us=0)
    for number, begun in ((3, ((7, 50),)), (4, ((7, 90),))):
        came = Promise(Version(1, 7, number), 60, done=False, heard_us=0)
        accepted = Accepted(promises=Frontier({"a": came}), begun={"a": ((7, 90),)})
        assert begun_after(known, accepted, {"a": newest}) == {"a": begun}
