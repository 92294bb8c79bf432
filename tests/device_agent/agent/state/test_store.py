"""What a commit returned from is there after any crash, whole; nothing leaves before it."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from crdts import BoundedLWWSet
from crdts.wire import MAX_BYTES, decode, encode
from device_agent.agent.changes import Changes
from device_agent.agent.intake.batch import Batch
from device_agent.agent.intake.identities import Block, tags_text
from device_agent.agent.state.form import APPLICATION, FORMAT, UNMARKED
from device_agent.agent.state.store import FILE_NAME, Store, existing_store
from device_agent.agent.stored_rows import BLOCK_US, BlockId, PaneId, PaneRow, StoreWide
from lasp_edge.errors import UsageError
from lasp_edge.protocol.acks import Seqs
from tests.brokers import PATIENCE_S
from tests.device_agent.agents import LAKE, NOW_US, Device, greenhouse, rooms, truth_of

CHECKOUT = Path(__file__).parents[3]


def agrees(directory: Path) -> int:
    """Assert that everything in a store follows from its readings; return how many there are."""
    device = Device(directory, greenhouse(keyed=True))
    readings = list(device.store.readings())
    db = device.store.database
    restored = device.store.restored()
    assert device.stored_panes() == truth_of(device.program.windows["by_room"], readings)
    known = {}
    for event, tags, block, stored, _ in db.execute("SELECT * FROM identity"):
        known[event, tags, block] = Block(BlockId(event, tags, block), stored).identities
    wanted: dict = {}
    for r in readings:
        at = (r["event"], tags_text(r["tags"]), r["time_us"] // BLOCK_US)
        wanted.setdefault(at, set()).add((r["time_us"], r["q"]))
    assert known == wanted
    assert sum(map(len, known.values())) == len(readings) == restored.counters.get("accepted", 0)
    samples, total = (_state(restored, name) for name in ("samples", "total"))
    assert (samples.values() if samples else []) == [r["q"] for r in readings][-100:]
    assert (total.value if total else 0) == len(readings)
    assert max((r["time_us"] for r in readings), default=None) == restored.facts.high_us
    cursors = [row.cursor for name, row in restored.sources.items() if name == "test"]
    device.kill()
    return len(readings) * 1_000_000 + int((cursors or [None])[0] or 0)


def _state(restored, name):
    states = [decode(part) for part in restored.stored(name).get("", ())]
    if not states:
        return None
    joined = states[0].copy()
    for state in states[1:]:
        joined |= state
    return joined


def crash(directory: Path, statements: int, seed: int, after_s: float | None = None) -> list[str]:
    """Run the process until it dies; return the lines it printed."""
    words = [sys.executable, "-m", "tests.device_agent.crashing"]
    process = subprocess.Popen(
        [*words, str(directory), str(statements), str(seed)],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        text=True,
    )
    if after_s is not None:
        try:
            process.wait(timeout=after_s)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode in {9, -9}
    return out.splitlines()


@pytest.mark.slow
def test_a_crash_between_any_two_statements_leaves_everything_in_agreement(tmp_path):
    drawn = random.Random(4)
    for seed in range(8):
        lines = crash(tmp_path, drawn.randint(5, 400), seed)
        held = agrees(tmp_path)
        if lines:  # what the last `read` returned from is there; at most one more batch is
            accepted, cursor = map(int, lines[-1].split())
            assert held // 1_000_000 >= accepted
            assert held % 1_000_000 in {cursor, cursor + 1}


@pytest.mark.slow
def test_kill_nine_at_a_random_moment_leaves_everything_in_agreement(tmp_path):
    drawn = random.Random(5)
    for seed in range(4):
        lines = crash(tmp_path, -1, seed, after_s=drawn.uniform(0.4, 1.0))
        held = agrees(tmp_path)
        if lines:
            accepted, cursor = map(int, lines[-1].split())
            assert held // 1_000_000 >= accepted
            assert held % 1_000_000 in {cursor, cursor + 1}


class Failing:
    """A connection whose nth statement fails, as on a full disk."""

    def __init__(self, db, statement):
        self._db, self._left = db, statement

    def __getattr__(self, name):
        return getattr(self._db, name)

    def _one(self):
        self._left -= 1
        if self._left == 0:
            raise sqlite3.OperationalError("database or disk is full")

    def execute(self, *arguments):
        self._one()
        return self._db.execute(*arguments)

    def executemany(self, *arguments):
        self._one()
        return self._db.executemany(*arguments)


@pytest.mark.parametrize("statement", range(1, 10))
def test_a_commit_that_fails_anywhere_changes_nothing_and_publishes_nothing(tmp_path, statement):
    device = Device(tmp_path, greenhouse(keyed=True))
    device.read([20.0, 21.0], [NOW_US, NOW_US + 1], cursor="1")
    device.tick(20)
    whole = device.store.database
    device.store.database = Failing(whole, statement)
    with pytest.raises(sqlite3.OperationalError, match="full"):
        device.read([22.0], [NOW_US + 10], cursor="2")
    device.store.database = whole
    with pytest.raises(AssertionError, match="committed before"):
        list(device.core.publications(device.now_us))
    device.kill()
    agrees(tmp_path)


def test_a_commit_that_failed_is_made_up_for_by_the_next(tmp_path):
    device = Device(tmp_path, greenhouse(keyed=True))
    whole = device.store.database
    device.store.database = Failing(whole, 4)
    with pytest.raises(sqlite3.OperationalError):
        device.read([20.0], [NOW_US])
    device.store.database = whole
    device.tick()
    device.kill()
    assert agrees(tmp_path) // 1_000_000 == 1


def test_nothing_is_published_before_it_is_committed(tmp_path):
    device = Device(tmp_path)
    batch = Batch("test", ["temperature"], [NOW_US], [20.0], [{}])
    device.core.hold(batch, device.now_us)
    device.core.part_list.read(device.store, device.now_us)
    with pytest.raises(AssertionError, match="committed before"):
        list(device.core.publications(device.now_us))


def test_a_new_life_is_durable_before_its_first_frame(tmp_path):
    device = Device(tmp_path)
    published = list(device.durable.tick(device.now_us))
    stored = device.store.replica()
    assert published
    assert stored == tuple(device.core.replica)


def test_the_file_survives_a_power_cut_by_its_settings(tmp_path):
    device = Device(tmp_path)
    (mode,) = device.store.database.execute("PRAGMA journal_mode").fetchone()
    (synchronous,) = device.store.database.execute("PRAGMA synchronous").fetchone()
    assert (mode, synchronous) == ("wal", 2)  # 2 is FULL


@pytest.mark.parametrize("damage", ["header", "middle", "other"])
def test_a_damaged_file_is_put_aside_and_the_agent_starts_empty(tmp_path, damage):
    device = Device(tmp_path)
    for step in range(50):
        device.read([20.0] * 40, [NOW_US + step * 1_000_000 + n for n in range(40)])
    device.kill()
    path = tmp_path / FILE_NAME
    content = bytearray(path.read_bytes())
    if damage == "header":
        content[:100] = os.urandom(100)
    elif damage == "middle":
        for start in range(4096, len(content), 8192):
            content[start : start + 4096] = b"\xa5" * len(content[start : start + 4096])
    else:
        content[:] = b"this is no database at all" * 100
    path.write_bytes(bytes(content))
    store = Store(tmp_path)
    assert store.quarantined is not None
    assert store.quarantined.read_bytes() == bytes(content)
    assert store.restored().incarnation == 0
    store.close()
    device.start()
    device.read([20.0], [NOW_US])
    assert device.counted["accepted"] == 1


def test_a_second_damaged_file_does_not_replace_the_first(tmp_path):
    kept = []
    for content in (b"first" * 1_000, b"second" * 1_000):
        (tmp_path / FILE_NAME).write_bytes(content)
        store = Store(tmp_path)
        kept.append((store.quarantined, content))
        store.close()
    assert [path.read_bytes() for path, _ in kept] == [content for _, content in kept]


def test_a_data_directory_has_one_agent_at_a_time(tmp_path):
    device = Device(tmp_path)
    with pytest.raises(BlockingIOError):
        Store(tmp_path)
    device.kill()
    Store(tmp_path).close()


def test_readings_are_kept_as_read_in_the_order_of_acceptance(tmp_path):
    device = Device(tmp_path)
    device.read([21.574, 20, True, None], [NOW_US, NOW_US - 1, NOW_US, NOW_US], {"room": "Küche"})
    kept = list(device.store.readings())
    assert [(r["value"], r["q"], r["time_us"] - NOW_US) for r in kept] == [
        (21.574, 2157, 0),
        (20, 2000, -1),
    ]
    assert kept[0]["tags"] == {"room": "Küche"}
    assert kept[0]["accepted_us"] < kept[1]["accepted_us"]


def test_many_small_commits_store_a_variable_as_deltas_and_now_and_then_whole(tmp_path):
    device = Device(tmp_path)
    for step in range(200):
        device.read([20.0 + step % 5], [NOW_US + step])
    (deltas,) = device.store.database.execute("SELECT count(*) FROM variable").fetchone()
    assert deltas < 2 * 64
    device.restart()
    device.tick()
    partial = device.core.results.local()["local_average"][""].partial
    assert partial == (100, 100 * 2000 + 20 * (0 + 100 + 200 + 300 + 400))


def test_one_of_many_keys_is_stored_as_few_deltas(tmp_path):
    device = Device(tmp_path, rooms(bound=100))
    for step in range(50):
        device.read([20.0 + step], tags={"room": f"room-{step % 2}"})
    parts = device.store.restored().stored("samples")
    assert sorted(parts) == ["room-0", "room-1"]
    assert all(1 < len(several) <= 1 + 8 for several in parts.values())
    device.restart()
    device.tick()
    keys = device.core.results.local()["here"]
    assert {key: r.partial[0] for key, r in keys.items()} == {"room-0": 25, "room-1": 25}


def test_what_an_earlier_life_stored_is_not_written_again_by_a_start(tmp_path):
    device = Device(tmp_path, rooms())
    device.read([20.0], tags={"room": "attic"})
    device.read([21.0], tags={"room": "hall"})
    before = device.store.restored().stored("samples")
    for _ in range(3):
        device.restart()
        device.tick()
    assert device.store.restored().stored("samples") == before
    device.read([22.0], tags={"room": "attic"})
    after = device.store.restored().stored("samples")
    assert after["hall"] == before["hall"]
    (whole,) = [decode(part) for part in after["attic"]]
    assert (whole.replica, whole.values()) == (device.core.replica, [2000, 2200])


def test_deltas_go_on_where_an_earlier_life_left_off(tmp_path):
    device = Device(tmp_path)
    for life in range(4):
        for _ in range(5):
            device.read([20.0])
        assert device.core.variables.shared() == {"total": 5 * (life + 1)}
        device.restart()
    assert device.core.variables.shared() == {"total": 20}
    assert len(device.store.restored().stored("total")[""]) == 20


@pytest.mark.parametrize("found", [0, FORMAT - 1, FORMAT + 1])
def test_a_file_of_another_format_is_refused_and_left_as_it_is(tmp_path, found):
    device = Device(tmp_path)
    device.read([20.5])
    device.kill()
    file = tmp_path / FILE_NAME
    with sqlite3.connect(file) as db:
        db.execute(f"PRAGMA user_version = {found}")
        marked = 0 if found <= UNMARKED else APPLICATION + found
        db.execute(f"PRAGMA application_id = {marked}")
    db.close()
    before = file.read_bytes()
    with pytest.raises(UsageError, match=f"has the store format {found}, and .* reads {FORMAT}"):
        Store(tmp_path)
    with pytest.raises(UsageError, match="or with another --data-dir"):
        existing_store(tmp_path)
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.glob("*damaged*")] == []
    with sqlite3.connect(file) as db:
        db.execute(f"PRAGMA user_version = {FORMAT}")
        db.execute(f"PRAGMA application_id = {APPLICATION + FORMAT}")
    db.close()
    Device(tmp_path).kill()  # who was refused holds no lock


def test_a_bounded_set_of_any_size_is_restored(tmp_path):
    program = greenhouse(bound=100_000)
    device = Device(tmp_path, program)
    drawn = random.Random(3)
    values = [drawn.randrange(2**31) for _ in range(100_000)]
    times_us = [drawn.randrange(2**60) for _ in values]
    state = program.variables["samples"].bottom.add_many(device.core.replica, values, times_us)
    changes = Changes()
    at = (device.store.restored().facts.meanings["samples"], "")
    changes.states[at] = encode(state)
    device.store.commit(changes)
    assert len(changes.states[at]) > MAX_BYTES  # of what a peer may send
    device.restart()
    device.tick()
    partial = device.core.results.local()["local_average"][""].partial
    assert partial == (100_000, sum(values))


def test_the_lake_of_the_acknowledgement_is_stored_with_what_it_cleans(tmp_path):
    device = Device(tmp_path)
    device.read([20.0], [NOW_US])
    device.land(20)
    device.tick()
    assert [sink.store for sink in device.store.restored().facts.sinks] == [LAKE]
    assert device.store.undelivered() == []


def test_an_answer_on_stored_entries_is_about_one_life_alone(tmp_path):
    """Two lives may have one incarnation: one began on an older image of the card."""
    store = Store(tmp_path)
    ids = [PaneId(10, 7, "", 3, nonce) for nonce in (5, 6)]
    store.commit(Changes(panes={each: PaneRow(1, 20, (1,), dirty=1) for each in ids}))
    store.commit(Changes(answers=[StoreWide(1, 0, Seqs(3, 5, ((1, 1),)))]))
    assert [row.dirty for _, row in store.panes_named(ids)] == [0, 1]
    store.close()


def test_what_a_sinks_former_store_has_answered_is_sent_to_the_next_one(tmp_path):
    """Both are heard before one commit: the answer is of entries that the next store has not."""
    store, pane, row = Store(tmp_path), PaneId(10, 7, "", 3, 5), PaneRow(1, 20, (1,), dirty=1)
    store.commit(Changes(panes={pane: row}))
    changes = Changes(answers=[StoreWide(1, 0, Seqs(3, 5, ((1, 1),)))])
    changes.make_dirty(1)
    assert changes.applied(pane, row).dirty == 1
    store.commit(changes)
    assert dict(store.panes_named([pane]))[pane].dirty == 1
    changes = Changes(dirtied=1, answers=[StoreWide(1, 0, Seqs(3, 5, ((1, 1),)))])
    store.commit(changes)
    assert dict(store.panes_named([pane]))[pane].dirty == 0, "that store has it"
    store.close()


def test_what_changed_of_a_key_that_is_removed_in_the_same_commit_is_not_stored(tmp_path):
    device = Device(tmp_path, greenhouse(keyed=True))
    device.read([20.0], [NOW_US])
    stored, state = device.core.agent.stored, BoundedLWWSet(bound=4)
    stored.put_delta(("samples", "attic"), state, state)
    stored.remove(("samples", "attic"))
    device.tick(1)
    assert "attic" not in device.store.restored().stored("samples")
    device.kill()
