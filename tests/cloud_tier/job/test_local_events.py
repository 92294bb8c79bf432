"""Scans with local events in a lake: the rows of the gateway beside it."""

from random import Random

import pytest

from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.lake import Lake
from device_agent.gateway.core import WaitingTerms
from lasp_edge.language.streaming import plain_parts
from lasp_edge.ordered.places import place_text
from simulations import fleet as simulated
from simulations import lake_parted
from simulations.world.fleet_streamed import Epochs
from tests.cloud_tier.lakes import LakeUnderTest
from tests.cloud_tier.support_devices import row, tick

pytestmark = pytest.mark.spark

FIRST_US = 1_700_000_000_000_000
DEVICES = lake_parted.DEVICES


def landed_at(gateway, landed, now_us):
    """Yield what a gateway has taken and the lake has not, as it lands."""
    for at, (seq, partial) in gateway.panes.items():
        if landed.get(at) != seq:
            landed[at] = seq
            where = {"stream": at[0], "pane_us": at[2], "items": partial[0]}
            yield row("pane", *at[3:], seq, received_us=now_us, **where)


def test_answers_of_devices_settle_in_the_lake_as_at_the_gateway_beside_it(spark, tmp_path):
    plan, random, landed = lake_parted.plan_of(Epochs()), Random(5), {}
    terms = WaitingTerms(DEVICES, dead_after_us=10**13)
    fleet = simulated.Fleet(plan, size=3, seed=5, terms=terms, names=DEVICES)
    given = {"roster": DEVICES, "dead_after_us": 10**13, "retain_us": 10**13}
    lake = LakeUnderTest(spark, plan, tmp_path, **given)
    prepare(plan, lake.lake)
    for batch in range(1, 4):
        for _ in range(20):
            lake_parted.read(fleet, random)
        fleet.settle()
        gateway, now_us = fleet.world.sinks[0].lander, fleet.now_us
        frontier_us = gateway.core.coverage.frontier
        rows = [*landed_at(gateway, landed, now_us), tick(batch, now_us, FIRST_US)]
        beats = 1_000 * batch  # later than all answers that have landed
        low = {"low_us": frontier_us, "received_us": now_us, "done": False}
        lake.step([*rows, *[row("promise", name, 1, 7, beats, **low) for name in DEVICES]])
        lake.restart()
    result = plan.fleet_results["made"]
    expected = {
        place_text(place): plain_parts(result, each.event.value)
        for place, each in gateway.core.streams.stored("made")
        if each.event is not None
    }
    fleet.close()
    table = Lake(lake.lake.root).results("made").current().to_pylist()
    assert {r["place"]: tuple(r[c] for c in result.columns) for r in table} == expected
    assert len(expected) > 10
    final = [r["time_us"] < frontier_us for r in table if r["status"] != "tentative"]
    assert all(final)
    assert len(final) == sum(r["time_us"] < frontier_us for r in table)
