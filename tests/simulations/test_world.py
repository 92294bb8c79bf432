"""The simulated world: its runs end with the truth, are equal for equal seeds, and find faults."""

import sqlite3
from dataclasses import replace
from random import Random

import pytest

from crdts import Frontier, Replica
from device_agent.agent.changes import Changes
from device_agent.agent.fleet.beats import Beats
from device_agent.gateway.kept import FleetChanges, FleetState
from lasp_edge.protocol.status import FINAL, REVISED
from lasp_edge.protocol.window_rows import FleetRow, WindowStart
from simulations.explore import main
from simulations.planted import of_the_fleet  # noqa: F401 - fills the table
from simulations.planted.bug import BUGS, replaced
from simulations.world.disk import FileDisk, MemoryDisk
from simulations.world.faults import KINDS, Fault, FaultRates
from simulations.world.keeper import SimulatedKeeper
from simulations.world.landed import LandedState
from simulations.world.misfortunes import befall
from simulations.world.run import run
from simulations.world.scenario import Scenario, scenario_of
from simulations.world.shrink import fails_alike, kind_of, shrunk
from simulations.world.window_checks import dropped_names
from simulations.world.world import World


@pytest.mark.parametrize("seed", [*range(12), 1836, 2628, 2718])
def test_a_seed_ends_with_the_truth(seed):
    outcome = run(scenario_of(seed))
    assert not outcome.trouble, f"replay with: python -m simulations.explore --seed {seed}"


def test_a_fault_of_each_kind_can_be_seen():
    faults = FaultRates(**dict.fromkeys(KINDS, 3_600.0))
    assert {fault.kind for fault in faults.schedule(Random(1), ["pi-0"], 10)} == set(KINDS)


def test_a_schedule_has_as_many_faults_as_the_rates_say():
    faults = FaultRates(kill=90, new_lake=30)
    names = [f"pi-{number}" for number in range(10)]
    schedule = faults.schedule(Random(1), names, 3_600)
    kinds = [fault.kind for fault in schedule]
    assert (kinds.count("kill"), kinds.count("new_lake")) == (900, 30)
    assert schedule == sorted(schedule)


def test_rates_are_read_and_a_strange_kind_is_refused():
    assert FaultRates.parsed(["kill=2", "loss=0.1"]) == FaultRates(kill=2, loss=0.1)
    with pytest.raises(ValueError, match=r"no fault 'explosion'; there are .*kill"):
        FaultRates.parsed(["explosion=1"])


def test_a_failing_run_is_shrunk_to_the_faults_that_matter():
    schedule = tuple(Fault(step, "cut", "pi-0", 2) for step in range(1, 20))
    kill = Fault(7, "kill", "pi-0", 1)
    found = Scenario(1, 2, 120, FaultRates(loss=0.5), (*schedule, kill))
    small = shrunk(found, lambda one: kill in one.schedule)
    assert small == replace(found, faults=FaultRates(), schedule=(kill,), steps=8)


def test_a_run_that_fails_in_another_way_is_not_what_was_found():
    """The kill is what the failure needs; without the cut, the run fails in another way."""
    cut, kill = Fault(3, "cut", "pi-0", 2), Fault(7, "kill", "pi-0", 1)
    others = tuple(Fault(step, "deaf", "pi-1", 2) for step in range(1, 9))
    found = Scenario(1, 2, 20, schedule=(*others, cut, kill))

    def trouble(scenario):
        if kill not in scenario.schedule:
            return ()
        steps = len(scenario.schedule)
        if cut in scenario.schedule:
            return (f"pi-0: {steps} readings are lost", "pi-1 says settled")
        return (f"not settled after {steps} steps: pi-0 (not all landed)",)

    small = shrunk(found, fails_alike(trouble(found), trouble))
    assert small.schedule == (cut, kill)


def test_devices_numbers_and_values_do_not_make_another_failure():
    same = [
        "pi-0 dropped PaneId(pane_us=1, key=('a',), of=Replica(2, 3)), lake lacks it",
        "pi-11-copy dropped PaneId(pane_us=-17, key=('b', 2), of=Replica(7, 3)), lake lacks it",
    ]
    assert len(set(map(kind_of, same))) == 1
    kinds = ["pi-0: the agent ended: KeyError: 'x'", "pi-0: the agent ended: ValueError: 7"]
    assert len(set(map(kind_of, kinds))) == 2


@pytest.mark.parametrize("seed", [0, 5])
def test_two_processes_with_one_name_are_alarmed_within_a_minute(seed):
    """A copy of a card runs in a second device; both publish once a minute, as agents do."""
    clone = Fault(60, "clone", "pi-0", 200)
    world = World(Scenario(seed, 2, 120, schedule=(clone,), interval_s=60))
    for _ in range(clone.step):
        world.step(reading=True)
    befall(world, clone)
    for _ in range(60):
        world.step(reading=True)
    alarmed = {key for key, each in world.devices.items() if each.counted("clone_alarms")}
    world.close()
    assert alarmed == {"pi-0", "pi-0-copy"}


def test_what_a_lost_life_sent_comes_when_the_next_one_has_asked():
    scenario = Scenario(5, 1, 40, schedule=(Fault(11, "held_up", "pi-0", 12),))
    found = run(scenario)
    assert (found.trouble, found.seen["held_up"]) == ((), 1)
    with BUGS["panes_of_an_earlier_life_land_after_the_later_one_has_asked"].plant():
        assert "counts twice" in run(scenario).trouble[0]


def test_a_part_that_fails_under_its_guard_is_found():
    def fails(self, now_us):
        raise KeyError(now_us)

    with replaced(Beats, "tick", fails):
        assert "pi-0: failed: beats" in run(Scenario(1, 1, 5)).trouble[0]


@pytest.mark.parametrize("seed", range(3))
def test_a_seed_ends_with_the_truth_where_limits_are_narrow(seed):
    assert run(replace(scenario_of(seed), narrow=True)).trouble == ()


def test_exploring_says_what_an_hour_gives_and_what_was_seen(capsys):
    assert main(["--seeds", "3", "--only", "kill,cut"]) == 0
    said = capsys.readouterr().out
    assert "0 of 3 seeds failed" in said
    assert "goal 40,000" in said
    with pytest.raises(SystemExit):
        main(["--only", "explosion"])


def test_a_disk_that_fails_does_so_while_an_agent_writes_to_it():
    ends = []

    class Ends:
        def published(self, world, device, publication): ...

        def ticked(self, world, device, unsent): ...

        def connected(self, world, device): ...

        def ended(self, world, device):
            ends.append(world.step_number)

        def stepped(self, world): ...

    world = World(Scenario(seed=1, size=1, steps=30), Ends())
    for step in range(1, 31):
        if step == 10:
            befall(world, Fault(step, "disk_read_only", "pi-0", 1))
        world.step(reading=True)
    world.close()
    assert ends == [10]


@pytest.mark.parametrize("on_files", [False, True])
def test_a_disk_that_fails_behind_a_commit_has_that_one_and_nothing_after_it(on_files, tmp_path):
    disk = FileDisk(tmp_path / "store") if on_files else MemoryDisk()
    store = disk.open()
    disk.fail(0, commits=2)
    for times in (1, 2):
        store.commit(Changes(counters={"accepted": times}))
    with pytest.raises(sqlite3.Error):
        store.commit(Changes(counters={"accepted": 3}))
    store.close()
    disk.mend()
    store = disk.open()
    assert store.restored().counters == {"accepted": 2}
    store.commit(Changes(counters={"accepted": 4}))
    store.close()
    disk.remove()


@pytest.mark.parametrize("on_files", [False, True])
def test_an_image_of_a_disk_that_fails_holds_what_is_durable(on_files, tmp_path):
    disk = FileDisk(tmp_path / "store") if on_files else MemoryDisk()
    store = disk.open()
    store.commit(Changes(counters={"accepted": 1}))
    disk.fail(0)
    image = disk.image()
    with pytest.raises(sqlite3.Error):
        store.commit(Changes(counters={"accepted": 2}))
    store.close()
    disk.mend()
    disk.restore(image)
    store = disk.open()
    assert store.restored().counters == {"accepted": 1}
    store.close()
    disk.remove()


@pytest.mark.parametrize(("second_us", "wrong"), [(70, 0), (50, 1)])
def test_a_row_drops_a_name_once_its_device_has_promised_past_its_end(second_us, wrong):
    """Seed 4096: it promises less afterwards, as a late reading is on its way."""
    keeper, one = SimulatedKeeper(), Replica(1, 7, "pi-0")
    lander = LandedState()
    lander._keeper = keeper
    at = WindowStart("mean", "", 0)
    row = FleetRow(at, 60, 1, 1, 2, ("pi-0",), FINAL, 0, 60, 5)
    rows = [row, row._replace(excluded=(), status=REVISED, revision=1)]
    for number, low_us in enumerate((40, second_us, 30), start=1):
        promises = Frontier().promise(one, number, low_us=low_us, heard_us=80)
        changes = FleetChanges(state=FleetState(promises=promises))
        changes.rows += rows[number - 1 : number]
        keeper.commit(changes)
    assert len(list(dropped_names(lander, keeper.revisions[at]))) == wrong
