"""What is remembered, so that it is not made in each turn, is what would be made anew."""

import pytest

from device_agent.agent.timing import witnesses
from lasp_edge.protocol.fencing import joined
from simulations.world.checks import Checks
from simulations.world.run import disturbed
from simulations.world.scenario import scenario_of
from simulations.world.streams_held import _held, streams_held
from simulations.world.world import World


class Comparison(Checks):
    """Compares after each step of a run, beside what every run is looked at for."""

    def __init__(self):
        super().__init__()
        self.compared = 0

    def stepped(self, world):
        super().stepped(world)
        for device in world.running():
            self._of_device(device)
        for sink in world.sinks:
            witness = sink.lander._acceptance.witness
            for device, known in witness._known.items():
                assert witness.line(device) == witness._line(known)

    def _of_device(self, device):
        core = device.core
        for fold in core.agent.plan.dynamic_folds.values():
            assert core.agreements.of(fold) == core.agreements._agreement(fold)
        for published in core.samples.published.values():
            entries = published.entries
            assert entries.devices == sorted(entries._newest.keys() - entries._retired)
        assert core.intake.highs.told() == joined(core.intake.highs._highs.values())
        heard, near_us = core.timing._witnesses, core.timing._near_us
        now_us = core.timing._reading.monotonic_us
        known = [each for each in heard._witnesses.values() if witnesses._counts(each, now_us)]
        assert heard.verdict(now_us, near_us) == witnesses._verdict(known, near_us)
        self.compared += 1
        if core.streams is not None and not device.disk_until:
            held = device.streams_held()
            assert held == _held(device.durable.store, core.agent.plan)
            assert streams_held(device.durable.store, core.agent.plan) is held


@pytest.mark.parametrize("seed", range(40, 52))
def test_what_is_remembered_is_what_would_be_made_anew(seed):
    comparison = Comparison()
    world = World(scenario_of(seed), comparison)
    try:
        list(disturbed(world))
    finally:
        world.close()
    assert not world.trouble
    assert comparison.compared
