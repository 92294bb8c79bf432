"""Lines that gave no reading with other options are read again, or named."""

import pytest

from device_agent.agent.sources.time_zones import Zone
from device_agent.agent.sources.times import NO_ZONE
from lasp_edge import Program, folds
from tests.device_agent.agent.sources.test_sources_replay import (
    cursor_at,
    drained,
    rows,
    source,
    written,
)
from tests.device_agent.agents import NOW_US, Device

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


def tagged(most, key=lambda event: event.tags["room"]):
    """Return a program that refuses what has no room, or is above the most."""
    program = Program("rooms")
    t = program.event("t", resolution="1", most=most)
    program.window("w", source=t, fold=folds.count(), size_s=60, key=key)
    return program.plan()


@pytest.mark.parametrize(
    ("fault", "refused"),
    [({"most": 10}, "refused: t: above 10"), ({"tag": {}}, "refused: program: ")],
)
def test_a_file_that_the_program_refused_whole_is_read_again(tmp_path, fault, refused):
    path = written(tmp_path / "rows", '{"ts": 1700000000, "t": 20, "room": "a"}\n' * 2)
    device = Device(tmp_path / "store", tagged(fault.get("most", 100)))
    name = f"jsonl:{path}"

    def taken_in(tag):
        opened = source(path, cursor=device.core.intake.sources.cursor(name), tag=tag)
        batch = opened.poll(NOW_US)
        if batch is not None:
            device.durable.read(batch, device.now_us)
            device.tick()
        return device.counted

    tag = {"room": "room"}
    found = taken_in(fault.get("tag", tag))
    assert any(reason.startswith(refused) for reason in found), found
    device.program = tagged(100)
    device.restart()
    assert taken_in(tag)["accepted"] == 1
    device.restart()
    assert taken_in(tag)["accepted"] == 1
    assert device.counted["refused"] == 2
    device.kill()


def test_a_store_of_the_former_release_goes_on_behind_what_it_read(tmp_path):
    path = written(tmp_path / "rows", LOCAL)
    former = cursor_at(LOCAL, len(LOCAL), 4)
    assert drained(source(path, cursor=former, time_zone=Zone("UTC")))[0] == []
