"""The world's devices have meters and streams: what they say is the oracle's, whatever befalls."""

from dataclasses import replace

import pytest

from lasp_edge.evaluation.history import StreamHistory
from lasp_edge.ordered.item_store import FOR_EVER_US
from lasp_edge.ordered.plain import encoded
from simulations.planted import of_scans
from simulations.planted.bug import BUGS
from simulations.world.checks import Checks
from simulations.world.faults import BEHIND, Fault
from simulations.world.meters import MeterFile, MeterLine
from simulations.world.run import disturbed, run
from simulations.world.scenario import Scenario, scenario_of
from simulations.world.world import World

assert of_scans, "it fills the table"

CALM = Scenario(seed=2, size=1, steps=40, scans=True)
OTHER = tuple(Fault(step, "other_release", "pi-0", 1) for step in (10, 20, 30))
TORN = Fault(20, "torn_commit", "pi-0", BEHIND)


@pytest.mark.parametrize("seed", [0, 2, 9, 12])
def test_streams_say_what_the_oracle_says_under_every_fault(seed):
    outcome = run(replace(scenario_of(seed), scans=True))
    replay = f"replay with: python -m simulations.explore --seed {seed} --having scans"
    assert not outcome.trouble, replay


@pytest.mark.parametrize("retain_s", [60, 7 * 86_400])
def test_another_release_has_other_streams_and_the_first_one_comes_back(retain_s):
    scenario = replace(CALM, steps=60, schedule=OTHER, retain_s=retain_s)
    assert run(scenario).trouble == ()


@pytest.mark.parametrize(
    ("name", "seed", "said"),
    [
        ("an_as_of_join_takes_what_has_come_before", 3, "pi-0 joins"),
        ("time_alone_brings_nothing", 2, "what was final changed, and nothing came late"),
        ("a_retraction_before_its_reading_is_dropped", 2, "its streams lack 1 readings"),
        ("a_window_keeps_a_reading_that_was_taken_back", 2, "metered_by_tap landed"),
        ("rows_never_become_final", 2, "is tentative at"),
    ],
)
def test_a_bug_of_scans_is_found(name, seed, said):
    with BUGS[name].plant():
        (trouble, *_) = run(replace(CALM, seed=seed)).trouble
    assert said in trouble


@pytest.mark.parametrize(
    ("name", "faults", "said"),
    [
        ("streams_are_committed_after_the_readings", (TORN,), "its streams lack 1 readings"),
    ],
)
def test_a_bug_of_scans_is_found_under_faults(name, faults, said):
    scenario = replace(CALM, seed=8, schedule=faults)
    with BUGS[name].plant():
        (trouble, *_) = run(scenario).trouble
    assert said in trouble
    assert run(scenario).trouble == ()


def test_nothing_is_found_where_nothing_is_wrong():
    assert run(CALM).trouble == ()


def test_what_a_meter_wrote_is_a_set_and_taken_back_is_for_good():
    meter = MeterFile()
    line = MeterLine(5, 3, "a", "")
    meter.lines = [line._replace(retracted=True), line, line, line._replace(tap="b")]
    assert sorted((item.tags, state) for item, state in meter.items().items()) == [
        ('{"tap":"a"}', 2),
        ('{"tap":"b"}', 1),
    ]
    assert meter.items(first=3) == {line._replace(tap="b").item: 1}
    meter.lines = [line, line._replace(topic="meters/0"), line._replace(topic="meters/1")]
    assert len(meter.items()) == 3, "sensors that agree are apart"


class LooksTwice(Checks):
    """After each step, reads what a device holds of streams by the agent's own history, too."""

    def __init__(self):
        super().__init__()
        self.looks = 0

    def stepped(self, world):
        super().stepped(world)
        for device in world.running():
            if device.disk_until:
                continue  # its disk fails after some operations, and a look is one
            held, plan = device.streams_held(), device.core.agent.plan
            history = StreamHistory(plan, device.name, device.durable.store.history)
            progress = history.progress()
            assert (held is None) == (progress is None)
            if held is None:
                continue
            self.looks += 1
            items = {
                event: {
                    item: cell[item]
                    for _, cell in history.cells(event, 0, FOR_EVER_US)
                    for item in cell
                }
                for event in sorted(plan.evaluated_events)
            }
            rows = {
                name: {
                    place: row
                    for _, cell in history.rows(name, 0, FOR_EVER_US)
                    for place, row in cell.items()
                }
                for name in plan.stream_results
            }
            said = {
                (name, place): encoded((row.event.value, row.event.key))
                for name, found in rows.items()
                for place, row in found.items()
                if row.event is not None
            }
            assert held == (items, rows, said, progress.frontier_us)


def test_a_look_at_streams_gives_what_the_agents_own_history_reads():
    looks = LooksTwice()
    world = World(replace(scenario_of(9), scans=True), looks)
    list(disturbed(world))
    world.close()
    assert world.trouble == []
    assert looks.looks > 30
