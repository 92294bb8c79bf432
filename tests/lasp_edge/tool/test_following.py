"""Rows that are printed as they come: once each, again where they changed, rounded for people."""

import json
from types import SimpleNamespace

import pytest

from crdts import ControlLog
from device_agent.gateway.kept import FleetChanges
from device_agent.gateway.store import FleetStore
from device_agent.gateway.table import meaning_of
from lasp_edge.errors import Exit
from lasp_edge.protocol.window_rows import WINDOW_RECORD, FleetRow, WindowStart
from lasp_edge.tool import following
from lasp_edge.tool.command_line import main
from lasp_edge.units import SECOND_US
from tests.lasp_edge.tool.support_house import house

HOUR_S = 3_600


WINDOW = house().windows["by_room"]


def row(start_s, total, status="final", revision=0, excluded="", count=3):
    at = WindowStart("by_room", "attic", start_s * SECOND_US)
    counts = {"devices_in": 2, "devices_expected": 3, "revision": revision}
    known = {"status": status, "excluded": excluded, "stream": WINDOW.stream, "frontier": None}
    record = dict.fromkeys(WINDOW_RECORD, 0) | counts | known
    return FleetRow.stored(at, at.start_us + WINDOW.size_us, (count, total), record)


@pytest.fixture
def store(tmp_path):
    made = FleetStore(tmp_path)
    made.put_facts({"program": meaning_of(house(), ControlLog()), "store": "s", "name": "house"})
    yield made
    made.close()


def followed(store, capsys, monkeypatch, looks, *words):
    """Return what the command printed before each look that follows, which comes with rows."""
    printed, coming = [], iter(looks)

    def sleep(seconds):
        assert seconds >= following.LOOK_S
        printed.append(capsys.readouterr().out)
        rows = next(coming, None)
        if rows is None:
            raise KeyboardInterrupt
        store.commit(FleetChanges(rows=rows))

    # The command's alone: threads that other tests left sleep as they did.
    monkeypatch.setattr(following, "time", SimpleNamespace(sleep=sleep, monotonic=lambda: 0.0))
    line = ["windows", "by_room", "--gateway", str(store.path.parent), "--follow", *words]
    assert main(line) == Exit.INTERRUPTED
    assert capsys.readouterr() == ("", "")
    return printed


def test_people_see_values_as_fine_as_the_step_and_programs_in_full(store, tmp_path, capsys):
    store.commit(FleetChanges(rows=[row(0, 700)]))
    words = ["windows", "by_room", "--gateway", str(tmp_path)]
    assert main(words) == Exit.FINE
    head, line = (each.split() for each in capsys.readouterr().out.splitlines())
    assert line[5] == "23.3"
    assert "mean" in head
    assert main([*words, "--csv"]) == Exit.FINE
    assert str(700 / 30) in capsys.readouterr().out
    assert main([*words, "--json"]) == Exit.FINE
    assert json.loads(capsys.readouterr().out)["mean"] == 700 / 30


def test_each_row_is_printed_once_and_again_where_it_changed(store, capsys, monkeypatch):
    old, first = row(0, 1), row(2 * HOUR_S, 2, "tentative", excluded="cellar")
    store.commit(FleetChanges(rows=[old, first]))
    looks = [
        [row(2 * HOUR_S + 10, 3), row(2 * HOUR_S, 9, revision=1)],
        [],
        [row(2 * HOUR_S, 12, "revised", revision=2), row(0, 5, "revised", revision=1)],
    ]
    found = followed(store, capsys, monkeypatch, looks, "--json")
    shown = [
        [(each["start_us"] // SECOND_US, each["total_q"]) for each in map(json.loads, lines)]
        for lines in (text.splitlines() for text in found)
    ]
    begins = 2 * HOUR_S
    assert shown == [
        [(begins, 2)],  # what is older than an hour was not asked for
        [(begins, 9), (begins + 10, 3)],
        [],
        [(begins, 12)],
    ]


def test_a_time_that_is_given_is_followed_from(store, capsys, monkeypatch):
    store.commit(FleetChanges(rows=[row(0, 1), row(2 * HOUR_S, 2)]))
    looks = [[row(0, 5, "revised", revision=1)]]
    found = followed(store, capsys, monkeypatch, looks, "--csv", "--since", "0")
    assert [line.split(",")[:5] for line in found[0].splitlines()] == [
        ["key", "start_us", "end_us", "mean", "count"],
        ["attic", "0", "10000000", "0.03333333333333333", "3"],
        ["attic", "7200000000", "7210000000", "0.06666666666666667", "3"],
    ]
    (line,) = found[1].splitlines()
    assert line.split(",")[-2:] == ["revised", "1"]


def test_a_table_stays_aligned_and_has_every_column_from_the_beginning(store, capsys, monkeypatch):
    looks = [[row(0, 1)], [row(10, 2, "tentative", excluded="cellar")]]
    empty, first, second = followed(store, capsys, monkeypatch, looks)
    assert empty.split()[-2:] == ["waiting_for", "without"]
    (line,), (later,) = first.splitlines(), second.splitlines()
    assert line.index("final") == later.index("tentative")
    assert later.split()[-1] == "cellar"


def test_rows_that_cannot_be_read_for_a_while_are_read_again(store, capsys, monkeypatch):
    store.commit(FleetChanges(rows=[row(0, 1)]))
    file, aside = store.path, store.path.with_name("aside")
    steps = [lambda: file.rename(aside), lambda: None, lambda: aside.rename(file), lambda: None]
    coming, out, err = iter(steps), [], []

    def sleep(seconds):
        shown = capsys.readouterr()
        out.append(shown.out)
        err.append(shown.err)
        step = next(coming, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    monkeypatch.setattr(following, "time", SimpleNamespace(sleep=sleep, monotonic=lambda: 0.0))
    words = ["windows", "by_room", "--gateway", str(file.parent), "--follow", "--json"]
    assert main(words) == Exit.INTERRUPTED
    assert [len(text.splitlines()) for text in out] == [1, 0, 0, 0, 0]
    assert [bool(text) for text in err] == [False, True, False, False, False]
    assert "the next look is in 2 s" in err[1]
    file.rename(aside)
    assert main(words) == Exit.NOT_FOUND, "at the first look it may be a mistake"


def test_what_cannot_be_followed_is_refused(store, tmp_path, capsys):
    words = ["windows", "by_room", "--gateway", str(tmp_path), "--follow", "--as-of", "5"]
    assert main(words) == Exit.USAGE
    assert "--follow prints what comes, and --as-of what was known" in capsys.readouterr().err


def test_a_key_without_rows_is_answered_with_the_nearest(store, capsys):
    store.commit(FleetChanges(rows=[row(0, 700)]))
    line = ["windows", "by_room", "--gateway", str(store.path.parent), "--key"]
    assert main([*line, "attc"]) == Exit.NOT_FOUND
    assert "--key: no row has the key 'attc'; did you mean 'attic'?" in capsys.readouterr().err
    assert main([*line, "zz"]) == Exit.NOT_FOUND
    assert "no row has the key 'zz'; there are attic" in capsys.readouterr().err
