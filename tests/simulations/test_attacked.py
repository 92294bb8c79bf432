"""The recomputation that judges an attacked lake: the newest entry of each replica counts once."""

from deltalake import DeltaTable

from cloud_tier.lake.tables import LakeTables
from simulations.attacked import (
    PROGRAM,
    judged,
    put_history,
    recomputed,
    recomputed_value,
    stored,
    stored_value,
)
from tests.cloud_tier.support_devices import row
from tests.cloud_tier.written_lakes import write

S = 1_000_000


def made(tmp_path):
    names = {}
    exec(PROGRAM, names)
    plan = names["program"].plan()
    tables = LakeTables(tmp_path)
    tables.create(plan.columns)
    return plan, tables


def pane(device, incarnation, seq, pane_s, count, total):
    columns = {"stream": 5, "pane_us": pane_s * S, "count": count, "total_q": total}
    return row("pane", device, incarnation, 7, seq, **columns)


def test_windows_are_those_of_the_newest_entry_of_each_replica(tmp_path):
    _, tables = made(tmp_path)
    write(tables.landing, [pane("a", 1, 1, 20, 1, 5), pane("a", 1, 2, 20, 2, 9)])
    write(tables.landing, [pane("a", 1, 1, 20, 1, 5), pane("a", 2, 1, 20, 1, 1)])
    write(tables.landing, [pane("b", 1, 1, 30, 4, 40)])
    assert recomputed(tables) == {10 * S: (1, 3, 10), 20 * S: (2, 7, 50), 30 * S: (1, 4, 40)}


def test_a_months_old_panes_are_windows_of_their_own(tmp_path):
    _, tables = made(tmp_path)
    assert not put_history(tables)
    write(tables.landing, [pane("a", 1, 1, 4_000_000, 3, 5)])
    assert put_history(tables)
    found = recomputed(tables)
    assert len(found) == 2 + 101
    assert found[(4_000_000 - 30 * 86_400 + 20) * S] == (1, 6, 10)
    right, wrong = judged(tables)
    assert (right, len(wrong)) == (0, 103), "no window is there"


def test_the_value_is_that_of_the_devices_newest_entries(tmp_path):
    _, tables = made(tmp_path)
    for device, incarnation, seq, count in (("a", 1, 1, 9), ("a", 1, 2, 1), ("a", 2, 1, 2)):
        entry = {"shard": 0, "count": count, "total_q": 10 * count}
        write(tables.landing, [row("variable", device, incarnation, 7, seq, **entry)])
    write(tables.landing, [row("variable", "b", 1, 7, 1, shard=0, count=3, total_q=1)])
    assert recomputed_value(tables) == (5, 21, 0)
    for revision, count in ((0, 4), (1, 5)):
        write(tables.globals, [{"revision": revision, "count": count, "total_q": 21}])
    assert stored_value(tables) == (5, 21, 0)
    write(tables.globals, [{"revision": 3, "count": 5, "total_q": 21}])
    assert stored_value(tables) == (5, 21, 1), "a revision lacks"


def test_a_window_is_its_newest_row_and_none_without_devices(tmp_path):
    plan, tables = made(tmp_path)
    same = {"window": "load", "key": "", "status": "final", "stream": plan.windows["load"].stream}
    for at, revision, devices, count in ((1, 0, 1, 4), (1, 1, 2, 6), (2, 0, 1, 1), (2, 1, 0, 0)):
        columns = {"start_us": at, "revision": revision, "devices_in": devices, "count": count}
        write(tables.windows, [same | columns | {"total_q": 3}])
    assert DeltaTable(tables.windows).version() == 4
    assert stored(tables) == {1: (2, 6, 3)}
