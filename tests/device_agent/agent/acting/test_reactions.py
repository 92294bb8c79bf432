"""Handlers of values: when they run, with what, and that no crash repeats or loses a call."""

import pytest

from crdts import GSet, Replica, Version
from device_agent.agent.settings import Settings
from lasp_edge import folds
from lasp_edge.protocol.frames import BeatFrame, VariableReport
from lasp_edge.units import SECOND_US
from tests.device_agent.agent.acting.support_acting import PEER, House, peer_says, run
from tests.device_agent.agents import Device
from tests.support_commands import member_command

OPERATOR = Replica(1, 5, "operator")
EAGER = Settings(interval_us=SECOND_US)


@pytest.fixture
def start(tmp_path):
    return lambda house, settings=EAGER, **more: Device(
        tmp_path, house.plan(), settings=settings, **more
    )


def test_a_handler_gets_the_value_and_what_it_is_made_from(start):
    house = House()
    house.on_value(house.everywhere)
    device = start(house)
    device.read([20.0, 21.0])
    peer_says(device, 1, 2, 430)
    run(device, 5)
    value = house.seen[-1]
    assert (value.name, value.key, value.number) == ("everywhere", "", 21.0)
    assert (value.parts, value.devices) == ({"mean": 21.0}, ("pi-1", "pi-2"))
    result = device.core.results.fleet()["everywhere"][""]
    assert (value.inputs, value.missing) == (result.inputs, ("pi-2",))


def test_a_handler_never_runs_twice_for_one_inputs(start):
    house = House()
    house.on_value(house.here)
    device = start(house)
    device.read([20.0])
    run(device, 20)
    assert house.numbers() == [20.0]
    device.restart()
    run(device, 60)
    assert house.numbers() == []
    device.read([21.0])
    run(device, 5)
    assert house.numbers() == [20.5]


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("levels", [{}, {"above": 20, "below": 18}])
def test_a_value_that_goes_and_comes_back_from_the_same_inputs_is_no_news(start, restarts, levels):
    house = House(key=lambda event: event.tags["room"])
    house.on_value(house.everywhere, **levels)
    device = start(house)
    peer_says(device, 1, 2, 430, PEER, "attic")
    run(device, 60)
    assert house.numbers() == [21.5]
    for control, retired in ((1, True), (2, False)):
        version = Version(PEER.incarnation, PEER.nonce, 2)
        device.hear(member_command(OPERATOR, control, PEER.device, control, retired, version))
        run(device, 5)
        assert bool(device.core.results.fleet()["everywhere"]) is not retired
        if retired and restarts:
            device.restart()
            peer_says(device, 1, 2, 430, PEER, "attic")
            run(device, 60)
    run(device, 60)
    assert house.numbers() == [], "it is made from what it was made from before"
    peer_says(device, 2, 2, 440, PEER, "attic")
    run(device, 5)
    assert house.numbers() == ([] if levels else [22.0])


def test_of_keys_that_are_gone_the_last_ones_are_remembered(start, monkeypatch):
    monkeypatch.setattr("device_agent.agent.acting.reactions.MOST_GONE", 2)
    house = House(key=lambda event: event.tags["room"])
    house.on_value(house.everywhere, every_s=0)
    device = start(house)
    rooms = ("attic", "cellar", "study")
    for number, room in enumerate(rooms, 1):
        peer_says(device, number, 2, 430, PEER, room)
    run(device, 60)
    assert [value.key for value in house.seen] == [*rooms]
    house.seen.clear()
    for control, retired in ((1, True), (2, False)):
        version = Version(PEER.incarnation, PEER.nonce, 3)
        device.hear(member_command(OPERATOR, control, PEER.device, control, retired, version))
        run(device, 5)
    assert [value.key for value in house.seen] == ["attic"], "it is not among the last two"


def test_a_value_without_a_sample_is_no_news(start):
    house = House()
    house.on_value(house.here)
    device = start(house)
    run(device, 10)
    assert house.numbers() == []


def test_at_most_once_an_interval_and_the_newest_value_wins(start):
    house = House(bound=1)
    house.on_value(house.here, every_s=10)
    device = start(house)
    for value in range(25):
        device.read([float(value)])
        device.tick()
    run(device, 20)
    numbers = house.numbers()
    assert len(numbers) == 4  # at 1 s, 11 s, 21 s, and the last value at 31 s
    assert numbers[-1] == 24.0


def test_the_interval_holds_across_a_restart(start):
    house = House(bound=1)
    house.on_value(house.here, every_s=100)
    device = start(house)
    device.read([1.0])
    run(device, 3)
    device.restart()
    device.read([2.0])
    run(device, 50)
    assert house.numbers() == [1.0]
    run(device, 60)
    assert house.numbers() == [2.0]


def test_hysteresis_fires_above_and_is_armed_again_at_the_lower_level(start):
    house = House(bound=1)
    house.on_value(house.here, above=28, below=27, every_s=0)
    device = start(house)
    told = []
    for value in (28.0, 28.1, 29.0, 27.1, 28.5, 27.0, 28.0, 28.1):
        device.read([value])
        run(device, 2)
        told.append(house.numbers())
    assert told == [[], [28.1], [], [], [], [], [], [28.1]]


def test_a_level_below_fires_below_alone(start):
    house = House(bound=1)
    house.on_value(house.here, below="17.5", every_s=0)
    device = start(house)
    told = []
    for value in (18.0, 17.5, 17.4, 17.3, 17.5, 17.4):
        device.read([value])
        run(device, 2)
        told.append(house.numbers())
    shown = pytest.approx(17.4)  # a mean is a quotient of doubles for people, and exact for levels
    assert told == [[], [], [shown], [], [], [shown]]


@pytest.mark.parametrize(("level", "fires"), [("28.1", False), ("28.09", True)])
def test_a_bound_is_compared_exactly(start, level, fires):
    """The mean of 28.0, 28.1 and 28.2 is 28.1; its double is 28.1 and a bit."""
    house = House()
    house.on_value(house.here, above=level)
    device = start(house)
    device.read([28.0, 28.1, 28.2])
    run(device, 3)
    assert bool(house.seen) == fires
    lowered = device.core.results.plain()["here"]["parts"]["mean"]
    assert lowered == pytest.approx(28.1)


def test_for_s_needs_the_condition_to_hold_all_the_time(start):
    house = House(bound=1)
    house.on_value(house.here, above=28, for_s=60)
    device = start(house)
    device.read([29.0])
    run(device, 50)
    device.read([27.0])
    run(device, 2)
    device.read([29.5])
    run(device, 58)
    assert house.numbers() == []
    run(device, 5)
    assert house.numbers() == [29.5]
    run(device, 200)
    assert house.numbers() == []


def test_what_was_off_while_the_agent_was_down_is_not_taken_to_have_held(start):
    house = House(bound=1)
    house.on_value(house.here, above=28, for_s=60)
    device = start(house)
    device.read([29.0])
    run(device, 30)
    device.kill()
    device.now_us += 600 * SECOND_US
    device.start()
    run(device, 50)
    assert house.numbers() == []
    run(device, 15)
    assert house.numbers() == [29.0]


def test_what_has_fired_does_not_fire_again_after_a_restart(start):
    house = House(bound=1)
    house.on_value(house.here, above=28, below=27)
    device = start(house)
    device.read([29.0])
    run(device, 3)
    assert house.numbers() == [29.0]
    device.restart()
    device.read([28.5])
    run(device, 40)
    assert house.numbers() == []


def test_each_key_is_watched_by_itself(start):
    house = House(bound=1, key=lambda event: event.tags["room"])
    house.on_value(house.everywhere, above=28, below=27)
    device = start(house)
    for room, value in (("attic", 30.0), ("cellar", 12.0), ("attic", 30.5), ("study", 28.1)):
        device.read([value], tags={"room": room})
        run(device, 5)
    assert [(value.key, value.number) for value in house.seen] == [("attic", 30.0), ("study", 28.1)]


def test_what_a_handler_changes_is_in_one_transaction_with_its_call(start):
    house = House()
    house.on_value(house.here)
    device = start(house)
    device.read([20.0])
    committed = []
    device.store.commit = lambda changes, commit=device.store.commit: (
        committed.append((bool(changes.deltas or changes.states), changes.facts.acted)),
        commit(changes),
    )
    run(device, 3)
    assert [both for both in committed if both[1]] == [(True, committed[-1][1] or committed[0][1])]
    device.restart()
    assert device.core.variables.shared()["notices"] == {"=20.0"}


def test_a_crash_before_the_commit_lets_the_handler_run_again(start):
    house = House()
    house.on_value(house.here)
    device = start(house)
    device.read([20.0])

    def full(_changes):
        raise OSError("disk full")

    device.store.commit = full
    with pytest.raises(OSError, match="disk full"):
        run(device, 5)
    device.restart()
    assert device.core.variables.shared()["notices"] == frozenset()
    run(device, 5)
    assert house.numbers() == [20.0, 20.0]
    assert device.core.variables.shared()["notices"] == {"=20.0"}


def test_a_handler_that_raises_is_counted_with_its_place_and_not_asked_again(start):
    house = House()

    @house.program.on_value(house.here)
    def broken(value, update):
        update(house.notices, GSet.add, "half done")
        raise SystemExit(3)

    device = start(house)
    device.read([20.0])
    run(device, 10)
    (reason,) = device.core.agent.guard.reasons
    assert reason.startswith("failed: on_value of here: SystemExit: 3 (")
    assert "test_reactions.py:" in reason
    assert device.counted[reason] == 1
    assert device.core.variables.shared()["notices"] == frozenset()


def test_after_a_restart_the_fleets_value_waits_for_the_fleet(start):
    """Alone with its own 30 degrees a device would act on a mean that nobody has."""
    house = House(bound=1)
    house.on_value(house.everywhere, above=28)
    device = start(house)
    device.read([30.0])
    peer_says(device, 1, 3, 600)
    run(device, 3)
    agree(device)
    run(device, 30)
    assert house.numbers() == []
    device.restart()
    run(device, 20)  # what the broker retains is late
    peer_says(device, 1, 3, 600)
    run(device, 60)
    assert house.numbers() == []


def test_a_device_that_is_cut_off_acts_on_what_it_knows_after_a_while(start):
    house = House(bound=1)
    house.on_value(house.everywhere, above=28)
    device = start(house)
    device.core.handle_disconnected()
    device.read([30.0])
    run(device, 60)
    assert house.numbers() == [30.0]


def test_a_value_of_several_parts_is_watched_by_part(start):
    house = House(fold=folds.struct(mean=folds.mean(), high=folds.max()))
    house.on_value(house.here, part="high", above=28)
    device = start(house)
    device.read([10.0, 28.1])
    run(device, 3)
    assert house.numbers() == [28.1]


def test_what_is_remembered_of_a_handler_that_is_gone_goes(start, tmp_path):
    house = House()
    house.on_value(house.here)
    device = start(house)
    device.read([20.0])
    run(device, 3)
    device.program = House().plan()
    device.restart()
    run(device, 3)
    assert not any(device.store.restored().facts.acted.values())


def agree(device):
    """Let the peer report what the device holds, so that the fleet has agreed on it."""
    (published,) = device.core.samples.published.values()
    report = VariableReport("here", 1, published.entries.digest)
    device.hear(BeatFrame(PEER, 1, (), done=False, reports=(report,)))
    device.tick(20)
    device.read([30.0])
    run(device, 20)
