"""Answers that are slow, late, or lost: what was sent is sent again, and all of it lands."""

import pytest

from device_agent.agent.panes.cache import KEPT_ENTRIES
from device_agent.agent.panes.flights import IN_FLIGHT
from lasp_edge.protocol.acks import NotTaken
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.frames import PaneFrame
from tests.device_agent.agent.panes.support_fleetlet import Fleetlet, full, starts
from tests.device_agent.agents import MINUTE_US, NOW_US, PANE_US, Device


def many(device, panes):
    times_us = [NOW_US + pane * PANE_US for pane in range(panes)]
    for start in range(0, panes, 2_000):
        part = times_us[start : start + 2_000]
        device.now_us = max(device.now_us, part[-1])
        device.read([20.0] * len(part), part)


def waiting(device):
    return sum(each.entries for each in device.store.undelivered())


@pytest.fixture
def unanswered(tmp_path):
    """A device that sent entries again and again, over connections that lasted for a time-out."""
    device = Device(tmp_path, nonce=7)
    device.read([20.0], [NOW_US - MINUTE_US])
    Fleetlet(device, device.landed).run(60)
    many(device, 12)
    (lake,) = device.core.panes.sinks
    for _ in range(6):
        device.core.handle_disconnected()
        device.core.handle_connected(device.now_us)
        for _ in range(12):
            device.tick()
    for _ in range(200):
        dues_us = [each.due_us for each in device.core.panes.memory.entries.values() if each.dirty]
        late = [due_us for due_us in dues_us if due_us > device.now_us + MINUTE_US // 2]
        if not lake.flights.count and len(late) > len(dues_us) // 2:
            break
        device.tick()
    return device


def test_what_waited_long_for_an_answer_is_sent_soon_after_a_new_connection(unanswered):
    device = unanswered
    device.core.handle_disconnected()
    device.core.handle_connected(device.now_us)
    Fleetlet(device, device.landed).run(10)
    assert waiting(device) == 0


def test_what_waited_long_for_an_answer_is_sent_soon_after_the_sink_is_heard_again(unanswered):
    device = unanswered
    device.read([20.0], [device.now_us + MINUTE_US])
    device.core.handle_end()
    Fleetlet(device, device.landed).run(20)
    assert waiting(device) == 0


def test_answers_that_take_seven_minutes_still_clean_everything_in_time(device):
    many(device, 12_000)
    fleet = Fleetlet(device, device.landed, latency_s=430)
    fleet.run(1_200, step_s=3)
    assert waiting(device) < 1_000
    fleet.run(900, step_s=3)
    assert waiting(device) == 0
    assert fleet.sent_entries < 4 * 12_000


def test_a_connection_of_one_second_in_two_with_slow_answers_cleans_everything(device):
    many(device, 6_000)
    fleet = Fleetlet(device, device.landed, latency_s=5)
    fleet.run(400, up=lambda second: second % 2 == 0)
    assert waiting(device) == 0
    assert fleet.sent_entries < 4 * 6_000


@pytest.mark.parametrize("reason", [0, NotTaken.RETIRED])
def test_an_answer_counts_for_the_seq_it_names_though_the_entry_is_in_the_store_alone(
    device, reason
):
    device.core.handle_disconnected()
    many(device, 2 * KEPT_ENTRIES)
    alone = [each for each in device.rows() if each[0] not in device.core.panes.memory.entries]
    (older, one), (named, two), *_ = alone
    blocks = block_of(older, one._replace(seq=one.seq + 50_000)), block_of(named, two)
    device.acknowledge(PaneFrame(device.core.replica, 1, blocks), reason=reason)
    device.tick(0)
    rows = dict(device.rows())
    assert (rows[older].dirty, rows[older].refused) == (1, 0)
    assert bool(rows[named].dirty) == bool(rows[named].refused) == bool(reason)


def test_an_answer_that_comes_between_is_not_undone_by_recalling_the_entry(device):
    device.core.handle_disconnected()
    many(device, 2 * KEPT_ENTRIES)
    device.tick(0)
    _, (beside, row), *_ = device.rows()
    device.acknowledge(PaneFrame(device.core.replica, 1, (block_of(beside, row),)))
    device.read([21.0], [NOW_US + 1])  # recalls it together with the pane before it
    device.tick(0)
    entry = device.core.panes.memory.entries[beside]
    assert (entry.dirty, dict(device.rows())[beside].dirty) == (0, 0)


def test_an_entry_that_is_recalled_before_a_new_sink_is_noted_is_delivered_to_that_one(device):
    """A reading looks at its pane, which comes back from the store, and is refused."""
    device.core.handle_disconnected()
    many(device, 2 * KEPT_ENTRIES)
    device.tick(0)
    device.acknowledge()
    device.acknowledge(sink="archive", lake="archive-1")
    memory = device.core.panes.memory
    pane, row = next(each for each in device.rows() if each[0] not in memory.entries)
    memory.held(pane, device.store)
    assert memory.entries[pane].dirty == 0b11
    device.acknowledge(PaneFrame(device.core.replica, 1, (block_of(pane, row),)))
    device.tick(0)
    assert dict(device.rows())[pane].dirty == 0b10


def block_of(pane, row):
    """Return the block of one stored entry."""
    columns = tuple((part,) for part in row.partial)
    span_us = row.end_us - pane.pane_us
    return PaneEntries(
        pane.stream,
        span_us,
        pane.incarnation,
        pane.nonce,
        columns,
        ("",),
        (pane.pane_us,),
        (row.seq,),
    )


def test_without_any_answer_little_is_sent_and_in_the_end_all_lands(device):
    many(device, 3_000)
    nobody = Fleetlet(device)
    nobody.run(3_600, step_s=5)
    assert nobody.sent_entries < 40 * 400  # a frame in two minutes
    assert device.core.panes.sinks
    assert IN_FLIGHT * 400 < 3_000
    Fleetlet(device, device.landed).run(300)
    assert waiting(device) == 0


def test_what_was_sent_while_the_clock_was_ahead_is_sent_again_when_it_is_set_back(device):
    full(device)
    device.now_us += 40 * MINUTE_US
    device.tick(20)
    device.now_us -= 40 * MINUTE_US
    assert starts(device.land(1))
    device.settle()
