"""The laws of every kind of source, over one table: it resumes, ends, never waits, may break."""

import itertools
import select
import threading
import time
from pathlib import Path

import pytest

from device_agent.agent import sources
from device_agent.agent.sources.choice import KINDS
from device_agent.agent.sources.guarded import GuardedSource
from device_agent.agent.state.counters import Counters, Guard
from tests.brokers import PATIENCE_S
from tests.device_agent.agent.sources.support_stands import STANDS
from tests.device_agent.agents import NOW_US

MOST_POLLS = 1_000
RESUMING = [kind for kind, stand in STANDS.items() if stand.resumes]
HOME_PAGE = Path(__file__).parents[4] / "docs" / "home.md"


@pytest.fixture(params=sorted(STANDS))
def stands(request, tmp_path, monkeypatch):
    """Return a function that makes the stand of a kind; each one begins at the first reading."""
    made = []

    def make():
        made.append(STANDS[request.param](tmp_path / f"{len(made)}", monkeypatch))
        return made[-1]

    yield make
    for stand in made:
        stand.close()


def polled(source, stand, read=0):
    """Yield the batches of a source, each when it is due, from the reading after `read` on.

    A source that ends is polled to its end, any other until it has given all readings.
    """
    now_us = NOW_US
    for _ in range(MOST_POLLS):
        stand.show(read)
        batch = source.poll(now_us)
        if batch is not None:
            read += len(batch)
            yield batch
        due_us = source.due_us(now_us)
        if due_us is None or (read >= stand.count and not stand.ends):
            return
        now_us = max(now_us, due_us)
    raise AssertionError(f"{stand.kind}: {read} of {stand.count} readings in {MOST_POLLS} polls")


def values(batches):
    return [int(value) for batch in batches for value in batch.values]


def test_every_kind_of_source_is_in_the_table_and_in_the_words():
    assert set(STANDS) == {kind.name for kind in KINDS}
    page = HOME_PAGE.read_text()
    assert [kind.form for kind in KINDS if f"`{kind.form.partition('[')[0]}`" not in page] == []
    files = {path.stem for path in Path(sources.__file__).parent.glob("[a-z]*.py")}
    assert [file for file in sorted(files) if f"`{file}`" not in sources.__doc__] == []


def test_each_reading_comes_once_in_order_and_an_end_is_an_end(stands):
    stand = stands()
    source = stand.source()
    source.open(None)
    batches = list(polled(source, stand))
    assert values(batches) == list(range(1, stand.count + 1))
    assert {batch.source for batch in batches} == {source.name}
    assert [batch.done for batch in batches] == [False] * (len(batches) - 1) + [stand.ends]
    assert (source.due_us(NOW_US) is None) == stand.ends
    if stand.ends:
        assert source.poll(NOW_US) is None
    source.close()


@pytest.mark.parametrize("stands", RESUMING, indirect=True)
def test_after_a_restart_it_goes_on_behind_what_was_acknowledged(stands):
    whole = stands()
    source = whole.source()
    source.open(None)
    batches = len(list(polled(source, whole)))
    source.close()
    assert batches > 1
    for kept in range(batches):
        stand = stands()
        source = stand.source()
        source.open(None)
        first = list(itertools.islice(polled(source, stand), kept + 1))
        cursor = None
        source.acknowledge(cursor)
        for batch in first[:kept]:
            cursor = batch.cursor
            source.acknowledge(cursor)
        source.close()
        again = stand.source()
        again.open(cursor)
        behind = len(values(first[:kept]))
        assert values(polled(again, stand, behind)) == list(range(behind + 1, stand.count + 1))
        again.close()


def test_a_source_that_cannot_resume_gives_no_cursor_and_is_not_replayable(stands):
    stand = stands()
    source = stand.source()
    source.open(None)
    has_cursors = {batch.cursor is not None for batch in polled(source, stand)}
    assert has_cursors == {stand.resumes}
    assert not source.replayable or stand.resumes
    source.close()


def test_poll_never_waits(stands, monkeypatch):
    stand = stands()
    source = stand.source()
    source.open(None)
    selected = select.select

    def waits(*_arguments):
        raise AssertionError("a source never waits")

    def looked(reading, writing, failing, timeout_s):
        return selected(reading, writing, failing, timeout_s) if timeout_s == 0 else waits()

    with monkeypatch.context() as patched:
        patched.setattr(time, "sleep", waits)
        patched.setattr(threading.Condition, "wait", waits)
        patched.setattr(select, "select", looked)
        assert values(polled(source, stand)) == list(range(1, stand.count + 1))
    # Nothing more is there; a poll that waits for it has not returned in minutes.
    last = threading.Thread(target=source.poll, args=[NOW_US], daemon=True)
    last.start()
    last.join(PATIENCE_S)
    assert not last.is_alive()
    source.close()


def test_what_it_raises_is_counted_and_it_is_read_on_once_it_is_whole(stands, monkeypatch):
    stand, guard = stands(), Guard(Counters({}))
    source = stand.source()
    guarded = GuardedSource(source, guard)
    guarded.open(None)
    poll, failures = source.poll, iter((SystemExit(3), OSError("the cable"), MemoryError()))

    def fails_first(now_us):
        for failure in failures:
            raise failure
        return poll(now_us)

    monkeypatch.setattr(source, "poll", fails_first)
    assert values(polled(guarded, stand)) == list(range(1, stand.count + 1))
    reasons = sorted(reason.partition(" (")[0] for reason in guard.reasons)
    assert reasons == [
        f"failed: source {source.name}: {why}"
        for why in ("MemoryError", "OSError: the cable", "SystemExit: 3")
    ]
    guarded.close()
