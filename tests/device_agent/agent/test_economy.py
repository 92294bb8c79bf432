"""What an agent as it is shipped writes and sends: bytes on virtual time, the same in each run.

A log of SQLite's grows by a head and a page for each page that a commit changes, so its length is
what was written. A card is written in blocks of 4 KiB, of which the first and the last may be
written twice. The same from outside, on real processes: `python -m simulations.benchmarks economy`.
"""

from collections import Counter
from itertools import count
from random import Random
from typing import NamedTuple

import pytest

from device_agent.agent.core import Core, Durable
from device_agent.agent.intake.batch import BURST, Batch
from device_agent.agent.settings import Settings
from device_agent.agent.state.store import FILE_NAME, Store
from lasp_edge import Program, folds
from lasp_edge.examples.greenhouse import program
from lasp_edge.protocol.kinds import FRAME_KINDS, Subscriber, decode
from lasp_edge.protocol.topics import Topics, topic_of
from lasp_edge.units import SECOND_US
from simulations.benchmarks.economy import DEVICES, json_bytes, wire_bytes
from simulations.world.lander import SimulatedLander

START_US = 1_700_000_000 * SECOND_US
HOUR_S, DAY_S = 3_600, 86_400
WARM_S = 600
BLOCK_BYTES = 4_096
CARD_MB = 30
PUBACK = 4


class Economy(NamedTuple):
    """What one device sent and heard on average, in bytes a second, and wrote, in MB a day."""

    sent: float
    heard: float
    written_mb: float
    frames: Counter
    settled: float


class Site:
    """Three agents as they are shipped, with a broker that loses nothing and a lander."""

    def __init__(self, directory, plan, settings=None):
        self.plan, self.now_us = plan, START_US
        self.topics = Topics(plan.name)
        self.lander = SimulatedLander("lake-1", plan)
        self.folder = directory
        self.sent, self.heard, self.frames = Counter(), Counter(), Counter()
        self.devices = {}
        for number, name in enumerate(DEVICES):
            store = Store(directory / name)
            core = Core(plan, name, 7 + number, store.restored(), settings or Settings.paced())
            core.intake.sources.cursor("feed")
            self.devices[name] = Durable(core, store)
            core.handle_connected(self.now_us)

    def second(self, device_reads):
        self.now_us += SECOND_US
        for name in self.devices:
            if name in device_reads:
                self.devices[name].read(device_reads[name], self.now_us)
        for name, durable in self.devices.items():
            for publication in list(durable.tick(self.now_us)):
                self.sent[name] += wire_bytes(publication)
                self.frames[type(decode(publication.payload)).__name__] += 1
                self.deliver(publication.topic, publication.payload, publication.qos)

    def deliver(self, topic, payload, qos):
        frame = decode(payload)
        subscribers = FRAME_KINDS[frame.kind].subscribers
        for name, durable in self.devices.items():
            is_addressed = subscribers & Subscriber.ADDRESSEE and frame.about == name
            if subscribers & Subscriber.DEVICES or is_addressed:
                self.heard[name] += 7 + len(topic) + len(payload)
                self.sent[name] += PUBACK if qos else 0
                durable.hear(topic, payload, self.now_us)
        answer = self.lander.hear(topic, payload, self.now_us)
        if answer is not None:
            self.deliver(topic_of(answer, self.topics), answer.encode(), 1)

    def written(self, name):
        return (self.folder / name / f"{FILE_NAME}-wal").stat().st_size

    def run(self, every_s, seconds, *, own_times=False, warm_s=WARM_S):
        random, numbers = Random(1), count()
        commits, logged, settled = 0, 0, 0
        for second in range(warm_s + seconds):
            if second == warm_s:
                self.sent.clear()
                self.heard.clear()
                self.frames.clear()
                commits, logged = 0, 0
            before = self.written("attic")
            time_us = self.now_us if own_times else None
            reads = {
                name: Batch(
                    "feed",
                    ["temperature"],
                    [time_us],
                    [round(20 + random.random() * 3, 2)],
                    [{"room": name}],
                    cursor=str(next(numbers)) if own_times else None,
                )
                for number, name in enumerate(self.devices)
                if (second + 17 * number) % every_s == 0
            }
            self.second(reads)
            grown = self.written("attic") - before
            commits += grown > 0
            logged += max(0, grown)
            agreements = self.devices["attic"].core.agreements.all().values()
            settled += all(each.settled for each in agreements)
        blocks = logged / BLOCK_BYTES + 1.5 * commits
        return Economy(
            self.sent["attic"] / seconds,
            self.heard["attic"] / seconds,
            blocks * BLOCK_BYTES * DAY_S / seconds / 1e6,
            self.frames,
            settled / (warm_s + seconds),
        )


@pytest.fixture
def begin(tmp_path):
    """Return a function that starts a site."""
    sites = []

    def start(settings=None, plan=None):
        sites.append(Site(tmp_path / str(len(sites)), plan or program.plan(), settings))
        return sites[-1]

    yield start
    for site in sites:
        for durable in site.devices.values():
            durable.store.close()


@pytest.fixture
def site(begin):
    return begin()


@pytest.mark.parametrize("own_times", [False, True], ids=["stamped", "own times"])
def test_a_reading_a_second_costs_no_more_than_json_and_30_mb_a_day(site, own_times):
    said = site.run(1, 12 * 60, own_times=own_times)
    assert said.sent <= json_bytes("attic")
    assert said.written_mb <= CARD_MB, said
    assert said.frames["VariableFrame"] <= 3 * 2 * 12


@pytest.mark.parametrize("own_times", [False, True], ids=["stamped", "own times"])
def test_a_reading_a_minute_costs_no_more_than_three_times_json(site, own_times):
    said = site.run(60, HOUR_S, own_times=own_times)
    assert said.sent <= 2.5 * json_bytes("attic") / 60, said
    assert said.written_mb <= CARD_MB


def of_an_hour():
    """Return a program whose panes are open for an hour."""
    hourly = Program("greenhouse")
    temperature = hourly.event("temperature", resolution="0.01")
    hourly.window("hourly", source=temperature, fold=folds.mean(), size_s=HOUR_S, slide_s=HOUR_S)
    return hourly.plan()


@pytest.mark.parametrize("plan", [program.plan(), of_an_hour()], ids=["10 s", "1 h"])
@pytest.mark.parametrize("every_s", [1, 7, 60])
def test_a_reading_lands_within_an_interval_and_few_frames_leave(begin, plan, every_s):
    site, read = begin(plan=plan), Counter()
    for second in range(12 * 60):
        due = (second + 20) % every_s == 0
        batch = Batch("feed", ["temperature"], [None], [20.0], [{"room": "attic"}])
        site.second({"attic": batch} if due else {})
        read[second] = read[second - 1] + due
        landed = sum(partial[0] for _, partial in site.lander.panes.values())
        assert landed >= read[second - 62], f"read until {second - 62}, landed at {second}"
    assert landed > 0
    assert site.frames["PaneFrame"] <= 12 + BURST, site.frames


def test_readings_that_come_a_moment_later_than_an_interval_leave_in_pairs(site):
    for second in range(20 * 60):
        batch = Batch("feed", ["temperature"], [None], [20.0], [{"room": "attic"}])
        before = site.frames["PaneFrame"]
        site.second({})
        assert site.frames["PaneFrame"] - before <= 1
        if second % 60 == 0:  # just after the tick in which the one before could leave
            site.devices["attic"].read(batch, site.now_us + SECOND_US // 2)
    assert site.frames["PaneFrame"] <= 10 + BURST, site.frames


def test_a_fleet_in_which_nothing_changes_says_hardly_anything(site):
    said = site.run(10**9, HOUR_S // 2)
    assert said.sent <= 1.0
    assert set(said.frames) <= {"BeatFrame"}
    assert said.settled > 0.9


def test_a_fleet_that_comes_to_rest_agrees_within_seconds(site):
    site.run(1, 100)
    for _ in range(30):
        site.second({})
    for durable in site.devices.values():
        (agreement,) = durable.core.agreements.all().values()
        assert agreement.settled
        assert agreement.devices == len(DEVICES)
    assert {d.core.counters.totals["accepted"] for d in site.devices.values()} == {WARM_S + 100}


def test_at_a_steady_pace_the_fleet_agrees_each_interval(site):
    assert site.run(60, HOUR_S // 2).settled > 0.1


def test_a_live_fleet_pays_for_it(begin):
    thrifty, live = (
        begin(settings).run(1, 300, warm_s=60) for settings in (None, Settings.paced(1.0))
    )
    assert live.sent > 5 * thrifty.sent
    assert live.frames["VariableFrame"] > 30 * thrifty.frames["VariableFrame"]
