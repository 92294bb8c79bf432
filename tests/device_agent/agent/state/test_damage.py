"""Damaged stores: whatever happened to the file, the agent starts, and nothing changed goes unsaid.

Damage is drawn from a seed, so a failure names the file that shows it again.
"""

import contextlib
import random
import shutil
import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from device_agent.agent.changes import Changes, Facts
from device_agent.agent.state.store import FILE_NAME, existing_store
from device_agent.agent.stored_rows import BEFORE_ALL, BlockId
from device_agent.storage.damage import (
    DamagedStoreError,
    damaged_files,
    deletion_line,
    is_damage,
    kept_bytes,
)
from device_agent.storage.opening import PAGE_BYTES, _check_pages
from device_agent.storage.sealed_file import masks_become, sealed_pane, unsealed_pane
from lasp_edge.errors import Exit, NotFound
from lasp_edge.tool.command_line import main
from simulations.world.disk import OpenedStore
from tests.device_agent.agents import NOW_US, Device, greenhouse

TABLES = (
    "replica",
    "fact",
    "counter",
    "source",
    "identity",
    "pane",
    "meaning",
    "variable",
    "member",
)
DAMAGED = 450
FLIPPED = 200


@pytest.fixture
def memory():
    """Return a directory that no disk has to be waited for, where the machine has one."""
    shared = Path("/dev/shm")
    with TemporaryDirectory(dir=shared if shared.is_dir() else None) as directory:
        yield Path(directory)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Return a directory with a store that an agent wrote and closed in order."""
    directory = tmp_path_factory.mktemp("sound")
    device = Device(directory, greenhouse(keyed=True))
    for step in range(60):
        times = [NOW_US + step * 7_000_000 + n * 1_000_000 for n in range(7)]
        tags = {"room": f"room-{step % 5}"}
        device.read([20.0 + step % 9] * 7, times, tags, cursor=str(step))
        device.tick()
    device.kill()
    return directory


def rows_of(store: OpenedStore) -> dict[str, list]:
    """Return all that an agent reads, past every check."""
    return {table: store.database.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}


@pytest.fixture(scope="module")
def truth(sound, tmp_path_factory):
    copy = tmp_path_factory.mktemp("truth")
    shutil.copy(sound / FILE_NAME, copy)
    store = OpenedStore(copy)
    assert (store.quarantined, store.news) == (None, "")
    rows = rows_of(store)
    store.close()
    assert sum(map(len, rows.values())) > 200
    return rows


def flipped(content: bytearray, drawn: random.Random) -> None:
    place = drawn.randrange(len(content) * 8)
    content[place // 8] ^= 1 << place % 8


def overwritten(content: bytearray, drawn: random.Random) -> None:
    start, length = drawn.randrange(len(content)), drawn.choice([1, 4, 100, 512, 4096])
    noise = drawn.choice([bytes(length), b"\xff" * length, drawn.randbytes(length)])
    content[start : start + length] = noise[: len(content) - start]


def truncated(content: bytearray, drawn: random.Random) -> None:
    del content[drawn.randrange(1, len(content)) :]


def swapped(content: bytearray, drawn: random.Random) -> None:
    pages = len(content) // 4096
    a, b = (drawn.randrange(pages) * 4096 for _ in range(2))
    content[a : a + 4096], content[b : b + 4096] = content[b : b + 4096], content[a : a + 4096]


def of_the_head(content: bytearray, drawn: random.Random) -> None:
    content[drawn.randrange(100)] = drawn.randrange(256)


def several(content: bytearray, drawn: random.Random) -> None:
    for _ in range(drawn.randint(2, 40)):
        flipped(content, drawn)


KINDS = (overwritten, truncated, swapped, of_the_head, several)


def check(directory: Path, content: bytearray, truth: dict, what: str) -> bool:
    """Start on a damaged file; return whether it was put aside."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    path = directory / FILE_NAME
    path.write_bytes(content)
    store = OpenedStore(directory)
    try:
        if store.quarantined is None:
            assert rows_of(store) == truth, what
        else:
            assert len(store.quarantined.read_bytes()) == len(content), what
            assert store.restored().facts == Facts(), what
        store.commit(Changes(counters={"accepted": 1}))
        assert store.restored().counters["accepted"] == 1, what
    finally:
        store.close()
    return store.quarantined is not None


def test_no_damaged_file_ends_a_start_and_none_is_believed(sound, truth, memory):
    content, aside = (sound / FILE_NAME).read_bytes(), 0
    for seed in range(DAMAGED):
        drawn, damaged = random.Random(seed), bytearray(content)
        kind = KINDS[seed % len(KINDS)]
        kind(damaged, drawn)
        aside += check(memory / "store", damaged, truth, f"{kind.__name__}, seed {seed}")
    assert aside > DAMAGED // 2


def test_no_flipped_bit_changes_data_unnoticed(sound, truth, memory):
    content, aside = (sound / FILE_NAME).read_bytes(), 0
    for seed in range(FLIPPED):
        drawn, damaged = random.Random(seed), bytearray(content)
        flipped(damaged, drawn)
        aside += check(memory / "store", damaged, truth, f"flipped, seed {seed}")
    assert aside > 0


def killed(directory: Path, commits: int) -> Path:
    """Return a directory as a power cut leaves it: nothing of the log is in the file yet."""
    device = Device(directory / "live")
    for step in range(commits):
        device.read([20.0 + step], [NOW_US + step])
    shutil.copytree(directory / "live", directory / "left")
    device.kill()
    return directory / "left"


def test_a_bit_that_flips_in_the_log_is_noticed_and_a_torn_last_commit_is_said(tmp_path):
    left = killed(tmp_path, 12)
    log = (left / f"{FILE_NAME}-wal").read_bytes()
    for seed in range(60):
        damaged = bytearray(log)
        flipped(damaged, random.Random(seed))
        again = tmp_path / "again"
        shutil.rmtree(again, ignore_errors=True)
        shutil.copytree(left, again)
        (again / f"{FILE_NAME}-wal").write_bytes(damaged)
        store = OpenedStore(again)
        accepted = store.restored().counters.get("accepted", 0)
        assert store.quarantined or store.news or accepted == 12, seed
        store.close()


def test_a_log_whose_head_is_damaged_is_not_taken_for_no_log(tmp_path):
    left = killed(tmp_path, 12)
    log = (left / f"{FILE_NAME}-wal").read_bytes()
    for bit in range(32 * 8 + 1):
        damaged = bytearray(log)
        if bit < 32 * 8:
            damaged[bit // 8] ^= 1 << bit % 8
        else:
            damaged = bytearray(len(log))
        again = tmp_path / "again"
        shutil.rmtree(again, ignore_errors=True)
        shutil.copytree(left, again)
        (again / f"{FILE_NAME}-wal").write_bytes(damaged)
        store = OpenedStore(again)
        assert store.quarantined, bit
        store.close()


@pytest.mark.parametrize("keeps_its_log", [True, False])
@pytest.mark.parametrize("size", [0, 1, 100, 511])
def test_a_file_that_was_cut_off_to_nothing_is_said(tmp_path, size, keeps_its_log):
    left = killed(tmp_path, 12)
    path = left / FILE_NAME
    path.write_bytes(path.read_bytes()[:size])
    if not keeps_its_log:
        path.with_name(f"{FILE_NAME}-wal").unlink()
    store = OpenedStore(left)
    assert store.news
    assert bool(store.quarantined) == (size > 0 or keeps_its_log)
    kept = left / f"{FILE_NAME}.damaged-1-wal"
    assert kept.is_file() == keeps_its_log, "what may be saved by hand is kept"
    store.close()


def folder(path):
    path.mkdir()
    (path / "more").write_text("x")


def other_program(path):
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE song (title TEXT)")
    db.close()


STRANGE = {
    "it is no file": folder,
    "it is a link to itself": lambda path: path.symlink_to(path.name),
    "its tables are another program's": other_program,
}


@pytest.mark.parametrize("why", STRANGE)
def test_what_stands_in_place_of_the_file_is_put_aside_and_said(tmp_path, why):
    path = tmp_path / FILE_NAME
    STRANGE[why](path)
    beside = [] if path.is_file() else ["-wal", "-journal"]
    for suffix in beside:
        path.with_name(path.name + suffix).symlink_to(path.name + suffix)
    device = Device(tmp_path)
    assert why in device.store.news
    device.read([20.0], [NOW_US])
    device.restart()
    assert device.counted["accepted"] == 1
    device.kill()
    (files,) = damaged_files(path)
    names = [f"{FILE_NAME}.damaged-1{suffix}" for suffix in ("", *beside)]
    assert [file.name for file in files] == names
    assert kept_bytes(files) > 0
    assert deletion_line(files).startswith("rm -r " if files[0].is_dir() else "rm /")


def test_a_log_that_ends_within_a_commit_is_what_a_power_cut_leaves(tmp_path):
    left = killed(tmp_path, 12)
    path = left / f"{FILE_NAME}-wal"
    path.write_bytes(path.read_bytes()[:-100])
    store = OpenedStore(left)
    assert store.quarantined is None
    assert store.restored().counters["accepted"] == 11
    store.close()


@pytest.mark.parametrize("method", ["restored", "dirty_panes", "identities", "commit"])
def test_damage_that_shows_later_is_told_by_every_method(tmp_path, method):
    device = Device(tmp_path)
    device.read([20.0], [NOW_US])
    db = device.store.database
    block = BlockId(*db.execute("SELECT event, tags, block FROM identity").fetchone())
    if method == "commit":
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_master SET rootpage = 9999 WHERE name = 'counter'")
        db.execute("PRAGMA writable_schema = RESET")
    else:
        for table, column in [("fact", "value"), ("pane", "seq"), ("identity", "identities")]:
            db.execute(f"UPDATE {table} SET {column} = 'x'")
    asked = {
        "restored": device.store.restored,
        "dirty_panes": lambda: device.store.dirty_panes(BEFORE_ALL, 9, refused_too=True),
        "identities": lambda: device.store.identities(block),
        "commit": lambda: device.store.commit(Changes(counters={"x": 1})),
    }
    with pytest.raises(DamagedStoreError):
        asked[method]()
    device.store.put_aside()
    assert (tmp_path / f"{FILE_NAME}.damaged-1").is_file()
    device.start()
    device.read([20.0], [NOW_US])
    assert device.counted["accepted"] == 1


def test_what_is_the_machines_is_no_damage(tmp_path):
    store = OpenedStore(tmp_path)
    for code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_IOERR_WRITE):
        error = sqlite3.OperationalError("the machine's")
        error.sqlite_errorcode = code
        assert not is_damage(error, store.path, opening=True)
    assert not is_damage(TypeError("our own mistake"), store.path)
    store.close()


def test_a_file_that_may_not_be_written_is_left_where_it_is(tmp_path, monkeypatch):
    OpenedStore(tmp_path).close()
    error = sqlite3.OperationalError("attempt to write a readonly database")
    error.sqlite_errorcode = sqlite3.SQLITE_READONLY
    assert is_damage(error, tmp_path / FILE_NAME, opening=True)
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert not is_damage(error, tmp_path / FILE_NAME, opening=True)


def test_many_masks_change_in_one_statement_and_every_seal_still_fits(tmp_path):
    device = Device(tmp_path)
    device.read([20.0, 21.0], [NOW_US, NOW_US + 90_000_000])
    for masks in (("0",), ("dirty | 5", "refused | 260"), ("dirty & ~1", "refused & ~4")):
        device.store.database.execute(f"UPDATE pane SET {masks_become(*masks)}")
        rows = device.store.database.execute("SELECT * FROM pane").fetchall()
        assert rows == [sealed_pane(unsealed_pane(row)) for row in rows]
    device.store.database.execute("UPDATE pane SET dirty = 5")
    with pytest.raises(DamagedStoreError):
        unsealed_pane(device.store.database.execute("SELECT * FROM pane").fetchone())


def test_a_command_that_looks_at_a_damaged_store_says_so(tmp_path):
    device = Device(tmp_path)
    device.kill()
    with sqlite3.connect(tmp_path / FILE_NAME) as db:
        db.execute("UPDATE replica SET nonce = 5")
    db.close()
    looking = existing_store(tmp_path)
    with pytest.raises(DamagedStoreError, match="does not match its checksum"):
        looking.restored()
    looking.close()
    (tmp_path / FILE_NAME).write_bytes(b"no database" * 1_000)
    with pytest.raises(NotFound, match="cannot be read"):
        existing_store(tmp_path)


def test_a_command_that_reads_on_in_a_damaged_store_says_so(tmp_path, capsys):
    device = Device(tmp_path, greenhouse(keyed=True))
    for step in range(40):
        device.read([20.0], [NOW_US + step], {"room": "kitchen"})
    device.kill()
    path = tmp_path / FILE_NAME
    content = path.read_bytes()
    said = set()
    for page in range(1, len(content) // PAGE_BYTES):
        at = page * PAGE_BYTES
        for damage in (bytes(PAGE_BYTES), content[at:][:PAGE_BYTES].replace(b"kit", b"\xffit")):
            path.write_bytes(content[:at] + damage + content[at + PAGE_BYTES :])
            for command in ("status", "readings"):
                said.add((command, main([command, "--data-dir", str(tmp_path)])))
                assert "Traceback" not in capsys.readouterr().err
    codes = {Exit.FINE, Exit.ENVIRONMENT, Exit.NOT_FOUND}
    assert said >= {("status", Exit.ENVIRONMENT), ("readings", Exit.ENVIRONMENT)}
    assert {code for _, code in said} <= codes


def test_what_sqlite_finds_wrong_is_named_on_one_line(tmp_path):
    path = tmp_path / "db"
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript("PRAGMA page_size = 4096; CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    pages = bytearray(path.read_bytes())
    pages[4096 + 8 : 4096 + 10] = b"\xff\xff"  # where the only row stands
    path.write_bytes(pages)
    with contextlib.closing(sqlite3.connect(path)) as db:
        ((verdict,),) = db.execute("PRAGMA integrity_check(1)").fetchall()
        assert "\n" in verdict
        with pytest.raises(DamagedStoreError) as found:
            _check_pages(db)
    assert str(found.value) == " ".join(verdict.split())
