"""Histories that seeds of the simulator once found, as short as they could be made."""

import pytest

from simulations.world.faults import Fault, FaultRates
from simulations.world.run import run
from simulations.world.scenario import Scenario

HISTORIES = {
    # Store and lake are lost, so the recording is read again; then the old card is put back.
    "an old card comes back after a life that nobody could tell what it held": Scenario(
        0,
        1,
        60,
        schedule=(
            Fault(30, "new_lake", "", 1),
            Fault(30, "store_lost", "pi-0", 0),
            Fault(52, "older_image", "pi-0", 0),
        ),
    ),
    # The lake knows a command that every device and the broker have lost: it says it again.
    "a command that only the lake still knows": Scenario(
        441,
        2,
        29,
        schedule=(
            Fault(11, "disk_read_only", "pi-0", 14),
            Fault(14, "retire", "pi-1", 6),
            Fault(25, "broker_old", "", 1),
            Fault(28, "older_image", "pi-1", 3),
        ),
        keyed=True,
    ),
    # An empty lake answers first, and the archive knows of readings that the older store lacks.
    "an empty lake vouches before one that knows more": Scenario(
        366,
        1,
        118,
        FaultRates(delayed=0.7, delay_steps=20),
        (
            Fault(106, "broker_forgets", "", 1),
            Fault(107, "older_image", "pi-0", 5),
            Fault(109, "new_lake", "", 1),
            Fault(113, "broker_forgets", "", 1),
        ),
        keyed=True,
        sessions=True,
        archive=True,
    ),
    # The last words of a lost lake come after the first ones of the lake in its place.
    "late words of a lake that was lost": Scenario(
        544,
        4,
        20,
        FaultRates(doubled=0.1, delayed=0.2, delay_steps=20),
        (Fault(14, "store_lost", "pi-2", 9), Fault(15, "new_lake", "", 1)),
        files=True,
        retain_s=60,
    ),
    # Readings wait for the clock in a store, are placed, and wait in its older image once more.
    "an older image in which readings wait for the clock": Scenario(
        1,
        1,
        35,
        schedule=(
            Fault(1, "lander_cut", "", 26),
            Fault(1, "clock_1970", "pi-0", 18),
            Fault(31, "older_image", "pi-0", 2),
        ),
    ),
    # A life reads again what a lost one had read, alone, and its store is lost before it is told.
    "two lives that never heard of each other, and both their stores are gone": Scenario(
        2,
        3,
        30,
        schedule=(
            Fault(6, "deaf", "pi-0", 20),
            Fault(6, "other_release", "pi-0", 2),
            Fault(15, "unsynced_lost", "pi-0", 3),
            Fault(25, "partition", "", 33),
            Fault(30, "store_lost", "pi-0", 7),
        ),
    ),
    # The cell of an item has landed, the item is taken back, and a promise passes that.
    "an item is taken back behind what was promised": Scenario(
        2773, 2, 16, ordered=True, archive=True, joins_at=7
    ),
}


@pytest.mark.parametrize("history", HISTORIES)
def test_a_history_ends_with_the_truth(history):
    assert run(HISTORIES[history]).trouble == ()
