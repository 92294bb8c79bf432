"""How what was accepted becomes rows of `landing`: panes, entries, members, promises, ticks."""

from dataclasses import replace

from cloud_tier.lander.columns import LandedColumns
from lasp_edge.protocol.frames import EVERY_WINDOW
from lasp_edge.protocol.frontier import Listening, Tick
from lasp_edge.protocol.sinks import SinkLow
from tests.cloud_tier.support_devices import rooms
from tests.lasp_edge.protocol.support_frames import (
    BEGIN_US,
    ME,
    NOW_US,
    SECOND_US,
    acceptance,
    beat,
    command,
    keys_of_shard,
    packed,
    panes,
    record,
    shard,
    variable,
)
from tests.lasp_edge.protocol.support_frames import rooms as small_rooms

PLAN, KEYED, PACKED = rooms(), small_rooms(keyed=True), packed()
TICK = Tick(5, Listening(NOW_US, BEGIN_US))


def rows(*frames, plan=PLAN):
    """Return the rows of frames, without that of the lander's clock."""
    records = [record(frame, at_us=NOW_US + n) for n, frame in enumerate(frames)]
    table = LandedColumns(plan).table(acceptance(plan).take(records), "lander", TICK)
    found = table.to_pylist()
    assert found.pop()["kind"] == "tick"
    return found


def test_panes_become_a_row_each():
    table = rows(panes(PLAN, 4))
    assert [row["pane_us"] for row in table] == [BEGIN_US, BEGIN_US + 10 * SECOND_US]
    first = table[0]
    assert (first["kind"], first["key"], first["device"]) == ("pane", "attic", "pi-0")
    assert (first["incarnation"], first["nonce"], first["seq"]) == (3, 7, 1)
    assert (first["count"], first["total_q"], first["min_q"]) == (1, 2000, None)
    assert (first["low_us"], first["done"], first["received_us"]) == (None, None, NOW_US)


def test_panes_of_an_earlier_life_keep_their_own_name():
    (first, _) = rows(panes(PLAN, 1, incarnation=1, nonce=99))
    assert (first["incarnation"], first["nonce"]) == (1, 99)


def test_an_entry_without_keys_becomes_a_row_with_its_version():
    (row,) = rows(variable(PLAN, 8, 2, 4400))
    assert (row["kind"], row["key"], row["seq"]) == ("variable", "", 8)
    assert (row["shard"], row["changed"]) == (0, 8)
    assert (row["count"], row["total_q"], row["pane_us"]) == (2, 4400, 0)
    (row,) = rows(replace(variable(PLAN, 8), keys=(), seqs=(), columns=()))
    assert (row["key"], row["shard"], row["changed"]) == (None, 0, 8)


def test_a_shard_becomes_a_row_for_each_key_with_the_seq_of_its_own():
    keys = keys_of_shard(5, 3)
    table = rows(shard(KEYED, 9, keys, seqs=(3, 9, 1)), plan=KEYED)
    changed = [(row["key"], row["changed"]) for row in table]
    assert changed == list(zip(keys, (3, 9, 1), strict=True))
    assert {(row["kind"], row["shard"], row["seq"]) for row in table} == {("variable", 5, 9)}
    assert [row["total_q"] for row in table] == [0, 1, 2]


def test_an_empty_shard_becomes_one_row_without_a_key():
    (row,) = rows(shard(KEYED, 9, [], at=7), plan=KEYED)
    assert (row["key"], row["shard"], row["seq"], row["changed"]) == (None, 7, 9, 9)
    assert (row["kind"], row["count"], row["total_q"]) == ("variable", None, None)


def test_a_member_command_becomes_a_row_with_columns_of_its_own():
    (row,) = rows(command(2, seq=5))
    assert (row["kind"], row["device"], row["control"], row["retired"]) == (
        "member",
        "pi-0",
        2,
        True,
    )
    assert (row["incarnation"], row["nonce"], row["seq"]) == (*ME[:2], 5)
    assert (row["changed"], row["done"]) == (None, None)


def test_a_row_of_a_retirement_says_how_far_the_device_had_promised_to_whichever_sink():
    (unheard,) = rows(command(2, seq=5))
    assert unheard["low_us"] == 3_000_000, "nobody knows, so all up to the decision in second 2"
    decided = rows(replace(beat(1, 10), lows=(SinkLow("other", 7, 30),)), command(2, seq=5))
    assert [row["low_us"] for row in decided if row["kind"] == "member"] == [30]
    (_, admitted) = rows(command(2, seq=5), command(3, retired=False))
    assert admitted["low_us"] is None


def test_the_newest_promise_becomes_one_row_heard_when_it_first_came():
    (row,) = rows(beat(1, 10), beat(2, 20), beat(2, 20), beat(1, 10))
    assert (row["kind"], row["seq"], row["low_us"], row["done"]) == ("promise", 2, 20, False)
    assert row["received_us"] == NOW_US + 1


def test_a_promise_says_from_when_on_no_reading_was_accepted_by_another_store_alone():
    window = PLAN.windows["totals"].stream
    stated, begun = rows(replace(beat(1, 10), begun=((window, 70), (EVERY_WINDOW, 50))))
    assert (stated["kind"], stated["low_us"], stated["since_us"]) == ("promise", 10, 50)
    assert (begun["kind"], begun["stream"], begun["since_us"]) == ("begun", window, 70)
    version = ("device", "incarnation", "nonce", "seq")
    assert [*map(begun.get, version)] == [*map(stated.get, version)]
    assert [row["since_us"] for row in rows(beat(2, 20))] == [None]


def test_the_tick_carries_the_clock_of_the_segment():
    (row,) = LandedColumns(PLAN).table(acceptance(PLAN).take([]), "lander", TICK).to_pylist()
    assert (row["kind"], row["device"], row["lander"], row["seq"]) == ("tick", "", "lander", 5)
    assert (row["now_us"], row["since_us"]) == (NOW_US, BEGIN_US)


def test_binary_columns_land_as_bytes():
    window = PACKED.windows["by_room"]
    fold = window.fold
    partial = fold.combine(fold.lift(2150, 3), fold.lift(2250, 4))
    columns = tuple((part,) for part in partial)
    frame = panes(PACKED, 1, columns=columns, keys=("",), panes_us=(BEGIN_US,), seqs=(1,))
    (row,) = rows(frame, plan=PACKED)
    assert [row[name] for name in fold.columns_named] == list(partial)
    assert sum(isinstance(part, bytes) for part in partial) == 3
