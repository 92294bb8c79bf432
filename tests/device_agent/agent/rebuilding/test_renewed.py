"""Windows that a program did not have before: what the device still has is in their panes."""

import random
from shutil import rmtree

import pytest

from crdts import Replica
from device_agent.agent.rebuilding import renewed
from device_agent.agent.settings import Settings
from device_agent.console.command.status import plainly, status_of
from device_agent.console.own_windows import own_windows
from lasp_edge import Program, folds
from lasp_edge.protocol.fencing import ProcessReport
from lasp_edge.protocol.frames import EVERY_WINDOW, BeatFrame
from tests.device_agent.agents import NOW_US, Device

S = 1_000_000
FOLDS = {
    "struct": lambda: folds.struct(n=folds.count(), low=folds.min(), last=folds.last()),
    "mean": folds.mean,
    "quantile": lambda: folds.quantile(0.5),
    "distinct": folds.distinct,
    "top": lambda: folds.top(2),
}
LEAST = 2
"""Readings above it count in the windows without keys, which have a filter."""
SETTINGS = Settings(keep_readings=True, max_skew_us=600 * S)


def program(slide_s, fold="struct", *, keyed=True):
    made = Program("greenhouse")
    temperature = made.event("temperature", resolution="0.01")
    window = {"fold": FOLDS[fold](), "size_s": 60, "slide_s": slide_s}
    key = (lambda event: event.tags.get("room", "")) if keyed else None
    if not keyed:
        window["where"] = lambda event, at: event.value > LEAST
    made.window("by_room", source=temperature, key=key, **window)
    return made.plan()


class Changed:
    """A device whose program is changed now and then."""

    def __init__(self, directory, plan):
        self.device, self.random = Device(directory, plan, settings=SETTINGS), random.Random(4)

    def read(self, count, *, stamped=False, late_s=0):
        for number in range(count):
            at_us = NOW_US + self.random.randrange(40) * S if late_s else self.device.now_us
            tags = {"room": self.random.choice(["attic", "hall"])}
            value = self.random.randrange(900) / 100 + number / 1_000
            self.device.read([value], [None if stamped else at_us], tags)
            self.device.land(1)

    def run(self, plan):
        device = self.device
        device.kill()
        device.program, device.sent = plan, []
        device.start()

    def panes(self):
        """Return what the entries of the program's window hold together, and what they should."""
        window, found = self.device.program.windows["by_room"], {}
        for pane, row in self.device.rows():
            if pane.stream == window.stream:
                at = (pane.key, pane.pane_us)
                found[at] = window.fold.combine(found.get(at, window.fold.zero), row.partial)
        truth = {}
        for reading in self.device.store.readings():
            if not window.keyed and reading["value"] <= LEAST:
                continue
            key = reading["tags"]["room"] if window.keyed else ""
            at = (key, reading["time_us"] // window.span_us * window.span_us)
            lifted = window.fold.lift(reading["q"], reading["time_us"])
            truth[at] = window.fold.combine(truth.get(at, window.fold.zero), lifted)
        return found, truth

    def begun(self):
        stated = dict(self.device.frames(BeatFrame)[-1].begun)
        stated.pop(EVERY_WINDOW, None)  # of a lost store: see test_lost_store
        return stated


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("fold", ["struct", "mean", "quantile", "distinct"])
def test_a_window_that_is_changed_and_changed_back_has_every_reading(tmp_path, fold, keyed):
    first, other = (program(slide_s, fold, keyed=keyed) for slide_s in (10, 20))
    site = Changed(tmp_path, first)
    site.read(44)
    for plan in (other, first, other):
        site.run(plan)
        site.read(25)
        site.read(5, late_s=100)
        found, truth = site.panes()
        assert found == truth
        assert not site.begun()


def test_the_low_watermark_waits_until_all_is_built(tmp_path, monkeypatch):
    monkeypatch.setattr(renewed, "BUILT_AT_ONCE_US", 20 * S)
    monkeypatch.setattr(renewed, "READINGS_AT_ONCE", 1)
    site = Changed(tmp_path, program(10))
    site.read(60)
    before_us = site.device.low_us
    site.run(program(20))
    lows_us = []
    while site.device.core.renewed.waits:
        site.device.land(1)
        lows_us.append(site.device.low_us)
    assert min(lows_us) < before_us - 20 * S, "also after some"
    site.read(20)
    assert site.device.low_us > before_us


def test_readings_that_were_stamped_are_missing_and_each_beat_says_since_when(tmp_path):
    site = Changed(tmp_path, program(10))
    site.read(44, stamped=True)
    high_us = site.device.core.intake.progress.high_us
    site.run(program(20))
    site.read(30, stamped=True)
    window = site.device.program.windows["by_room"]
    assert site.begun() == {window.stream: high_us + 1}
    site.run(program(20))
    site.read(5, stamped=True)
    assert site.begun() == {window.stream: high_us + 1}, "also after a restart"


@pytest.fixture
def replaced(tmp_path):
    """A device whose card was replaced after 44 s; and up to when it had read before that."""
    site = Changed(tmp_path / "store", program(10))
    device = site.device
    site.read(44)
    lost = ProcessReport(device.core.replica, device.core.fence.source_highs())
    device.kill()
    rmtree(tmp_path / "store")
    device.start()
    device.core.intake.peer_reports.learn(lost, device.now_us)
    (high,) = lost.highs
    site.read(95)
    return site, high.high_us


def test_after_a_lost_store_all_is_made_again_that_it_accepted_since(replaced, monkeypatch):
    site, doubt_us = replaced
    monkeypatch.setattr(renewed, "BUILT_AT_ONCE_US", 40 * S)
    monkeypatch.setattr(renewed, "READINGS_AT_ONCE", 1)
    for slide_s in (20, 10, 20):  # the second has its panes, and says from when on again
        site.run(program(slide_s))
        site.read(20)
        window = site.device.program.windows["by_room"]
        begun_us = (doubt_us // window.span_us + 1) * window.span_us
        assert site.begun() == {window.stream: begun_us}
        for found, truth in [site.panes()]:
            assert {at: found[at] for at in found if at[1] >= begun_us} == {
                at: truth[at] for at in truth if at[1] >= begun_us
            }
    site.read(10)
    text = plainly(status_of(site.device.store))
    assert "  LACKS          window by_room has all readings since 2023-11-14 22:" in text
    closed = [
        each.start_us
        for each in own_windows(site.device.store, site.device.program, window, 30)
        if each.closed
    ]
    assert closed
    assert min(closed) == begun_us, "those that lack readings of the lost life are not final"


def test_what_a_lost_life_had_read_behind_the_change_is_said_to_be_missing(tmp_path):
    """An older image: the life that was lost had read on, maybe by the former program."""
    site = Changed(tmp_path, program(10))
    site.read(44)
    lost = ProcessReport(
        Replica(7, 7, site.device.name),
        tuple(
            high._replace(high_us=high.high_us + 60 * S, accepted=high.accepted + 60)
            for high in site.device.core.fence.source_highs()
        ),
    )
    site.run(program(20))
    site.device.core.intake.peer_reports.learn(lost, site.device.now_us)
    site.read(90)
    window, (high,) = site.device.program.windows["by_room"], lost.highs
    assert site.begun() == {window.stream: (high.high_us // window.span_us + 1) * window.span_us}


def test_what_no_fold_can_take_apart_is_said(tmp_path):
    site = Changed(tmp_path, program(10, "top"))
    site.read(44)
    for slide_s in (20, 10):
        site.run(program(slide_s, "top"))
        site.read(5)
    assert site.begun()


def test_a_program_that_stays_says_nothing(tmp_path):
    site = Changed(tmp_path, program(10))
    site.read(44)
    site.run(program(10))
    site.read(5)
    assert not site.begun()
    assert site.device.core.renewed is None
