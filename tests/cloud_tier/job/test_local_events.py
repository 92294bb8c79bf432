"""Scans with local events in a lake: the rows of the gateway beside it."""

from random import Random

import pytest

from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.lake import Lake
from device_agent.gateway.core import WaitingTerms
from lasp_edge.language.streaming import plain_parts
from lasp_edge.ordered.places import place_text
from lasp_edge.protocol.sinks import DEFAULT_SINK
from simulations import fleet as simulated
from simulations import lake_parted
from simulations.world.faults import START_US
from simulations.world.fleet_streamed import Epochs
from tests.cloud_tier.lakes import LakeUnderTest
from tests.cloud_tier.support_devices import row, tick
from tests.simulations.test_local_absences import rows as at_order
from tests.simulations.test_local_absences import without_its_answer
from tests.simulations.test_local_events import PLAN as LOCAL
from tests.simulations.test_local_events import fleet_of

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


def lands(lake, gateway, landed, number, now_us):
    """Let all land in the lake that the gateway has taken, and the promises that it knows."""
    entries = [*landed_at(gateway, landed, now_us), tick(number, now_us, START_US)]
    for name, (version, low_us, done, heard_us) in gateway.core.promises.items():
        low = {"low_us": low_us, "done": done, "received_us": heard_us}
        entries.append(row("promise", name, *version, **low))
    lake.step(entries)


@pytest.mark.parametrize("restarts", [False, True])
def test_an_answer_that_is_missing_is_named_in_the_lake_as_at_the_gateway(
    spark, tmp_path, restarts, monkeypatch
):
    """Its device had promised past the event, so nothing but its answer is missing."""
    monkeypatch.setattr("cloud_tier.lake.coverage.host_us", lambda: START_US + 10**10)
    with fleet_of(DEFAULT_SINK) as fleet:
        gateway, landed = fleet.sinks[0].lander, {}
        terms = gateway.core._terms
        given = {"roster": terms.roster, "dead_after_us": terms.dead_after_us}
        lake = LakeUnderTest(spark, LOCAL, tmp_path, **given)
        prepare(LOCAL, lake.lake)
        without_its_answer(fleet, 3, 4)
        lands(lake, gateway, landed, 1, fleet.now_us)
        fleet.devices["pi-1"].connect_step = fleet.step_number
        if restarts:
            lake.restart()
        found = [in_lake(lake, "found")]
        assert found[0] == [((1, 0, 0), "pi-1", "final")]
        fleet.pass_steps(30)
        lands(lake, gateway, landed, 2, fleet.now_us)
        found.append(in_lake(lake, "found"))
        assert found[1] == [((1, 2, 2), "", "revised")]
        lands(lake, gateway, landed, 3, fleet.now_us)
        assert in_lake(lake, "found") == found[1]
        assert at_order(fleet) == [((1, 2, 2), (), "revised", 2)]


def in_lake(lake, name):
    """Return parts, names and status of the rows at events in order."""
    columns = lake.program.fleet_results[name].columns
    table = Lake(lake.lake.root).results(name).current().to_pylist()
    rows = sorted((r["place"], r) for r in table if "!!b!!" in r["place"])
    return [(tuple(r[c] for c in columns), r["excluded"], r["status"]) for _, r in rows]
