"""A gateway's core while operators change parameters: frames in batches, as they come."""

from dataclasses import replace

import pytest

from crdts import ControlLog, Replica
from device_agent.agent.settings import Settings
from device_agent.gateway import core as core_module
from device_agent.gateway.core import WaitingTerms
from lasp_edge.protocol.acceptance import PaneRows, Record
from lasp_edge.protocol.frontier import Listening
from lasp_edge.protocol.repeating import CORRECT_US, REPEAT_US
from lasp_edge.protocol.topics import topic_of
from lasp_edge.units import SECOND_US as S
from simulations.oracle import Reading, windows
from tests.device_agent.agents import NOW_US, Device
from tests.device_agent.gateway.support_gateway import GatewayUnderTest
from tests.lasp_edge.language.support_controlled import greenhouse
from tests.lasp_edge.protocol.support_frames import beat, panes
from tests.support_commands import schedule_command

PLAN = greenhouse().plan()
SETTINGS = Settings(keep_readings=True, fence_wait_us=0, lateness_us=10 * S)
TERMS = WaitingTerms(["cellar"], 600 * S)
LOG = ControlLog().set("offset", "", NOW_US + 20 * S, "10", "ann")
ENTRY = schedule_command(Replica(1, 5, "operator"), 1, "offset", "", LOG)


class Site:
    """One device, and a gateway that hears it.

    Attributes:
        too_late: pane entries that came too late.
        pruned: the newest changes that forget something.
    """

    def __init__(self, directory, terms=TERMS):
        self.device = Device(directory, PLAN, settings=SETTINGS, name="cellar")
        self.gateway = GatewayUnderTest(PLAN, terms=terms)
        self.too_late, self.pruned = 0, None

    @property
    def regimes(self):
        return self.gateway.acceptance.control

    def live(self, steps, *, reads=False, sent=()):
        """Let time pass; the last batch ends with the frames that are sent."""
        for step in range(steps):
            if reads:
                self.device.read([20.0 + step], [self.device.now_us], {"room": "hall"})
            batch = [(p.topic, p.payload) for p in self.device.tick(5) if p.payload]
            if step == steps - 1:
                batch += [
                    (topic_of(each, self.device.core.agent.topics), each.encode()) for each in sent
                ]
            self.take(batch)

    def take(self, batch):
        now_us, core = self.device.now_us, self.gateway.core
        records = [Record(now_us, topic, False, payload) for topic, payload in batch]  # noqa: FBT003
        turn = core.take(records, Listening(now_us, NOW_US - 3_600 * S))
        self.gateway.keeper.commit(turn.changes)
        self.gateway.rows += turn.changes.rows
        self.too_late += turn.too_late
        if turn.changes.others_below is not None:
            self.pruned = turn.changes
        core.replies.owe(turn.accepted, now_us)
        core.replies.answer(self.answer, now_us)

    def answer(self, frame):
        self.device.hear(frame)
        return True

    def truth(self, log=LOG):
        readings = [
            Reading("cellar", row["event"], row["value"], row["time_us"], row["tags"], stamped=True)
            for row in self.device.store.readings()
        ]
        return {
            (name, *at): tuple(each)
            for name in PLAN.windows
            for at, each in windows(PLAN, name, readings, log).items()
        }


@pytest.fixture
def site(tmp_path):
    site = Site(tmp_path)
    site.live(24, reads=True)
    assert [row for row in site.gateway.rows if row.status == "final"]
    return site


@pytest.mark.parametrize("steps", [1, 2, 6])
def test_panes_in_the_batch_that_brings_their_entry_are_refused_and_come_again(site, steps):
    site.device.hear(ENTRY)
    site.live(steps, sent=[ENTRY])
    assert site.gateway.acceptance.control.log == LOG
    assert not [row for row in site.gateway.rows if row.status == "revised"]
    site.device.core.handle_end()
    site.live(60)
    assert site.device.core.done
    assert site.gateway.current() == site.truth()
    revised = [row.at for row in site.gateway.rows if row.status == "revised"]
    assert len(revised) == len(set(revised)) > 3, "each once, and never to nothing in between"


def test_a_row_that_is_due_while_all_promises_are_void_names_who_is_missing(tmp_path):
    waiting = WaitingTerms(["attic", "cellar"], 86_400 * S, tentative_after_us=20 * S)
    site = Site(tmp_path, waiting)
    site.live(24, reads=True)
    before = len(site.gateway.rows)
    tomorrow = ControlLog().set("offset", "", NOW_US + 86_400 * S, "10", "ann")
    site.live(1, sent=[schedule_command(Replica(1, 5, "operator"), 1, "offset", "", tomorrow)])
    site.live(4)
    due = site.gateway.rows[before:]
    assert due, "windows become due while the device has not heard the entry"
    assert {row.excluded for row in due} == {("attic",)}


def promise_of(site, number, low_us, control=0):
    """Return a beat of the attic, which reads nothing."""
    name, store = site.gateway.acceptance.sink
    frame = beat(number, low_us, replica=Replica(1, 3, "attic"), sink=name, store=store)
    return replace(frame, control=control)


def test_held_windows_that_are_due_are_revised_though_another_device_has_promised_less(tmp_path):
    """They go on to name a device that was never there, and that nobody waits for."""
    waiting = WaitingTerms(["attic", "barn", "cellar"], 600 * S, tentative_after_us=20 * S)
    site = Site(tmp_path, waiting)
    site.live(1, reads=True, sent=[promise_of(site, 1, NOW_US)])
    site.live(47, reads=True, sent=[promise_of(site, 2, NOW_US + 600 * S)])
    final = [row for row in site.gateway.rows if row.status == "final"]
    assert {row.excluded for row in final} == {("barn",)}
    site.device.hear(ENTRY)
    site.live(1, sent=[ENTRY, promise_of(site, 3, NOW_US, LOG.mark)])
    site.live(12)
    revised = [row for row in site.gateway.rows if row.status == "revised"]
    assert revised, "the attic is waited for no longer than X"
    assert {row.excluded for row in revised} == {("attic", "barn")}


def test_held_windows_wait_for_x_anew_under_the_next_entry(tmp_path):
    site = Site(tmp_path, WaitingTerms(["attic", "cellar"], 600 * S, tentative_after_us=20 * S))
    site.live(1, reads=True, sent=[promise_of(site, 1, NOW_US)])
    site.live(47, reads=True, sent=[promise_of(site, 2, NOW_US + 600 * S)])

    def revised(steps):
        before = len(site.gateway.rows)
        site.live(steps)
        return [row.at for row in site.gateway.rows[before:] if row.status == "revised"]

    log = LOG
    for number in (1, 2):
        entry = schedule_command(Replica(1, 5, "operator"), number, "offset", "", log)
        site.device.hear(entry)
        site.live(1, sent=[entry, promise_of(site, 2 + number, NOW_US, log.mark)])
        assert not revised(3), "no promise under this entry is older than X"
        assert revised(9), "the attic is waited for no longer than X"
        log = log.set("offset", "", NOW_US + 40 * S, "5", "ann")


def test_a_promise_that_came_before_an_entry_in_one_batch_is_of_the_log_before(site):
    frames = [promise_of(site, 1, NOW_US), ENTRY]
    topics, now_us = site.device.core.agent.topics, site.device.now_us
    records = [Record(now_us, topic_of(each, topics), False, each.encode()) for each in frames]  # noqa: FBT003
    assert site.gateway.acceptance.take(records[:1]).promises.entries
    assert not site.gateway.acceptance.take(records).promises.entries


RETAIN_US = 60 * S


def floor_of(window, frontier_us):
    """Return below which start rows of a window stay as they are."""
    return frontier_us - RETAIN_US - window.size_us


@pytest.fixture
def short(tmp_path, monkeypatch):
    """A gateway that takes late readings for a minute after a window's end, and a device."""
    monkeypatch.setattr(core_module, "PRUNE_EVERY_US", 10 * S)
    site = Site(tmp_path, WaitingTerms(["cellar"], 600 * S, retain_us=RETAIN_US))
    site.live(48, reads=True)
    return site


def test_rows_below_the_floor_stay_as_they_are_and_what_comes_for_them_is_counted(short):
    site = short
    core = site.gateway.core
    frontier_us = core.coverage.frontier
    early = ControlLog().set("offset", "", NOW_US - 60 * S, "10", "ann")
    entry = schedule_command(Replica(1, 5, "operator"), 1, "offset", "", early)
    site.device.hear(entry)
    site.live(1, sent=[entry])
    for name in ("sums", "by_room"):
        held = [span for span in core.windows.held.spans if span.window == name]
        assert min(span.first_us for span in held) <= floor_of(PLAN.windows[name], frontier_us) + S
    before, site.too_late = len(site.gateway.rows), 0
    site.live(40)
    revised = {}
    for row in site.gateway.rows[before:]:
        if row.status == "revised":
            revised.setdefault(row.at.window, []).append(row.at.start_us)
    for name, starts in revised.items():
        assert len(starts) == len(set(starts))
        assert min(starts) >= floor_of(PLAN.windows[name], frontier_us)
        assert min(starts) < floor_of(PLAN.windows[name], frontier_us) + PLAN.windows[name].slide_us
    assert set(revised) == {"sums", "by_room"}
    assert site.too_late > 4


def test_panes_of_left_meanings_are_forgotten_with_the_others(short):
    site, log = short, ControlLog()
    for value in ("10", "11"):
        log |= log.set("offset", "", NOW_US, value, "ann")
        entry = schedule_command(Replica(1, 5, "operator"), 1, "offset", "", log)
        site.device.hear(entry)
        site.live(1, sent=[entry])
        site.live(12)
    known = {p.stream for w in ("sums", "p90", "by_room") for p in site.regimes.of(w).pieces}
    left = {stream for stream, *_ in site.gateway.keeper.panes} - known
    assert len(left) >= 2, "windows of two meanings each"
    site.live(30, reads=True)
    changes, frontier_us = site.pruned, site.gateway.core.coverage.frontier
    assert set(changes.panes_below) == known
    assert NOW_US < changes.others_below <= frontier_us - RETAIN_US - 40 * S


def test_panes_stay_for_all_windows_that_still_take_late_readings(short):
    core = short.gateway.core
    frontier_us = core.coverage.frontier
    below, found = core.windows.panes_below(frontier_us), {}
    for name, window in PLAN.windows.items():
        for piece in short.regimes.of(name).pieces:
            found[piece.stream] = floor_of(window, frontier_us)
    assert below == found


def test_a_late_pane_of_a_meaning_that_was_left_is_kept_for_who_takes_it_up_again(short):
    site, core = short, short.gateway.core
    (piece,), frontier_us = site.regimes.of("by_room").pieces, core.coverage.frontier
    early = ControlLog().set("offset", "", NOW_US - 3_600 * S, "10", "ann")
    entry = schedule_command(Replica(1, 5, "operator"), 1, "offset", "", early)
    site.take([(topic_of(entry, site.device.core.agent.topics), entry.encode())])
    pane_us = ((frontier_us - RETAIN_US) // piece.span_us - 1) * piece.span_us
    given = {"columns": ((1,), (200,)), "keys": ("hall",), "seqs": (9,)}
    frame = panes(PLAN, 1, stream=piece.stream, panes_us=(pane_us,), **given)
    rows = PaneRows("cellar", frame.blocks[0], site.device.now_us)
    found, late = core.windows.take_entries(rows, frontier_us)
    assert ([each.pane_us for each in found], late) == ([pane_us], 0)


def test_what_waits_keeps_its_panes_and_its_rows_come(short):
    """The device is slow to hear: meanwhile F would go on if it could, and G stays."""
    site = short
    core, frontier_us = site.gateway.core, site.gateway.core.coverage.frontier
    entry = schedule_command(
        Replica(1, 5, "operator"),
        1,
        "offset",
        "",
        ControlLog().set("offset", "", frontier_us - 30 * S, "10", "ann"),
    )
    site.take([(topic_of(entry, site.device.core.agent.topics), entry.encode())])
    assert core.windows.held.spans
    first_us = min(span.first_us for span in core.windows.held.spans)
    assert min(core.windows.panes_below(frontier_us + 9_000 * S).values()) <= first_us


def test_a_gateway_whose_disk_was_lost_has_the_same_windows_again(site):
    """It hears from the device the entries of operators, as the broker may have lost it, too."""
    site.device.hear(ENTRY)
    site.live(12, sent=[ENTRY])
    site.gateway = GatewayUnderTest(PLAN, terms=TERMS, store="store-2")
    site.device.core.handle_connected(site.device.now_us)
    assert site.regimes.log == ControlLog()
    site.live(60)
    site.device.core.handle_end()
    site.live(60)
    assert site.regimes.log == LOG
    assert site.gateway.current() == site.truth()
    statuses = {row.at: row.status for row in site.gateway.rows}
    assert set(statuses.values()) == {"final"}
    assert len(statuses) == len([row for row in site.gateway.rows if row.status == "final"])


def test_a_device_whose_store_was_lost_with_the_brokers_memory_is_told_what_operators_said(
    site, tmp_path
):
    site.device.hear(ENTRY)
    site.live(12, sent=[ENTRY])
    site.device.kill()
    lost, site.device = (
        site.device,
        Device(tmp_path / "new", PLAN, settings=SETTINGS, name="cellar"),
    )
    site.device.now_us = lost.now_us
    acceptance = site.gateway.acceptance
    acceptance.connected(site.device.now_us)
    repeats = []
    for _ in range(60):
        site.live(1, reads=True)
        now_us = site.device.now_us
        for frame in acceptance.repeated(Replica(1, 9, "site"), now_us):
            repeats.append((now_us, frame))
            site.device.hear(frame)
    assert repeats[0][0] <= lost.now_us + 2 * CORRECT_US + 5 * S
    assert len(repeats) <= 2 + 300 * S // REPEAT_US, "politely"
    assert site.device.core.commands.known.control == site.regimes.log == LOG
    site.device.core.handle_end()
    site.live(60)
    final_up_to_us, *_ = site.gateway.core.coverage
    assert final_up_to_us > lost.now_us, "its promises count"


@pytest.mark.parametrize("more", [0, 4])
def test_windows_that_are_no_more_leave_after_the_last_reading_too(site, more):
    """Under the new form the last window ends earlier than what was promised under the old one."""
    log = ControlLog().set("step_s", "", NOW_US + 20 * S, "40", "ann")
    entry = schedule_command(Replica(1, 5, "operator"), 1, "step_s", "", log)
    site.live(1 + more, reads=True)
    site.device.core.handle_end()
    site.live(20)
    assert site.device.core.done
    site.device.hear(entry)
    site.live(30, sent=[entry])
    assert site.device.core.done
    there = {at: row for at, row in site.gateway.current().items() if row[1]}
    assert there == site.truth(log)
    assert len(there) < len(site.gateway.current())


def test_tentative_windows_that_are_no_more_leave_with_the_entry(site):
    log = ControlLog().set("step_s", "", NOW_US + 81 * S, "40", "ann")
    site.live(1, sent=[schedule_command(Replica(1, 5, "operator"), 1, "step_s", "", log)])
    gone = [
        row
        for row in {row.at: row for row in site.gateway.rows}.values()
        if row.status == "tentative" and not site.regimes.of(row.at.window).exists(row.at.start_us)
    ]
    assert [row.devices_in for row in gone] == [0]


def test_a_restart_knows_which_windows_have_become_longer_and_are_not_over(tmp_path):
    """They were due under the new log, as another device has promised far: F is not that far."""
    waiting = WaitingTerms(["attic", "cellar"], 600 * S, tentative_after_us=20 * S)
    site = Site(tmp_path, waiting)
    site.live(48, reads=True, sent=[promise_of(site, 1, NOW_US + 200 * S)])
    site.live(1, reads=True)
    log = ControlLog().set("span_s", "", NOW_US, "120", "ann")
    entry = schedule_command(Replica(1, 5, "operator"), 1, "span_s", "", log)
    site.device.hear(entry)
    site.live(1, sent=[entry, promise_of(site, 2, NOW_US + 900 * S, log.mark)])
    site.live(12)
    before = set(site.gateway.core.windows.unfinished.rows)
    current = [site.gateway.keeper.row(at) for at in before]
    assert [row for row in current if row.status != "tentative" and not row.was_over]
    site.gateway.restart()
    assert set(site.gateway.core.windows.unfinished.rows) == before


def test_the_log_of_a_turn_that_is_over_stays_as_it_was(tmp_path):
    """A store compares it with the next one to see whether there is anything to write."""
    site = Site(tmp_path)
    site.live(2, sent=[ENTRY])
    before = site.gateway.keeper.state.control
    later = LOG.set("offset", "", NOW_US + 30 * S, "20", "ann")
    site.live(2, sent=[schedule_command(Replica(1, 5, "operator"), 2, "offset", "", later)])
    assert before != site.gateway.keeper.state.control == site.regimes.log


def test_a_window_that_an_entry_makes_new_waits_for_nobody_who_is_left_out(tmp_path):
    waiting = WaitingTerms(["attic", "barn", "cellar"], 600 * S, tentative_after_us=20 * S)
    site = Site(tmp_path, waiting)
    site.live(1, reads=True, sent=[promise_of(site, 1, NOW_US)])
    site.live(47, reads=True, sent=[promise_of(site, 2, NOW_US + 600 * S)])
    log, known = ControlLog().set("step_s", "", NOW_US, "10", "ann"), set(site.gateway.current())
    entry = schedule_command(Replica(1, 5, "operator"), 1, "step_s", "", log)
    site.device.hear(entry)
    before, passed_us = len(site.gateway.rows), site.gateway.core.coverage.frontier
    site.live(1, sent=[entry, promise_of(site, 3, NOW_US, log.mark)])
    site.live(12)
    new = [row for row in site.gateway.rows[before:] if row.at not in known]
    new = [row for row in new if row.end_us <= passed_us]
    assert {(row.status, row.excluded) for row in new} == {("tentative", ("attic",))}
