"""Panes under parameters: what windows hold is the definition's, and no meaning comes back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crdts import ControlLog
from lasp_edge import Program, folds
from lasp_edge.language.fleet_regimes import FleetRegimes
from lasp_edge.language.regimes import WindowRegimes, difference
from lasp_edge.protocol.limits import EARLIEST_PANE_US
from simulations.oracle import Reading, windows
from tests.lasp_edge.language.support_controlled import S, by_panes, greenhouse, log_of

PLAN = greenhouse().plan()
FUNCTIONS = PLAN.functions
SUMS = PLAN.windows["sums"]
VALUES = {
    "above": ("-50", "0", "5.5", "nonsense"),
    "offset": ("0", "-1.5", "10"),
    "span_s": ("40", "60", "30", "10", "7"),
    "step_s": ("20", "10", "30", "5"),
    "mode": ("day", "night", "dusk"),
    "error": ("0.01", "0.02", "2"),
}
DEVICES = ("attic", "cellar")

operator_entries = st.sampled_from(sorted(VALUES)).flatmap(
    lambda name: st.tuples(
        st.just(name),
        st.sampled_from(["", "", "cellar"]),
        st.integers(900, 1_100).map(lambda second: second * S + second % 3),
        st.sampled_from([None, "", *VALUES[name]]),
    )
)
readings = st.builds(
    lambda device, second, value, room: Reading(
        device, "temperature", value, second, {"room": room}
    ),
    st.sampled_from(DEVICES),
    st.integers(900 * S, 1_150 * S),
    st.integers(-100, 100).map(lambda steps: steps / 10),
    st.sampled_from(["hall", "shed"]),
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(operator_entries, max_size=6),
    st.lists(readings, max_size=12, unique_by=lambda each: (each.device, each.time_us)),
    st.sampled_from(sorted(PLAN.windows)),
)
def test_panes_make_the_windows_of_the_definition(entries, came, name):
    log = log_of(*entries)
    truth = {at: tuple(each) for at, each in windows(PLAN, name, came, log).items()}
    assert by_panes(PLAN, name, came, log) == truth


@settings(max_examples=60, deadline=None)
@given(
    st.lists(operator_entries, min_size=1, max_size=8),
    st.lists(st.integers(880, 1_180), min_size=1, max_size=5),
    st.sampled_from(sorted(PLAN.windows)),
)
def test_a_meaning_that_was_left_never_comes_back(entries, seconds, name):
    log, seen, current = ControlLog(), {}, {}
    for number, entry in enumerate([None, *entries]):
        if entry is not None:
            log |= log.set(*entry, "ann")
        for second in seconds:
            time_us = second * S
            regime = WindowRegimes(PLAN.windows[name], FUNCTIONS, log, "cellar").regime_at(time_us)
            now = {(p.stream, time_us // p.span_us) for p in regime.pieces}
            left = seen.setdefault(time_us, set()) - current.get(time_us, set())
            assert not now & left, f"entry {number} brings an id back that was left"
            seen[time_us] |= now
            current[time_us] = now


def pieces_at(log, time_us, device="attic", window=SUMS):
    regime = WindowRegimes(window, FUNCTIONS, log, device).regime_at(time_us)
    return {piece.stream for piece in regime.pieces}


def test_values_that_come_again_are_another_stream():
    there_and_back = log_of(("offset", "", 960 * S, "3"), ("offset", "", 960 * S, None))
    assert pieces_at(ControlLog(), 1_000 * S) != pieces_at(there_and_back, 1_000 * S)
    assert pieces_at(ControlLog(), 959 * S) == pieces_at(there_and_back, 959 * S)


def test_a_size_that_comes_again_is_another_stream():
    there_and_back = log_of(("span_s", "", 960 * S, "30"), ("span_s", "", 960 * S, None))
    assert pieces_at(ControlLog(), 1_000 * S) != pieces_at(there_and_back, 1_000 * S)
    assert pieces_at(ControlLog(), 939 * S) == pieces_at(there_and_back, 939 * S)


def test_an_entry_leaves_alone_what_a_later_place_decides():
    before = log_of(("offset", "", 1_000 * S, "3"))
    after = before | before.set("offset", "", 960 * S, "2", "ann")
    assert pieces_at(before, 1_000 * S) == pieces_at(after, 1_000 * S)
    assert pieces_at(before, 980 * S) != pieces_at(after, 980 * S)


def test_only_the_device_that_is_meant_has_other_panes():
    log = log_of(("offset", "cellar", 1_000 * S, "3"))
    assert pieces_at(log, 1_000 * S, "attic") == pieces_at(ControlLog(), 1_000 * S)
    assert pieces_at(log, 1_000 * S, "cellar") != pieces_at(ControlLog(), 1_000 * S)


def test_a_change_inside_a_pane_cuts_it_at_its_instant():
    log = log_of(("offset", "", 1_007 * S, "3"))
    regimes = WindowRegimes(SUMS, FUNCTIONS, log)
    assert [piece.first_us // S for piece in regimes.pieces][1:] == [1_000]
    assert len(regimes.regime_at(1_007 * S).pieces) == 1
    found = [regimes.regime_at(t * S + us).at["offset"] for t, us in ((1_006, 999_999), (1_007, 0))]
    assert found == [0, 3]


def test_windows_that_began_before_a_change_end_by_their_old_size():
    log = log_of(("span_s", "", 1_000 * S, "60"))
    regimes = WindowRegimes(SUMS, FUNCTIONS, log)
    starts = [(at // S, form.size_us // S) for at, form in regimes.starts(960 * S, 1_020 * S)]
    assert starts == [(960, 40), (980, 40), (1_000, 60), (1_020, 60)]


@pytest.mark.parametrize("value", ["10", "1000000"])
def test_a_size_that_does_not_fit_the_slide_counts_for_nothing(value):
    log = log_of(("span_s", "", 1_000 * S, value))
    assert len(WindowRegimes(SUMS, FUNCTIONS, log).forms) == 1


def test_a_parameter_that_the_fold_does_not_ask_for_changes_no_pane():
    window = PLAN.windows["p90"]
    day = log_of(("error", "", 960 * S, "0.02"))
    assert pieces_at(day, 1_000 * S, window=window) == pieces_at(
        ControlLog(), 1_000 * S, window=window
    )
    night = day | day.set("mode", "", 930 * S, "night", "ann")
    later = night | night.set("error", "", 960 * S, "0.002", "ann")
    assert pieces_at(night, 1_000 * S, window=window) != pieces_at(later, 1_000 * S, window=window)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(operator_entries, max_size=5),
    st.lists(operator_entries, max_size=2),
    st.sampled_from(sorted(PLAN.windows)),
)
def test_what_differs_between_two_logs_is_found(entries, more, name):
    log = log_of(*entries)
    later = log_of(*entries, *more)
    old, new = (
        WindowRegimes(PLAN.windows[name], FUNCTIONS, each, "cellar") for each in (log, later)
    )
    for second in range(880, 1_180, 7):
        time_us = second * S
        before, after = (
            {piece.stream for piece in each.regime_at(time_us).pieces} for each in (old, new)
        )
        for pieces, expected in (
            (difference(new.pieces, old.pieces), after - before),
            (difference(old.pieces, new.pieces), before - after),
        ):
            held = {each.stream for each in pieces if each.first_us <= time_us < each.end_us}
            assert held == expected


def test_a_thousand_places_are_found_by_bisection():
    log = ControlLog()
    for number in range(200):
        log |= log.set("offset", "", (1_000 + 50 * number) * S, str(number % 7), "ann")
    regimes = WindowRegimes(SUMS, FUNCTIONS, log)
    assert len(regimes.pieces) <= 2 * 200 + 1
    assert regimes.regime_at((1_000 + 50 * 199) * S).at["offset"] == 199 % 7


def _fixed():
    program = Program("house")
    event = program.event("temperature", resolution="0.1")
    program.window("mean", source=event, fold=folds.mean(), size_s=50, slide_s=20)
    program.window(
        "warm", source=event, fold=folds.count(), size_s=60, where=lambda e, _: e.value > 0
    )
    return program.plan()


@pytest.mark.parametrize("name", ["mean", "warm"])
@pytest.mark.parametrize("log", [ControlLog(), log_of(("offset", "", 1_000 * S, "10"))])
def test_a_window_that_no_parameter_changes_is_one_form_and_one_piece_of_its_own_stream(name, log):
    plan = _fixed()
    window = plan.windows[name]
    regimes = WindowRegimes(window, plan.functions, log, "cellar")
    assert [each[2:5] for each in regimes.forms] == [(window.size_us, window.slide_us, window.fold)]
    (piece,) = regimes.pieces
    assert (piece.stream, piece.span_us) == (window.stream, window.span_us)
    times_us = (EARLIEST_PANE_US + window.size_us, -1, 0, 1_700_000_000 * S + 7)
    for time_us in times_us:
        assert regimes.regime_at(time_us).pieces == (piece,)
        pane_us = time_us // window.span_us * window.span_us
        starts = [start_us for start_us, _ in regimes.starts_over(piece, pane_us)]
        last_us = pane_us // window.slide_us * window.slide_us
        before = range(last_us, pane_us - window.size_us, -window.slide_us)
        assert starts == list(before)[::-1]


def test_a_fleet_knows_all_windows_by_their_streams():
    plan = _fixed()
    regimes = FleetRegimes(plan)
    for name, window in plan.windows.items():
        assert regimes.window_of(window.stream) == window
        assert regimes.scopes(name) == [""]
    assert not regimes.changing
    assert not regimes.control
