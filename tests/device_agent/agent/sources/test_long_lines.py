"""Lines that no sensor writes: what a card leaves that lost power must not fill memory."""

import tracemalloc
import zlib

import pytest

from device_agent.agent.sources.recorded_file import LONGEST_LINE
from tests.device_agent.agent.sources.test_sources_replay import (
    csv_rows,
    cursor_at,
    drained,
    source,
    written,
)


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize(("kind", "head"), [("jsonl", ""), ("csv", "ts,t\n")])
def test_a_line_without_an_end_does_not_fill_memory(tmp_path, kind, head, suffix):
    row = {"jsonl": '{{"ts": {0}, "t": {0}}}\n', "csv": "{0},{0}\n"}[kind].format
    text = head + row(1) + "\0" * (5 * LONGEST_LINE + 7) + "\n" + row(2)
    path = written(tmp_path / f"rows{suffix}", text)
    tracemalloc.start()
    values, last = drained(source(path, kind))
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert values == [1, 2]
    assert last.cursor.startswith(cursor_at(text, len(text), text.count("\n") + 5))
    assert most_bytes < 6 * LONGEST_LINE


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_many_long_lines_do_not_fill_memory(tmp_path, kind):
    spaces = " " * (LONGEST_LINE // 16)
    row = {"jsonl": '{{"ts": {0}, "t": {0}{1}}}\n', "csv": "{0},{0},{1}\n"}[kind].format
    text = {"jsonl": "", "csv": "ts,t,x\n"}[kind] + "".join(row(n, spaces) for n in range(160))
    path = written(tmp_path / "rows", text)
    tracemalloc.start()
    values, _ = drained(source(path, kind))
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert values == list(range(160))
    assert most_bytes < 6 * LONGEST_LINE


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize(
    ("torn", "behind"),
    [('2,2,"ki\n', "k"), ('2,2,"ki\n', '"k"'), ('2,2,"ki\n3,3,"ki\n', "k"), ('2,2,"k"i\n', '"k"')],
    ids=["no other quote", "quotes behind it", "twice", "closed too soon"],
)
def test_a_quote_that_nobody_closes_costs_no_row_behind_it(tmp_path, suffix, torn, behind):
    rows = "".join(f"{n},{n},{behind}\n" for n in range(4, 2_000))
    path = written(tmp_path / f"rows{suffix}", f"ts,t,x\n1,1,k\n{torn}{rows}")
    values, last = drained(source(path, "csv"))
    assert values == [1, *range(4, 2_000)]
    assert last.cursor.split(":")[1] == str(1 + 1 + torn.count("\n") + 1_996)


def test_a_cursor_of_an_earlier_release_goes_by_the_first_bytes_alone(tmp_path):
    text = csv_rows(9, wide=99)
    path = written(tmp_path / "rows", text)
    offset = text.index("4,4,")
    cursor = f"{offset}:5:{zlib.crc32(text.encode()[:256]):08x}"
    again = source(path, "csv", cursor, time=None)
    assert (drained(again)[0], again.news) == ([4, 5, 6, 7, 8], "")
