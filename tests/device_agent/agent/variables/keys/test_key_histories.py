"""Any history of keys gives what the oracle gives, and what folding anew gives."""

import random

import pytest

from crdts import Version
from lasp_edge import folds
from lasp_edge.protocol.frames import VariableFrame
from simulations.oracle import PublishedPartial, Reading, dynamic_partials, inputs, local_partials
from tests.device_agent.agent.variables.keys.support_rooms import everywhere, exchange, here, read
from tests.device_agent.agents import Device, rooms


def test_a_key_takes_its_own_inputs_and_the_whole_takes_all(device):
    read(device, "attic", 1.0)
    read(device, "hall", 1.0)
    device.tick()

    def inputs_now():
        keys = device.core.results.fleet()["everywhere"]
        whole = device.core.agreements.all()["everywhere"].inputs
        return {key: result.inputs for key, result in keys.items()}, whole

    (before, whole), stream = inputs_now(), device.program.dynamic_folds["everywhere"].stream
    assert len({*before.values(), whole}) == 3
    read(device, "hall", 2.0)
    device.tick()
    after, other = inputs_now()
    assert (after["attic"], after["hall"] == before["hall"], other == whole) == (
        before["attic"],
        False,
        False,
    )
    words = {}
    for frame in device.frames(VariableFrame):
        for key, seq, partial in zip(
            frame.keys, frame.seqs, zip(*frame.columns, strict=True), strict=False
        ):
            words[key, "pi-1"] = PublishedPartial(Version.of(frame.sender, seq), partial)
    assert stream
    for key in before:
        assert inputs(device.program, "everywhere", words, {}, key) == after[key]
    assert inputs(device.program, "everywhere", words, {}) == other


def some_readings(drawn, device, step):
    """Let a device read in some of the rooms of the hour; return what it read."""
    found = []
    for _ in range(drawn.randint(0, 3)):
        tags, value = {"room": f"room-{drawn.randint(0, 5) + step // 4}"}, drawn.randint(0, 99)
        device.read([value], tags=tags)
        seen = Reading(device.name, "temperature", value, device.now_us, tags, stamped=True)
        found.append(seen._replace(accepted_us=device.now_us))
    return found


def restart_now_and_then(drawn, fleet):
    """Restart some device; the broker gives it again what it kept of the others."""
    device = drawn.choice(fleet)
    if drawn.random() < 0.2:
        device.restart()
        for other in fleet:
            other.core.exchange.connected(other.now_us)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("max_age_s", [None, 7], ids=["bound", "bound and age"])
def test_any_history_of_keys_gives_what_the_oracle_gives(tmp_path, seed, max_age_s):
    drawn = random.Random(seed)
    fold = folds.struct(mean=folds.mean(), low=folds.min(), high=folds.max())
    program = rooms(fold, bound=4, max_age_s=max_age_s)
    fleet = [Device(tmp_path / name, program, name=name) for name in ("a", "b", "c")]
    readings = {device.name: [] for device in fleet}
    for step in range(25):
        for device in fleet:
            readings[device.name] += some_readings(drawn, device, step)
        restart_now_and_then(drawn, fleet)
        exchange(*fleet)
    for _ in range(3):
        exchange(*fleet)
    now_us = fleet[0].now_us
    for device in fleet:
        assert here(device) == local_partials(program, "here", readings[device.name], now_us)
    truth = dynamic_partials(program, "everywhere", readings, (), now_us)
    assert truth
    for device in fleet:
        assert everywhere(device) == truth, f"seed {seed}"
    assert len({d.core.agreements.all()["everywhere"] for d in fleet}) == 1


@pytest.mark.parametrize("fold", [folds.sum(), folds.max(), folds.top(5)], ids=repr)
def test_a_large_set_slides_to_what_folding_anew_gives(tmp_path, fold):
    program = rooms(fold, bound=600)
    device, drawn = Device(tmp_path, program), random.Random(3)
    lifted = program.local_folds["here"].fold
    for step in range(150):
        count = 1 if step % 10 else drawn.randint(1, 700)
        device.read([drawn.randint(-99, 99) for _ in range(count)], tags={"room": "hall"})
        if step % 3:
            state = device.core.samples.sets.held["samples"]["hall"]
            times_us = [time_us for time_us, _, _ in state.samples()]
            assert here(device) == {"hall": lifted.lift_column(state.values(), times_us)}
