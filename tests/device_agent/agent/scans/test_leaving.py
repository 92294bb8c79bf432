"""Readings that leave as they are: in cells, whole, once, and only those that somebody needs."""

from types import SimpleNamespace

import pytest

from device_agent.agent.scans import leaving
from device_agent.agent.scans.leaving import LeavingItems
from device_agent.agent.settings import Settings
from device_agent.agent.stored_rows import Retraction
from lasp_edge import Program, folds, scans
from lasp_edge.event import StreamColumn, StreamItem
from lasp_edge.ordered.cells import CELL_US, PRESENT, RETRACTED, Item, unpacked
from lasp_edge.ordered.sent_items import united
from lasp_edge.protocol.frames import PaneFrame
from tests.device_agent.agents import NOW_US, Device

SECOND_US = 1_000_000
FIRST_US = NOW_US // CELL_US * CELL_US


def water(**more):
    """Return a program with a scan over the fleet of what is above 5 litres."""
    program = Program("water")
    litres = program.event("litres", resolution="0.5", leave_s=more.get("leave_s"))
    source = litres
    if more.get("filtered"):
        source = program.filter(litres, lambda event: event.value > 5, "much")
    used = program.scan("used", source=source, scan=scans.changes())
    program.result(used)
    if more.get("window"):
        program.window("w", source=litres, fold=folds.sum(), size_s=60)
    return program.plan()


def cells(device):
    """Return (event, cell's start) -> the items that the device's entries hold of it."""
    streams = {each.stream: name for name, each in device.program.item_streams.items()}
    found = {}
    for pane, row in device.rows():
        if pane.stream in streams:
            at = (streams[pane.stream], pane.pane_us)
            found.setdefault(at, []).append(unpacked(row.partial[0]))
    return {at: united(several) for at, several in found.items()}


def read(device, readings, **more):
    """Let a device take readings of (seconds, litres)."""
    times = [FIRST_US + round(at_s * SECOND_US) for at_s, _ in readings]
    values = [value for _, value in readings]
    device.now_us = max([device.now_us, *times])
    device.take(values, times, [{}] * len(values), name="litres", **more)


def content(device):
    """Return the items of a device, as (seconds, half litres) -> state."""
    return {
        ((item.time_us - FIRST_US) / SECOND_US, item.value): state
        for cell in cells(device).values()
        for item, state in cell.items()
    }


@pytest.fixture
def device(tmp_path):
    return Device(tmp_path, water())


def test_each_cell_of_ten_seconds_is_an_entry(device):
    read(device, [(1, 2), (2, 3.5), (11, 7)])
    assert content(device) == {(1, 4): PRESENT, (2, 7): PRESENT, (11, 14): PRESENT}
    assert [at for _, at in sorted(cells(device))] == [FIRST_US, FIRST_US + CELL_US]


def test_what_comes_later_joins_its_cell_over_a_restart(device):
    read(device, [(1, 2), (30, 9)])
    device.restart()
    read(device, [(2, 3)])
    assert content(device) == {(1, 4): PRESENT, (2, 6): PRESENT, (30, 18): PRESENT}


def test_a_repeat_changes_no_entry(device):
    read(device, [(1, 2)])
    before = device.rows()
    read(device, [(1, 2)])
    assert device.rows() == before


def test_what_no_scan_takes_stays(tmp_path):
    device = Device(tmp_path, water(filtered=True))
    read(device, [(1, 2), (2, 6), (3, 5), (12, 5)])
    assert content(device) == {(2, 12): PRESENT}


@pytest.mark.parametrize(
    ("sources", "leave"),
    [
        (("high",), {9}),
        (("high", "low"), {1, 9}),
        (("here",), {1, 4, 9}),
        (("elsewhere",), set()),
        (("doubled", "high"), {1, 4, 9}),
        ((None, "high"), {1, 4, 9}),
        (("twice",), {9}),
    ],
)
def test_what_one_of_several_scans_takes_leaves(tmp_path, sources, leave):
    program = Program("water")
    litres = program.event("litres", resolution="1")
    made = {
        None: litres,
        "high": program.filter(litres, lambda event: event.value > 5, "high"),
        "low": program.filter(litres, lambda event: event.value < 2, "low"),
        "here": program.filter(litres, lambda event: event.device == "pi-1", "here"),
        "elsewhere": program.filter(litres, lambda event: event.device == "pi-2", "elsewhere"),
        "doubled": program.map(litres, lambda event: 2 * event.value, "doubled"),
    }
    made["twice"] = program.filter(made["doubled"], lambda event: event.value > 10, "twice")
    for n, source in enumerate(sources):
        scanned = program.scan(f"s{n}", source=made[source], scan=scans.changes())
        program.result(scanned, parts={"value": "1"})
    device = Device(tmp_path, program.plan())
    read(device, [(1, 1), (2, 4), (3, 9)])
    assert {value for _, value in content(device)} == leave


def test_a_retraction_leaves_before_and_after_its_reading(device):
    read(device, [(1, 2), (1, Retraction(2)), (2, Retraction(3)), (2, 3)])
    assert content(device) == {(1, 4): RETRACTED, (2, 6): RETRACTED}


def test_a_retraction_goes_out_of_the_windows_of_its_event_too(tmp_path):
    device = Device(tmp_path, water(window=True))
    read(device, [(1, 2), (2, 3)])
    read(device, [(1, Retraction(2))])
    window = device.program.windows["w"].stream
    (partial,) = [row.partial for pane, row in device.rows() if pane.stream == window]
    assert partial == (6,)
    assert content(device) == {(1, 4): RETRACTED, (2, 6): PRESENT}


def test_a_cell_that_is_too_large_has_several_entries(device, monkeypatch):
    monkeypatch.setattr(leaving, "MOST_BYTES", 40)
    expected = {}
    for n in range(60):
        read(device, [(n / 10, n * n)])
        expected[n / 10, 2 * n * n] = PRESENT
        if n % 20 == 0:
            device.restart()
    assert content(device) == expected
    entries = [row for _, row in device.rows()]
    assert len(entries) > 5
    assert all(len(row.partial[0]) <= 40 for row in entries)


def test_a_batch_that_is_too_large_for_an_entry_is_split(device, monkeypatch):
    monkeypatch.setattr(leaving, "MOST_BYTES", 40)
    read(device, [(n / 10, n * n) for n in range(60)])
    assert len(content(device)) == 60
    assert all(len(row.partial[0]) <= 40 for _, row in device.rows())


def test_an_item_that_is_larger_than_an_entry_has_one_alone(device, monkeypatch):
    monkeypatch.setattr(leaving, "MOST_BYTES", 5)
    read(device, [(1, 1), (2, 1)])
    assert content(device) == {(1, 2): PRESENT, (2, 2): PRESENT}
    assert len(device.rows()) == 2


class Entries:
    """Entries of a life, as the part that sends items sees them."""

    def __init__(self):
        self.written = {}

    def own(self, *pane):
        return pane

    def held(self, pane, _store):
        return self.written.get(pane)

    def put(self, pane, partial, _now_us):
        assert self.written.get(pane) != partial, "an entry that has not changed leaves again"
        self.written[pane] = partial


@pytest.mark.parametrize("first", [False, True])
def test_what_was_taken_back_stays_so_in_whichever_order_both_were_read(first):
    reading = StreamItem("litres", FIRST_US, 3, "", "pi-1")
    back = reading._replace(retracted=True)
    both = [reading, back] if first else [back, reading]
    columns = [
        StreamColumn(*(each.event, each.device, each.tags, each.retracted), [each.time_us], [3])
        for each in (*both, reading._replace(event="of no fleet"))
    ]
    intake = SimpleNamespace(columns=columns)
    entries, agent = Entries(), SimpleNamespace(plan=water())
    part = LeavingItems(agent, intake, entries)
    for _ in range(2):
        part.read(None, FIRST_US)
    ((content,),) = entries.written.values()
    assert unpacked(content) == {Item(FIRST_US, 3, ""): RETRACTED}


def test_a_promise_waits_for_items_and_they_land(device):
    read(device, [(1, 2), (2, 3)])
    for _ in range(3):
        device.tick(20)  # nobody answers
    assert device.low_us <= FIRST_US + SECOND_US
    device.settle()
    assert len(device.landed.rows(device.program, "used")) == 2


def test_text_readings_leave(tmp_path):
    program = Program("words")
    program.result(
        program.scan("last", source=program.event("line", text=True), scan=scans.last(2)),
        parts={"before": "text", "after": "text"},
    )
    device = Device(tmp_path, program.plan())
    device.take(["a dog", "ä cat"], [NOW_US, NOW_US + 1], [{}, {}], name="line")
    items = {item.value: state for cell in cells(device).values() for item, state in cell.items()}
    assert items == {"a dog": PRESENT, "ä cat": PRESENT}


def test_a_device_without_streams_of_its_own_runs_none(device):
    assert device.core.streams is None


@pytest.mark.parametrize(("leave_s", "seconds"), [(2, 2), (30, 30), (None, 60), (90, 90)])
def test_a_reading_leaves_as_soon_as_its_event_says_or_with_an_interval(tmp_path, leave_s, seconds):
    settings = Settings(interval_us=60 * SECOND_US, keep_readings=True)
    device = Device(tmp_path, water(leave_s=leave_s), settings=settings)
    read(device, [(1, 2)])
    before = [
        frame for _ in range(seconds - 1) for frame in device.frames(PaneFrame, device.tick())
    ]
    after = [frame for _ in range(2) for frame in device.frames(PaneFrame, device.tick())]
    assert (len(before), len(after)) == (0, 1)
