"""When commands are repeated, devices greeted, and peers asked for what is lacking."""

from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random

import pytest

from crdts import Replica
from lasp_edge.protocol.differences import Differences
from lasp_edge.protocol.frames import VariableReport
from lasp_edge.protocol.greetings import (
    GREETED_AGAIN_US,
    STRANGERS_GREETED_AGAIN_US,
    Greetings,
)
from lasp_edge.protocol.repeating import REPEAT_US, Repeating
from lasp_edge.units import SECOND_US
from tests.lasp_edge.protocol.support_frames import beat

PEER = Replica(1, 9, "peer")


@dataclass
class Held:
    """A state of which only the digest is known."""

    digest: int


def test_a_clock_that_is_set_back_lets_no_command_wait_for_the_old_time():
    repeating = Repeating(Random(1))
    repeating.hear(("attic",), 10 * REPEAT_US, is_newest=True)
    assert repeating.due(0) == [("attic",)]
    assert repeating.due(1) == []


@pytest.mark.parametrize(
    ("is_ours", "again_us"), [(True, GREETED_AGAIN_US), (False, STRANGERS_GREETED_AGAIN_US)]
)
def test_who_does_not_know_a_store_is_greeted_more_often(is_ours, again_us):
    greetings = Greetings()
    assert greetings.is_due("pi-0", is_ours, 0)
    assert [greetings.is_due("pi-0", is_ours, at) for at in (again_us - 1, again_us)] == [
        False,
        True,
    ]


@pytest.mark.parametrize(("settled_s", "most_s"), [(4, 64), (120, 600)])
def test_an_ask_that_brings_nothing_makes_the_next_one_wait_twice_as_long(settled_s, most_s):
    """Four times in a row, and ten minutes at most."""
    differences, asked = Differences("me", {"total": Held(1)}, settled_s * SECOND_US), []
    differs = replace(beat(1, None, replica=PEER), reports=(VariableReport("total", 1, 2),))
    for second in range(0, 4_000, 2):
        differences.take_reports(differs, second * SECOND_US)
        asked += [second for _ in differences.due(second * SECOND_US)]
    waits = [later - before for before, later in pairwise(asked)][1:]
    assert len(waits) > 4
    assert max(waits) == waits[-1] == most_s
    assert all(later == min(2 * before, most_s) for before, later in pairwise(waits))


def test_whoever_holds_the_same_after_a_connection_is_asked_later_only_when_it_has_settled():
    differences = Differences("me", {"total": Held(1)}, 4 * SECOND_US)
    same, differs = (
        replace(beat(number, None, replica=PEER), reports=(VariableReport("total", 1, digest),))
        for number, digest in ((1, 1), (2, 2))
    )
    differences.take_reports(same, 0)
    differences.take_reports(differs, SECOND_US)
    assert not list(differences.due(2 * SECOND_US)), "what differs may be on its way"
    assert list(differences.due(5 * SECOND_US)) == [(PEER.device, "total")]
