"""Any history of one device, with hardly any memory: nothing is lost, doubled or promised falsely.

One seed draws readings, repeats, late ones, kills, cuts, lost frames, late and doubled
acknowledgements, a second sink, new lakes and lost names. After each step every promise to the lake
is held against what has landed there; in the end all of it has, in both sinks, and equals the
recomputation from the readings.
"""

from random import Random

import pytest

from crdts import Replica
from device_agent.agent import core
from device_agent.agent.intake import identities, intake
from device_agent.agent.panes import cache, flights, sender
from device_agent.agent.settings import Settings
from lasp_edge.protocol.frames import BeatFrame, PaneFrame
from lasp_edge.units import SECOND_US
from simulations.oracle import Reading, local_partials, windows
from simulations.world.lander import SimulatedLander
from tests.device_agent.agents import LAKE, Device, entry_of, greenhouse

SEEDS = range(12)
STEPS = 120


@pytest.fixture
def hardly_any_memory(monkeypatch):
    """Let the caches be so small that everything is evicted and recalled all the time."""
    monkeypatch.setattr(cache, "KEPT_ENTRIES", 12)
    monkeypatch.setattr(cache, "PAGE", 4)
    monkeypatch.setattr(flights, "IN_FLIGHT", 2)
    monkeypatch.setattr(sender, "FRAME_BYTES", 1_200)
    monkeypatch.setattr(identities, "KEPT_IDENTITIES", 30)
    monkeypatch.setattr(intake, "PRUNE_US", 60 * SECOND_US)
    monkeypatch.setattr(core, "NOTES_US", 3 * SECOND_US)


class History:
    """One device, its lander, and what went on between them."""

    def __init__(self, directory, seed):
        self.random = Random(seed)
        settings = Settings(keep_readings=True, retain_us=900 * SECOND_US)
        program = greenhouse(size_s=50, slide_s=20, bound=9, keyed=True)
        self.device = Device(directory, program, settings=settings)
        self.frames: list[PaneFrame] = []
        self.archive = SimulatedLander("archive-1", program, sink="archive")
        self.lakes = 1
        self.read_once: list = []

    def step(self):
        often = [self.read, self.tick, self.land]
        seldom = [self.kill, self.cut, self.repeat, self.lose_name, self.new_lake]
        act = self.random.choice([*often * 4, *seldom, self.unsent, self.set_clock_back])
        act()
        self.promises_hold()

    def read(self):
        now_us, draw = self.device.now_us, self.random
        count = draw.randint(1, 12)
        late = draw.choice([0, 0, 5, 60, 600, 1_200])
        times = [
            None if draw.random() < 0.2 else now_us - draw.randint(0, late) * SECOND_US
            for _ in range(count)
        ]
        values = [round(draw.uniform(15, 16) + 2 * (at is None), 1) for at in times]  # stamped: 17
        tags = [{"room": draw.choice("ab")} for _ in range(count)]
        self.read_once += [
            (value, time_us, tag)
            for value, time_us, tag in zip(values, times, tags, strict=True)
            if time_us is not None
        ]
        self.device.take(values, times, tags)

    def repeat(self):
        if self.read_once:
            again = self.random.choices(self.read_once, k=5)
            self.device.take(*map(list, zip(*again, strict=True)))

    def tick(self):
        published = self.device.tick(self.random.choice([0, 0.5, 1, 3, 15, 200]))
        self.frames += self.device.frames(PaneFrame, published)

    def land(self):
        """Let some frames land, in any order, and some of their acknowledgements arrive."""
        self.tick()
        self.random.shuffle(self.frames)
        for frame in self.frames[: self.random.randint(0, 3)]:
            answer = self.device.lands(frame)
            if self.random.random() < 0.7:
                self.device.hear(answer)
            if self.random.random() < 0.3:
                also = self.archives(frame)
                if self.random.random() < 0.7:
                    self.device.hear(also)
            if self.random.random() < 0.7:
                self.frames.remove(frame)

    def archives(self, frame):
        """Let the second sink take a frame; return its answer."""
        device = self.device
        return self.archive.hear(device.topic_of(frame), frame.encode(), device.now_us)

    def kill(self):
        self.device.restart()
        if self.lakes > 1:  # the kill may have been in front of the commit that remembers it
            self.device.acknowledge(lake=self.device.landed.lake)

    def cut(self):
        self.device.core.handle_disconnected()
        self.read()
        self.tick()
        self.device.core.handle_connected(self.device.now_us)

    def unsent(self):
        for publication in self.device.durable.tick(self.device.now_us):
            self.device.core.handle_unsent(publication)
            break

    def set_clock_back(self):
        if self.random.random() < 0.2:
            self.device.now_us -= self.random.randint(1, 100) * SECOND_US

    def lose_name(self):
        """The broker kept a word of a later life, of which the store knows nothing."""
        if self.random.random() < 0.2:
            replica = Replica(self.device.core.replica.incarnation + 2, 9, self.device.name)
            fold = self.device.program.local_folds["local_average"]
            self.device.hear(entry_of(replica, 3, "local_average", fold.stream, (5, 5)))

    def new_lake(self):
        """The lake is lost, and the device is told of another one."""
        if self.random.random() < 0.2:
            self.lakes += 1
            self.device.landed = SimulatedLander(f"{LAKE}-{self.lakes}", self.device.program)
            self.frames.clear()
            self.device.acknowledge(lake=self.device.landed.lake)
            self.device.sent.clear()  # promises about the other lake

    def promises_hold(self):
        beats = self.device.frames(BeatFrame)
        self.device.sent.clear()
        lows = beats[-1].lows if beats else ()
        low_us = next((low.low_us for low in lows if low.sink == "lake"), None)
        if low_us is None:
            return
        landed: dict = {}
        window = self.device.program.windows["by_room"]
        for (_, key, pane_us, *_), (_, partial) in self.device.landed.panes.items():
            before = landed.get((key, pane_us), window.fold.zero)
            landed[key, pane_us] = window.fold.combine(before, partial)
        for (key, pane_us), partial in self.device.stored_panes().items():
            pruned = pane_us + window.span_us <= self.device.core.intake.progress.floor_us
            if pane_us < low_us and not pruned:
                assert landed.get((key, pane_us)) == partial

    def settle(self):
        device = self.device
        device.acknowledge(lake=device.landed.lake)
        device.acknowledge(lake="archive-1", sink="archive")
        device.core.handle_end()
        for _ in range(900):
            if device.core.done:
                break
            for frame in device.frames(PaneFrame, device.tick()):
                device.hear(device.lands(frame))
                device.hear(self.archives(frame))
        assert device.core.done, device.core.report()
        return [
            Reading(device.name, "temperature", r["value"], r["time_us"], r["tags"], stamped=True)
            for r in device.store.readings()
        ]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_history_ends_with_the_truth_in_the_lake(tmp_path, hardly_any_memory, seed):
    history = History(tmp_path, seed)
    device = history.device
    for _ in range(STEPS):
        history.step()
    kept = history.settle()
    replay = f"replay with: History(directory, seed={seed}), {STEPS} steps"
    truth = windows(device.program, "by_room", kept)
    found = device.landed.windows(device.program, "by_room")
    safe_us = device.core.intake.progress.floor_us
    safe = {at: window.partial for at, window in truth.items() if at[1] >= safe_us}
    archived = history.archive.windows(device.program, "by_room")
    assert {at: partial for at, partial in archived.items() if at[1] >= safe_us} == safe, replay
    if history.lakes == 1:
        assert found == {at: window.partial for at, window in truth.items()}, replay
    else:  # what lay below the floor when a lake was lost is not sent again
        assert {at: p for at, p in found.items() if at[1] >= safe_us} == safe, replay
    own = [(r.time_us, r.value, r.tags["room"]) for r in kept if r.value < 16.5]
    assert len(own) == len(set(own)), replay
    device.tick(0)
    local = device.core.results.local()["local_average"][""].partial
    assert local == local_partials(device.program, "local_average", kept)[""], replay
    assert device.core.variables.shared()["total"] == len(kept), replay
