"""A file that is followed: read as it grows, and as others take its place."""

import re

import pytest

from tests.device_agent.agent.sources.support_rows import (
    LATER_US,
    csv_rows,
    rows,
    source,
    written,
)


def polled(replay, now_us=LATER_US):
    """Return the values of all batches until there is nothing more for now."""
    values = []
    while (batch := replay.poll(now_us)) is not None:
        assert not batch.done
        values += batch.values
    return values


@pytest.mark.parametrize(("kind", "text"), [("jsonl", rows), ("csv", csv_rows)])
class TestFollowing:
    """A file that is followed is read as it grows."""

    def test_lines_that_come_later_are_read_and_half_a_line_is_not(self, tmp_path, kind, text):
        path = written(tmp_path / "rows", text(3))
        replay = source(path, kind, follow=True)
        assert polled(replay) == [0, 1, 2]
        assert polled(replay) == []
        assert LATER_US < replay.due_us(LATER_US) <= LATER_US + 2_000_000
        whole = text(800)
        half = whole[: -len(text(1, 799).splitlines()[-1]) - 1] + text(1, 799).splitlines()[-1][:-1]
        written(path, half)  # its last number may lack a digit
        assert polled(replay) == list(range(3, 799))
        assert polled(replay, LATER_US + 60_000_000) == []
        written(path, whole)
        assert polled(replay, LATER_US + 60_000_000) == [799]

    def test_it_goes_on_behind_what_was_durable(self, tmp_path, kind, text):
        path = written(tmp_path / "rows", text(3))
        replay = source(path, kind, follow=True)
        cursor = replay.poll(0).cursor
        written(path, text(5))
        assert polled(source(path, kind, cursor, follow=True)) == [3, 4]

    @pytest.mark.parametrize("before", [3, 50])
    def test_a_file_that_takes_its_place_is_read_from_its_beginning(
        self, tmp_path, kind, text, before
    ):
        path = written(tmp_path / "rows", text(before))
        replay = source(path, kind, follow=True)
        assert polled(replay) == list(range(before))
        path.rename(tmp_path / "rows.1")
        assert polled(replay) == []
        written(path, "")
        assert polled(replay) == []
        written(path, text(70, before))
        polled(replay)
        assert polled(replay) == list(range(before, before + 70))
        written(path, text(1, 500))  # copied and cut off
        polled(replay)
        assert polled(replay) == [500]

    def test_the_same_file_that_is_written_anew_goes_on(self, tmp_path, kind, text):
        path = written(tmp_path / "rows", text(30))
        replay = source(path, kind, follow=True, time=None)
        assert polled(replay) == list(range(30))
        written(tmp_path / "new", text(32)).rename(path)
        polled(replay)
        assert polled(replay) == [30, 31]

    def test_an_empty_file_may_be_replaced(self, tmp_path, kind, text):
        head = text(0)
        replay = source(written(tmp_path / "rows", head), kind, follow=True, time=None)
        assert polled(replay) == []
        written(tmp_path / "new", text(2)).rename(tmp_path / "rows")
        polled(replay)
        assert polled(replay) == [0, 1]

    def test_without_times_another_file_is_refused_with_what_to_do(self, tmp_path, kind, text):
        path = written(tmp_path / "rows", text(30))
        replay = source(path, kind, follow=True, time=None)
        assert polled(replay) == list(range(30))
        written(tmp_path / "new", text(9, 30)).rename(path)
        with pytest.raises(ValueError, match=re.escape(f"{path} is another file than before")):
            polled(replay)


@pytest.mark.parametrize(("name", "options"), [("rows.gz", {}), ("rows", {"speed": 2.0})])
def test_what_cannot_be_followed_is_refused(tmp_path, name, options):
    path = written(tmp_path / name, rows(3))
    with pytest.raises(ValueError, match=re.escape("of no .gz, and without --speed")):
        source(path, follow=True, **options)
