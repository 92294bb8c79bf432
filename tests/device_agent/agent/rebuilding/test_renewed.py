"""Windows that a program did not have before: what the device still has is in their panes."""

import random

import pytest

from device_agent.agent.rebuilding import renewed
from device_agent.agent.settings import Settings
from lasp_edge import Program, folds
from lasp_edge.protocol.frames import BeatFrame
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
        return dict(self.device.frames(BeatFrame)[-1].begun)


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
