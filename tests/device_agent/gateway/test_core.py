"""A gateway's windows: the truth, each final once, over restarts, and whatever memory holds."""

import pytest

from crdts import Replica
from device_agent.gateway import core as core_module
from device_agent.gateway import panes as panes_module
from device_agent.gateway.core import WaitingTerms
from lasp_edge import Program, folds
from lasp_edge.folds.columns import Column, Op
from lasp_edge.folds.fold import Fold
from lasp_edge.protocol.acceptance import Accepted, PaneRows, Record
from lasp_edge.protocol.acks import Answer
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.fencing import SourceHigh
from lasp_edge.protocol.frames import BeatFrame
from lasp_edge.protocol.topics import topic_of
from simulations.oracle import Reading
from tests.cloud_tier.lakes import batches
from tests.cloud_tier.support_devices import (
    BEGIN_US,
    SECOND_US,
    Device,
    history,
    readings_of,
    rooms,
    row,
    tick,
    true_windows,
)
from tests.device_agent.gateway.support_gateway import GatewayUnderTest, accepted_of

PLAN = rooms()
START_US = BEGIN_US + 20 * SECOND_US  # a multiple of the slides of 10 and 20 s
MINUTE_US = 60 * SECOND_US
DAY_US = 86_400 * SECOND_US
ALL = WaitingTerms(None, 600 * SECOND_US)
HIGH = SourceHigh(1, START_US, 10)


@pytest.fixture
def gateway():
    return GatewayUnderTest(PLAN)


def read(device, value, at_s, room="attic"):
    """Return the rows that one reading makes."""
    reading = Reading(
        device.name, "temperature", value, START_US + at_s * SECOND_US, {"room": room}
    )
    return device.accept([reading])


@pytest.mark.parametrize("kept_in", ["tables", "file"])
@pytest.mark.parametrize("memory", ["enough", "none"])
def test_shuffled_repeated_and_rebatched_entries_give_the_true_windows(
    new_keeper, monkeypatch, kept_in, memory
):
    if memory == "none":
        monkeypatch.setattr(panes_module, "MOST_ENTRIES", 0)
        monkeypatch.setattr(panes_module, "MOST_TOTALS", 0)
    for seed in range(3):
        readings = readings_of(seed)
        ticks = [tick(n, BEGIN_US + (100 + n) * SECOND_US) for n in (1, 2)]
        rows = history(PLAN, readings, seed) + ticks
        gateway = GatewayUnderTest(PLAN, new_keeper(kept_in), ALL)
        for number, batch in enumerate(batches(rows, seed, count=7)):
            if number % 2:
                gateway.restart()
            gateway.step(batch)
        assert gateway.current() == true_windows(PLAN, readings), f"replay with seed={seed}"
        assert max(each.count("final") for each in gateway.statuses().values()) <= 1


def test_what_was_there_changes_nothing_after_a_restart(gateway):
    rows = history(PLAN, readings_of(7))
    gateway.step(rows)
    before = list(gateway.rows)
    gateway.restart()
    assert not gateway.step(rows).changes
    assert gateway.rows == before


def test_a_window_goes_from_tentative_to_final_to_revised(gateway):
    device = Device(PLAN, "pi-0")
    gateway.step(read(device, 20.0, 1))
    gateway.step([device.promise(START_US + MINUTE_US - 1, BEGIN_US), tick(1, BEGIN_US)])
    gateway.restart()
    gateway.step([device.promise(START_US + MINUTE_US, BEGIN_US), tick(2, BEGIN_US)])
    gateway.restart()
    gateway.step(read(device, 30.0, 2))
    rows = gateway.revisions("by_room", START_US, "attic")
    assert [row.status for row in rows] == ["tentative", "final", "revised"]
    assert [row.partial for row in rows] == [(1, 2000), (1, 2000), (2, 5000)]
    assert [row.frontier_us for row in rows] == [None, *[START_US + MINUTE_US] * 2]


def test_a_promise_to_another_sink_moves_nothing_and_silence_excludes(tmp_path):
    terms = WaitingTerms(["pi-0", "pi-1"], MINUTE_US)
    gateway = GatewayUnderTest(PLAN, terms=terms)
    device = Device(PLAN, "pi-0")
    gateway.step([*read(device, 20.0, 1), tick(1, BEGIN_US + MINUTE_US)])
    gateway.step([device.promise(START_US + MINUTE_US, BEGIN_US + MINUTE_US)])
    assert gateway.core.coverage.frontier is None  # pi-1 was never heard
    gateway.step([tick(2, BEGIN_US + MINUTE_US + 1)])
    assert gateway.core.coverage == (START_US + MINUTE_US, ("pi-0", "pi-1"), ("pi-1",))
    (row,) = gateway.revisions("by_room", START_US, "attic")[-1:]
    assert (row.status, row.devices_in, row.devices_expected) == ("final", 1, 2)
    assert row.excluded == ("pi-1",)


def test_who_has_sent_all_of_a_window_is_not_left_out_of_it_by_falling_silent_later():
    gateway = GatewayUnderTest(PLAN, terms=WaitingTerms(["pi-0", "pi-1"], MINUTE_US))
    device, silent = Device(PLAN, "pi-0"), Device(PLAN, "pi-1")
    now_us, end_us = START_US + 5 * MINUTE_US, TOTALS_US + 30 * SECOND_US
    gateway.step([*read(device, 20.0, 11), *read(silent, 21.0, 12), *read(device, 22.0, 41)])
    gateway.step([silent.promise(end_us, START_US), tick(1, START_US)])
    gateway.step([device.promise(end_us + MINUTE_US, now_us), tick(2, now_us)])
    assert gateway.core.coverage.excluded == ("pi-1",)
    totals = [row for row in gateway.rows if row.at.window == "totals" and row.status == "final"]
    found = {row.at.start_us - TOTALS_US: row.excluded for row in totals}
    assert found == {0: (), 30 * SECOND_US: ("pi-1",)}


@pytest.mark.parametrize("kept_in", ["tables", "file"])
def test_a_final_row_names_a_device_until_that_has_sent_all_of_the_window(new_keeper, kept_in):
    terms = WaitingTerms(["pi-0", "pi-1", "pi-2"], MINUTE_US)
    gateway = GatewayUnderTest(PLAN, new_keeper(kept_in), terms)
    device, away = Device(PLAN, "pi-0"), Device(PLAN, "pi-1")
    now_us, end_us = START_US + 5 * MINUTE_US, TOTALS_US + 30 * SECOND_US
    gateway.step([*read(device, 20.0, 11), tick(1, START_US)])
    gateway.step([device.promise(now_us, now_us), tick(2, now_us)])
    gateway.restart()
    away.start()  # as another life, and for this window it has nothing
    gateway.step([*read(away, 21.0, 41), away.promise(end_us - 1, now_us), tick(3, now_us)])
    gateway.step([away.promise(end_us, now_us)])
    rows = gateway.revisions("totals", TOTALS_US)
    assert [(row.status, row.excluded) for row in rows[-2:]] == [
        ("final", ("pi-1", "pi-2")),
        ("revised", ("pi-2",)),  # which never came back
    ]
    assert len({row.partial for row in rows}) == 1
    before = len(gateway.rows)
    gateway.step([away.promise(end_us + 1, now_us)])
    assert gateway.rows[before:] == []


def test_a_row_that_is_revised_before_there_is_a_clock_still_names_who_was_never_heard():
    gateway = GatewayUnderTest(PLAN, terms=WaitingTerms(["pi-0", "pi-1"], MINUTE_US))
    device, now_us = Device(PLAN, "pi-0"), START_US + 5 * MINUTE_US
    gateway.step([*read(device, 20.0, 11), tick(1, START_US)])
    gateway.step([device.promise(now_us, now_us), tick(2, now_us)])
    gateway.restart()
    gateway.step(read(device, 22.0, 12))
    gateway.step([tick(3, now_us)])
    rows = gateway.revisions("totals", TOTALS_US)
    assert [(each.status, each.excluded) for each in rows[-2:]] == [
        ("final", ("pi-1",)),
        ("revised", ("pi-1",)),
    ]


def test_rows_of_results_are_acknowledged_and_not_kept():
    """Devices send them among the panes of windows; a gateway has no table for them."""
    program = Program("rooms")
    temperature = program.event("temperature", resolution="0.01")
    program.window("totals", source=temperature, fold=folds.sum(), size_s=30)
    program.result(program.filter(temperature, lambda event: event.value > 0, "warm"))
    plan = program.plan()
    gateway = GatewayUnderTest(plan)
    block = PaneEntries(
        plan.stream_results["warm"].stream, 1, 1, 7, ((b"x",),), ("",), (START_US,), (1,)
    )
    accepted = Accepted(rows=[PaneRows("pi-0", block, BEGIN_US)])
    accepted.answers["pi-0"] = Answer()
    accepted.answers["pi-0"].take(1, 7, (1,))
    turn = gateway.core.join(accepted, None)
    assert (turn.changes.entries, turn.changes.rows) == ([], [])
    acknowledged = []
    gateway.core.replies.owe(accepted, BEGIN_US)
    gateway.core.replies.answer(lambda frame: acknowledged.append(frame) is None, BEGIN_US)
    assert [seq for frame in acknowledged for seqs in frame.taken for seq in seqs.runs] == [(1, 1)]


@pytest.mark.parametrize("window", ["totals", "by_room"], ids=["above", "at it"])
def test_a_pane_below_the_floor_counts_in_the_windows_that_end_above_it_or_at_it(window):
    terms = WaitingTerms(["pi-0"], retain_us=MINUTE_US)
    gateway, device = GatewayUnderTest(PLAN, terms=terms), Device(PLAN, "pi-0")
    size_us, slide_us = PLAN.windows[window].size_us, PLAN.windows[window].slide_us
    gateway.step([*read(device, 20.0, 1), tick(1, BEGIN_US)])
    gateway.step([device.promise(START_US + DAY_US, BEGIN_US)])
    floor_us, before = START_US + DAY_US - MINUTE_US, len(gateway.rows)
    late_us = floor_us - SECOND_US
    gateway.step(read(device, 30.0, (late_us - START_US) // SECOND_US))
    firsts_us = range(late_us // slide_us * slide_us - size_us + slide_us, late_us + 1, slide_us)
    found = {row.at.start_us for row in gateway.rows[before:] if row.at.window == window}
    assert found == {each for each in firsts_us if each + size_us >= floor_us}
    assert (floor_us - size_us in found) == (window == "by_room"), "it ends there"


def test_windows_below_the_floor_stay_as_they_are_and_what_is_too_late_is_counted(monkeypatch):
    monkeypatch.setattr(core_module, "PRUNE_EVERY_US", MINUTE_US)
    terms = WaitingTerms(["pi-0"], retain_us=MINUTE_US, history_us=2 * MINUTE_US)
    gateway = GatewayUnderTest(PLAN, terms=terms)
    device = Device(PLAN, "pi-0")
    gateway.step([*read(device, 20.0, 1), tick(1, BEGIN_US)])
    gateway.step([device.promise(START_US + DAY_US, BEGIN_US)])
    before = len(gateway.rows)
    turn = gateway.step(read(device, 30.0, 2))
    assert len(gateway.rows) == before
    assert (turn.too_late, turn.changes.entries) == (3, [])
    turn = gateway.step([device.promise(START_US + 2 * DAY_US, BEGIN_US)])
    assert min(turn.changes.panes_below.values()) > START_US
    assert turn.changes.rows_below == START_US + 2 * DAY_US - 3 * MINUTE_US


class Moody(Fold):
    """A fold of a user's that raises for one value."""

    name, parts, combines_itself = "moody", ("n",), True
    columns = (Column("n", Op.SUM),)

    def lift(self, value, time_us=0):
        return (value,)

    def combine(self, a, b):
        if 13 in (*a, *b):
            raise SystemExit
        return (a[0] + b[0],)

    def lower(self, partial, resolution):
        return {"n": partial[0]}


def test_who_is_retired_does_not_count_from_a_gateways_start_on():
    gateway = GatewayUnderTest(PLAN, terms=ALL)
    devices = [Device(PLAN, name) for name in ("pi-0", "pi-1")]
    gateway.step([device.promise(START_US, BEGIN_US) for device in devices])
    retired = row("member", "pi-1", 1, 7, 9, control=1, retired=True)
    gateway.acceptance.membership |= accepted_of(PLAN, [retired])[0].commands.membership
    gateway.step([retired, tick(1, BEGIN_US)])
    assert gateway.core.coverage.expected == ("pi-0",)
    gateway.restart()
    assert gateway.core.coverage.expected == ("pi-0",)


@pytest.mark.parametrize("kept", [True, False], ids=["kept by the broker", "sent"])
def test_whatever_a_gateway_has_heard_of_a_device_it_knows_after_a_restart(gateway, kept):
    """It vouches for how far a source had come, so it must not forget that."""
    beat = BeatFrame(Replica(1, 7, "pi-0"), 1, (), done=False, reports=(), highs=(HIGH,))
    topic = topic_of(beat, gateway.acceptance.topics)
    record = Record(BEGIN_US, topic, retained=kept, payload=beat.encode())
    turn = gateway.core.take([record], None)
    gateway.keeper.commit(turn.changes)
    gateway.restart()
    assert gateway.acceptance.witness.of("pi-0").highs == (HIGH,)


def test_a_fold_that_raises_ends_nothing_and_is_counted():
    program = Program("rooms")
    temperature = program.event("temperature", resolution="0.01")
    samples = folds.mean()
    program.window("moody", source=temperature, fold=Moody(), size_s=60)
    program.window("mean", source=temperature, fold=samples, size_s=60)
    plan = program.plan()
    gateway = GatewayUnderTest(plan)
    moody = plan.windows["moody"]
    rows = history_of(plan, moody.stream, 13) + history_of(plan, plan.windows["mean"].stream, 7)
    gateway.step(rows)
    gateway.step(rows[:0])
    assert {row.at.window for row in gateway.rows} == {"mean"}
    assert next(iter(gateway.core.windows.failed)).startswith("moody: SystemExit")


def history_of(plan, stream, value):
    """Return the rows of two devices' panes of one window."""
    window = next(each for each in plan.windows.values() if each.stream == stream)
    pane_us = START_US // window.span_us * window.span_us
    parts = dict.fromkeys(window.fold.columns_named, value)
    blank = {"kind": "pane", "key": "", "stream": stream, "pane_us": pane_us, "received_us": 1}
    return [
        {**blank, "device": name, "incarnation": 1, "nonce": 5, "seq": 1, **parts}
        for name in ("pi-0", "pi-1")
    ]


def test_long_windows_that_overlap_are_made_together():
    program = Program("rooms")
    temperature = program.event("temperature", resolution="0.01")
    program.window("hour", source=temperature, fold=folds.max(), size_s=3_600, slide_s=10)
    plan = program.plan()
    window = plan.windows["hour"]
    gateway = GatewayUnderTest(plan)
    reach = range(0, 2 * window.size_us, window.span_us)
    rows = [
        {
            "kind": "pane", "stream": window.stream, "key": "", "pane_us": START_US + at,
            "device": "pi-0", "incarnation": 1, "nonce": 5, "seq": 1 + at, "received_us": 1,
            "max_q": at % 977,
        }
        for at in reach
    ]  # fmt: skip
    gateway.step(rows)
    truth = {}
    for at in reach:
        for start_us in range(START_US + at - window.size_us + 10 * SECOND_US, START_US + at + 1,
                              10 * SECOND_US):  # fmt: skip
            truth[start_us] = max(truth.get(start_us, -1), at % 977)
    assert {row.at.start_us: row.partial[0] for row in gateway.rows} == truth


@pytest.mark.parametrize("wait_s", [0, 3_600])
@pytest.mark.parametrize("kept_in", ["tables", "file"])
def test_what_a_former_program_passed_over_becomes_final_when_the_newer_one_is_back(
    new_keeper, kept_in, wait_s
):
    former = Program("rooms")
    temperature = former.event("temperature", resolution="0.01", unit="°C")
    former.window("totals", source=temperature, fold=folds.sum(), size_s=30)
    terms = WaitingTerms(["pi-0"], DAY_US, tentative_after_us=wait_s * SECOND_US)
    device, end_us = Device(PLAN, "pi-0"), START_US + 5 * MINUTE_US
    came = [*read(device, 20.0, 1), *read(device, 21.0, 31)]
    promise = device.promise(end_us, end_us)
    straight = GatewayUnderTest(PLAN, terms=terms)
    straight.step([*came, promise, tick(1, end_us)])
    gateway = GatewayUnderTest(PLAN, new_keeper(kept_in), terms)
    gateway.step([*came, tick(1, START_US)])
    gateway.plan = former.plan()
    gateway.restart()
    gateway.step([promise, tick(2, end_us)])
    assert {row.at.window for row in gateway.rows if row.status == "final"} == {"totals"}
    gateway.plan = PLAN
    for number in range(3, 6):
        gateway.restart()
        gateway.step([tick(number, end_us + number)])
    assert gateway.current() == straight.current()
    ends = ["tentative"] * (not wait_s) + ["final"]
    assert gateway.statuses() == dict.fromkeys(straight.statuses(), ends)


WAIT_US = 15 * SECOND_US
TOTALS_US = START_US + 10 * SECOND_US  # a window of 30 s begins
WAITS = WaitingTerms(["pi-0", "pi-1"], DAY_US, tentative_after_us=WAIT_US)


@pytest.mark.parametrize("kept_in", ["tables", "file"])
def test_a_window_waits_over_a_restart_and_is_shown_once_with_who_is_missing(new_keeper, kept_in):
    gateway = GatewayUnderTest(PLAN, new_keeper(kept_in), WAITS)
    device, end_us = Device(PLAN, "pi-0"), TOTALS_US + 30 * SECOND_US
    gateway.step([*read(device, 20.0, 11), device.promise(end_us, end_us), tick(1, end_us)])
    assert (gateway.rows, gateway.core.due_at_us) == ([], end_us + WAIT_US)
    gateway.restart()
    assert gateway.core.due_at_us == end_us + WAIT_US
    gateway.step([tick(2, end_us + WAIT_US - 1)])
    gateway.restart()
    gateway.step([device.promise(end_us + WAIT_US, end_us + WAIT_US)])
    assert gateway.rows == []
    gateway.restart()
    gateway.step([tick(3, end_us + WAIT_US)])
    gateway.restart()
    gateway.step([tick(4, end_us + WAIT_US + 1)])
    (row,) = gateway.revisions("totals", TOTALS_US)
    assert (row.status, row.devices_in, row.excluded) == ("tentative", 1, ("pi-1",))
    gateway.step(read(device, 22.0, 12))  # late, and the window is tentative: a further row
    other = Device(PLAN, "pi-1")
    gateway.step([*read(other, 21.0, 13), other.promise(end_us, end_us + 2 * WAIT_US)])
    rows = gateway.revisions("totals", TOTALS_US)
    assert [row.status for row in rows] == ["tentative", "tentative", "final"]
    assert [row.partial for row in rows] == [(2000,), (4200,), (6300,)]
    assert rows[-1].excluded == ()


def test_a_gateway_without_a_roster_listens_first_and_calls_nobody_late():
    terms = WAITS._replace(roster=None, tentative_after_us=5 * SECOND_US)
    gateway = GatewayUnderTest(PLAN, terms=terms)
    device, other = Device(PLAN, "pi-0"), Device(PLAN, "pi-1")
    gateway.step([*read(device, 20.0, 1), device.promise(TOTALS_US, TOTALS_US)])
    gateway.step([other.promise(START_US, TOTALS_US), tick(1, BEGIN_US + MINUTE_US)])
    assert gateway.rows == []
    gateway.step([tick(2, BEGIN_US + MINUTE_US + SECOND_US)])
    (row,) = [row for row in gateway.rows if row.at.window == "totals"]
    assert (row.status, row.excluded, row.frontier_us) == ("tentative", ("pi-1",), START_US)


def test_who_no_longer_waits_shows_at_once_what_has_waited():
    gateway = GatewayUnderTest(PLAN, terms=WAITS)
    device = Device(PLAN, "pi-0")
    gateway.step([*read(device, 20.0, 11), tick(1, START_US)])
    gateway.terms = WAITS._replace(tentative_after_us=0)
    gateway.restart()
    gateway.step([tick(2, START_US + 1)])
    assert {row.status for row in gateway.revisions("totals", TOTALS_US)} == {"tentative"}
