"""Readings with an own time are counted once, over batches, restarts and recalled blocks."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_agent.agent.intake.batch import Batch
from device_agent.agent.intake.identities import KEPT_IDENTITIES, Block, Identities
from device_agent.agent.stored_rows import BLOCK_US, BlockId
from lasp_edge.folds.numbers import LIMIT
from lasp_edge.units import SECOND_US
from simulations.world.disk import EmptyStore
from tests.device_agent.agents import HOUR_US, NOW_US, Device

NAME = BlockId("temperature", "", NOW_US // BLOCK_US)
IDENTITIES = st.lists(
    st.tuples(
        st.integers(0, BLOCK_US - 1).map(lambda offset_us: NAME.block * BLOCK_US + offset_us),
        st.one_of(st.integers(1 - LIMIT, LIMIT - 1), st.integers(-3, 300)),
    ),
    min_size=1,
    max_size=200,
)


@pytest.fixture
def device(tmp_path):
    return Device(tmp_path)


@given(IDENTITIES)
def test_a_block_knows_what_it_was_given_as_a_set_does(identities):
    block, known = Block(NAME), set()
    for identity in identities:
        assert block.holds(*identity) == (identity in known)
        assert block.add(*identity) == (identity not in known)
        known.add(identity)
    assert (block.identities, len(block)) == (known, len(known))


@given(IDENTITIES)
def test_packed_identities_are_the_same_again_whatever_their_order(identities):
    block, backwards = Block(NAME), Block(NAME)
    for identity in identities:
        block.add(*identity)
    for identity in reversed(identities):
        backwards.add(*identity)
    packed = block.packed()
    assert packed == backwards.packed()
    restored = Block(NAME, packed)
    assert restored.identities == block.identities == set(identities)
    assert restored.last_us == block.last_us == max(identities)[0]
    assert restored.packed() == packed


@given(IDENTITIES, IDENTITIES)
def test_a_column_of_later_identities_is_as_good_as_one_by_one(before, column):
    together, single = Block(NAME), Block(NAME)
    for identity in before:
        together.add(*identity)
        single.add(*identity)
    by_time = dict(sorted(identity for identity in column if identity[0] > single.last_us))
    if by_time:
        together.put_later(list(by_time), list(by_time.values()))
    for identity in by_time.items():
        single.put(*identity)
    assert together.packed() == single.packed()
    for identity in (*before, *column):
        assert together.holds(*identity) == single.holds(*identity)


def test_a_block_of_one_instant_and_value_takes_six_bytes_beside_it(tmp_path):
    block = Block(NAME)
    block.put(block.start_us, 1 - LIMIT)
    assert len(block.packed()) == 7
    assert Block(NAME, block.packed()).identities == {(block.start_us, 1 - LIMIT)}


def test_a_repeat_counts_once_within_a_batch_and_between_batches(device):
    device.read([21.5, 21.5, 21.5], [NOW_US, NOW_US, NOW_US - 1])
    device.read([21.5], [NOW_US])
    assert (device.counted["accepted"], device.counted["repeated"]) == (2, 2)


def test_values_that_are_equal_once_quantised_are_a_repeat(device):
    device.read([21.5, 21.501], [NOW_US, NOW_US])
    assert device.counted["repeated"] == 1


def test_different_values_at_one_time_are_different_readings(device):
    device.read([21.5, 21.6], [NOW_US, NOW_US])
    assert device.counted["accepted"] == 2
    assert device.stored_panes()["", NOW_US] == (2, 4310, 2150)


def test_tags_tell_readings_apart_whatever_their_order(device):
    device.read([21.5], [NOW_US], {"room": "attic", "wall": "north"})
    device.read([21.5], [NOW_US], {"wall": "north", "room": "attic"})
    device.read([21.5], [NOW_US], {"room": "attic"})
    device.read([21.5], [NOW_US])
    assert (device.counted["accepted"], device.counted["repeated"]) == (3, 1)


def test_an_empty_tag_is_not_a_missing_one(device):
    device.read([21.5], [NOW_US], {})
    device.read([21.5], [NOW_US], {"room": ""})
    assert device.counted["accepted"] == 2


def test_agent_stamped_readings_are_never_compared(device):
    device.read([21.5] * 5)
    device.read([21.5] * 5)
    assert (device.counted["accepted"], device.counted.get("repeated")) == (10, None)


def test_a_repeat_is_dropped_over_restarts(device):
    device.read([21.5, 21.6], [NOW_US, NOW_US - 1])
    device.restart()
    device.read([21.5, 21.6, 21.7], [NOW_US, NOW_US - 1, NOW_US - 2])
    assert (device.counted["accepted"], device.counted["repeated"]) == (3, 2)


def test_a_repeat_is_dropped_when_its_block_has_left_memory(device):
    steps = KEPT_IDENTITIES + 4_000
    times_us = [NOW_US - step * SECOND_US for step in range(steps, 0, -1)]
    for start in range(0, steps, 2_000):
        device.read([21.5] * 2_000, times_us[start : start + 2_000])
    assert device.core.intake.identities.held <= KEPT_IDENTITIES
    device.read([21.5, 21.6], [times_us[0], times_us[0]])
    assert (device.counted["accepted"], device.counted["repeated"]) == (steps + 1, 1)


def test_a_recalled_block_keeps_its_old_identities_beside_new_ones(device):
    device.read([21.5, 21.6], [NOW_US - HOUR_US, NOW_US])
    device.restart()
    device.read([21.7], [NOW_US - HOUR_US])
    device.restart()
    device.read([21.5, 21.6, 21.7], [NOW_US - HOUR_US, NOW_US, NOW_US - HOUR_US])
    assert (device.counted["accepted"], device.counted["repeated"]) == (3, 3)


def test_blocks_of_a_stream_that_was_never_stored_are_not_asked_for():
    identities = Identities([("temperature", "", 10)])
    assert identities.may_be_stored(BlockId("temperature", "", 10))
    assert not identities.may_be_stored(BlockId("temperature", "", 11))
    assert not identities.may_be_stored(BlockId("humidity", "", 3))


def test_sparse_blocks_are_bounded_too():
    identities = Identities()
    for block in range(10_000):
        name = BlockId("temperature", "", block)
        identities.block(name, EmptyStore()).put(block * BLOCK_US, 7)
        identities.forget()
    assert identities.held < 5_000


def test_an_identity_takes_four_to_six_bytes_on_real_timing(shared_data):
    path = shared_data / "rpi_mqtt_3dev" / "messages.jsonl.gz"
    blocks: dict[BlockId, Block] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            message = json.loads(line)
            time_us = round(message["ts"] * 1_000_000)
            name = BlockId(message["device"], "", time_us // BLOCK_US)
            block = blocks.setdefault(name, Block(name))
            block.add(time_us, round(message["data"]["temp"] * 100))
    stored = sum(len(block.packed()) for block in blocks.values())
    count = sum(map(len, blocks.values()))
    print(f"{count} identities in {stored} bytes: {stored / count:.2f} B each")
    assert stored / count < 6.0


def test_a_block_stays_in_memory_while_its_readings_come_one_by_one():
    identities = Identities()
    store = EmptyStore()
    first = identities.at("temperature", "", NOW_US, store)
    for number in range(1, 2_000):  # of other streams, each used once
        name = BlockId("humidity", "", number)
        identities.block(name, store).put(number * BLOCK_US, 7)
        identities.at("temperature", "", NOW_US, store).put(NOW_US + number, 7)
        identities.forget()
        assert identities.at("temperature", "", NOW_US, store) is first


def sensors(*places):
    """Return readings of one instant, each from a topic."""
    count = len(places)
    columns = (["temperature"] * count, [NOW_US] * count, [21.5] * count, [{}] * count)
    return Batch("mqtt:sensors/+", *columns, places=list(places))


@pytest.mark.parametrize("column_least", [1, 1_000])
def test_two_sensors_that_agree_are_two_readings_and_a_repeat_is_none(device, column_least):
    device.core.intake.column_least = column_least
    device.durable.read(sensors("sensors/a", "sensors/b", "sensors/a"), NOW_US)
    device.restart()
    device.core.intake.column_least = column_least
    device.durable.read(sensors("sensors/b", "sensors/c"), NOW_US)
    device.durable.commit(NOW_US)
    assert sum(row.partial[0] for _, row in device.rows()) == 3
    assert device.counted["repeated"] == 2


def test_sensors_that_agree_are_two_after_they_had_to_wait_for_the_clock(tmp_path):
    device = Device(tmp_path, now_us=SECOND_US)
    device.durable.read(sensors("sensors/a", "sensors/b"), device.now_us)
    device.durable.commit(device.now_us)
    device.restart()
    assert device.core.agent.clock.waiting == 2
    device.now_us = NOW_US + SECOND_US
    device.settle()
    device.durable.read(sensors("sensors/b"), device.now_us)
    device.durable.commit(device.now_us)
    assert {row.partial[0] for _, row in device.rows()} == {2}
