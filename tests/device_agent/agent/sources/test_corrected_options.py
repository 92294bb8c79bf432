"""Lines that gave no reading with other options are read again, or named."""

import pytest

from device_agent.agent.sources.times import NO_ZONE
from device_agent.agent.sources.zones import Zone
from tests.device_agent.agent.sources.test_sources_replay import (
    cursor_at,
    drained,
    rows,
    source,
    written,
)

LOCAL = "".join(f'{{"ts": "2026-11-22 18:0{n}:00", "t": {n}}}\n' for n in range(4))


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_file_that_its_options_made_unreadable_is_read_when_they_are_corrected(tmp_path, suffix):
    path = written(tmp_path / f"rows{suffix}", LOCAL)
    values, last = drained(source(path))
    assert (values, last.refused) == ([], {NO_ZONE: 4})
    _, still = drained(source(path, cursor=last.cursor))
    assert still.cursor == last.cursor
    again = source(path, cursor=last.cursor, time_zone=Zone("UTC"))
    values, last = drained(again)
    assert (values, again.news) == ([0, 1, 2, 3], "")
    assert last.cursor == cursor_at(LOCAL, len(LOCAL), 4)
    assert drained(source(path, cursor=last.cursor, time_zone=Zone("Europe/Berlin")))[0] == []


def test_rows_of_another_device_are_read_when_the_device_is_corrected(tmp_path):
    path = written(tmp_path / "rows.csv", "ts,t,who\n1,10,a\n2,20,a\n")
    options = {"kind": "csv", "device_field": "who"}
    values, last = drained(source(path, **options, device="b"))
    assert values == []
    assert drained(source(path, cursor=last.cursor, **options, device="a"))[0] == [10, 20]


def test_lines_that_gave_no_reading_among_others_are_named_once(tmp_path):
    path = written(tmp_path / "rows", rows(3) + LOCAL)
    _, last = drained(source(path))
    again = source(path, cursor=last.cursor, time_zone=Zone("UTC"))
    assert again.news.startswith("its options changed: 4 of its first 7 lines gave no reading")
    assert "give the file another name" in again.news
    values, last = drained(again)
    assert values == []
    assert source(path, cursor=last.cursor, time_zone=Zone("UTC")).news == ""


def test_a_store_of_the_former_release_goes_on_behind_what_it_read(tmp_path):
    path = written(tmp_path / "rows", LOCAL)
    former = cursor_at(LOCAL, len(LOCAL), 4)
    assert drained(source(path, cursor=former, time_zone=Zone("UTC")))[0] == []
