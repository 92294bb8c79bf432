"""What a command says of panes and windows, beside what the regimes say pane by pane."""

from itertools import pairwise
from random import Random

import pytest

from crdts import BoundedLWWSet, ControlLog
from device_agent.console.parameters.change import ParameterChange
from device_agent.console.parameters.effect import ControlEffect, is_of_devices, misfits
from lasp_edge import Program, folds
from lasp_edge.language.parameters import steps_of, value_at
from lasp_edge.language.regimes import WindowRegimes
from tests.lasp_edge.language.support_controlled import S, greenhouse, log_of

PLAN = greenhouse().plan()
NOW_US = 1_000 * S
VALUES = {"offset": ("1", "2"), "span_s": ("40", "60"), "step_s": ("20", "10", "30")}


def panes_of(regimes, floor_us):
    """Yield each pane from the floor to now."""
    for piece in regimes.pieces:
        span_us = piece.span_us
        start_us = max(piece.first_us, floor_us // span_us * span_us)
        for pane_us in range(start_us, min(piece.end_us, NOW_US), span_us):
            yield piece.stream, pane_us


def windows_of(window, log, device):
    """Return start -> what it is like, of all windows that have ended; and what readings see."""
    regimes = WindowRegimes(window, PLAN.functions, log, device)
    forms = {
        start_us: (form.size_us, form.slide_us, form.fingerprint)
        for start_us, form in regimes.starts(-100 * S, NOW_US)
        if start_us + form.size_us <= NOW_US
    }
    scopes = [device] if device in {scope for _, scope in log.lanes()} else []
    steps = [steps_of(log, each, *scopes) for each in window.controls.uses]
    seen = [tuple(value_at(each, t) for each in steps) for t in range(0, NOW_US, S)]
    return forms, seen if window.controls.value else []


def one_by_one(before, after, floors_us):
    """Return panes and windows that change, pane by pane and second by second."""
    panes, windows = {}, {}
    for name, window in PLAN.windows.items():
        for device, floor_us in floors_us.items():
            old, new = (
                set(panes_of(WindowRegimes(window, PLAN.functions, log, device), floor_us))
                for log in (before, after)
            )
            if new - old:
                panes[device] = panes.get(device, 0) + len(new - old)
            (was, saw), (becomes, sees) = (
                windows_of(window, log, device) for log in (before, after)
            )
            other = [t for t, pair in enumerate(zip(saw, sees, strict=True)) if pair[0] != pair[1]]
            for forms in (was, becomes):
                for start_us, form in forms.items():
                    inside = range(max(start_us, floor_us) // S, (start_us + form[0]) // S)
                    differs = was.get(start_us) != becomes.get(start_us) and len(inside) > 0
                    if differs or any(t in inside for t in other):
                        windows.setdefault(name, set()).add((start_us, form[1]))
    return panes, {name: len(found) for name, found in windows.items()}


@pytest.mark.parametrize("seed", range(10))
def test_the_numbers_are_those_that_are_found_pane_by_pane(seed):
    drawn = Random(seed)
    log = ControlLog()
    logs = [log]
    for _ in range(4):
        name = drawn.choice(sorted(VALUES))
        scope = drawn.choice(("", "attic")) if name == "offset" else ""
        from_us = drawn.randrange(0, 1_100) * S
        until_us = drawn.choice((None, from_us + drawn.randrange(1, 300) * S))
        value = drawn.choice(VALUES[name])
        change = ParameterChange(PLAN.parameters[name], scope, value, from_us, until_us, "ann")
        log = log | change.delta(log)
        logs.append(log)
    floors_us = {"attic": drawn.randrange(500) * S, "cellar": drawn.randrange(900) * S}
    for before, after in pairwise(logs):
        effect = ControlEffect.of(PLAN, before, after, floors_us, NOW_US)
        assert tuple(effect) == one_by_one(before, after, floors_us)


def test_of_what_is_said_for_later_nothing_is_made_anew():
    after = log_of(("offset", "", NOW_US, "3"))
    assert ControlEffect.of(PLAN, ControlLog(), after, {"attic": 0}, NOW_US) == ({}, {})


def test_a_century_of_short_windows_costs_nothing():
    after = log_of(("step_s", "", -(2**50), "1"))
    effect = ControlEffect.of(PLAN, ControlLog(), after, {"attic": -(2**52)}, NOW_US)
    assert effect.windows["sums"] > 10**9


def test_a_value_that_gives_no_window_a_form_is_told_with_its_reason():
    bad = log_of(("step_s", "", 60 * S, "50"))
    (why,) = misfits(PLAN, ControlLog(), bad)
    assert why.startswith("window 'sums': a slide from")
    assert list(misfits(PLAN, bad, bad | bad.set("offset", "", 0, "3", "ann"))) == []


def test_a_set_keeps_one_sample_at_least():
    program = Program("p")
    event = program.event("temperature", resolution="0.1")
    last = program.parameter("last", "5")
    samples = program.declare_dynamic(BoundedLWWSet(bound=last), "samples")
    program.collect(event, into=samples)
    plan, before = program.plan(), ControlLog()
    none = before.set("last", "", 0, "0", "ann")
    assert list(misfits(plan, before, none)) == ["'samples' keeps 1 sample at least, and last=0"]
    assert list(misfits(plan, none, none)) == []
    assert list(misfits(plan, before, before.set("last", "", 0, "7", "ann"))) == []


def test_levels_of_an_alert_are_each_devices_own_unless_a_gateway_raises_it():
    program = Program("cellars")
    warm = program.event("warm", resolution="0.1")
    samples = program.declare_dynamic(BoundedLWWSet(bound=5), "samples")
    program.collect(warm, into=samples)
    here = program.fold(samples, folds.max(), "here")
    minute = program.window("minute", source=warm, fold=folds.max(), size_s=60)
    on, off, window = (program.parameter(name, "28") for name in ("on", "off", "window"))
    program.alert("too warm", here, above=on, below=off)
    program.alert("hot minute", minute, above=window)
    plan = program.plan()
    assert [is_of_devices(plan, each) for each in (on, off, window)] == [True, True, False]
    before, after = ControlLog(), log_of(("off", "cellar", 60 * S, "29"))
    (why,) = misfits(plan, before, after)
    assert why.startswith("'too warm': it fires above 28 and is armed again at or below 29")
    assert not list(misfits(plan, after, after))
    assert not list(misfits(plan, before, log_of(("on", "", 0, "30"), ("off", "", 60 * S, "29"))))
