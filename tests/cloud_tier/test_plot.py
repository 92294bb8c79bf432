"""`lasp-edge plot`: a line for each key, dashed while tentative, broken where a window lacks."""

import builtins
import re
import sys
from datetime import UTC, datetime
from importlib.util import find_spec

import pytest

from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.tables import LakeTables
from crdts import ControlLog
from device_agent.gateway.kept import FleetChanges
from device_agent.gateway.store import FleetStore
from device_agent.gateway.table import meaning_of
from lasp_edge.errors import Exit
from lasp_edge.examples.greenhouse import program as greenhouse
from lasp_edge.protocol.window_rows import WINDOW_RECORD, FleetRow, WindowStart
from lasp_edge.tool.command_line import main
from lasp_edge.units import SECOND_US
from tests.cloud_tier.written_lakes import window, write
from tests.device_agent.agents import NOW_US, Device
from tests.lasp_edge.tool.support_house import house
from tests.support_missing import lacks

PLAN = house()
WINDOW = PLAN.windows["by_room"]
NOON_S = int(datetime(2026, 7, 1, 12, tzinfo=UTC).timestamp())


@pytest.fixture(autouse=True)
def matplotlib():
    if find_spec("matplotlib") is None:
        lacks("matplotlib is not installed; type: make setup")


def row(key, second, degrees, status="final"):
    at = WindowStart("by_room", key, (NOON_S + second) * SECOND_US)
    known = {"status": status, "excluded": "", "stream": WINDOW.stream, "frontier": None}
    record = dict.fromkeys(WINDOW_RECORD, 0) | known
    return FleetRow.stored(at, at.start_us + WINDOW.size_us, (2, round(20 * degrees)), record)


@pytest.fixture
def gateway(tmp_path):
    directory = tmp_path / "gateway"
    store = FleetStore(directory)
    store.put_facts({"program": meaning_of(PLAN, ControlLog()), "store": "s", "name": "house"})
    attic = [row("attic", second, 20 + second / 10) for second in (0, 10, 20, 60, 70)]
    cellar = [row("cellar", second, 12) for second in (0, 10)]
    open_ = [row("cellar", 20, 13, "tentative"), row("hall", 50, 17)]
    store.commit(FleetChanges(rows=[*attic, *cellar, *open_]))
    store.close()
    return directory


def plotted(capsys, *words):
    code = main(["plot", *map(str, words)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_lines_are_dashed_where_tentative_and_broken_where_a_window_lacks(
    gateway, tmp_path, capsys
):
    file = tmp_path / "day.svg"
    words = ("by_room", "--gateway", gateway, "-o", file, "--time-zone", "Europe/Berlin")
    code, out, _ = plotted(capsys, *words)
    assert code == Exit.FINE
    assert out == (
        f"{file}: 9 windows of 3 keys, 2026-07-01 14:00 CEST to 2026-07-01 14:01 CEST, 1 gap\n"
    )
    drawn = file.read_text()
    lines = re.findall(r'<g id="((?:attic|cellar|hall) \w+)">\s*<path d="([^"]*)"', drawn)
    assert [(name, path.count("M"), path.count("L")) for name, path in lines[:4]] == [
        ("attic final", 1, 2),
        ("attic final", 1, 1),
        ("cellar final", 1, 1),
        ("cellar tentative", 1, 1),
    ]
    dashed = re.findall(r'<g id="([^"]*)">\s*<path [^>]*stroke-dasharray', drawn)
    assert "cellar tentative" in dashed
    assert not [name for name in dashed if name.endswith("final")]
    assert '<g id="hall final">' in drawn  # a dot
    texts = re.findall(r"<text[^>]*>([^<]+)</text>", drawn)
    assert {"average (°C)", "end of the window, Europe/Berlin", "attic", "tentative"} <= {*texts}
    assert "by_room: windows of 10 s, every 10 s" in texts
    assert [text for text in texts if text.startswith("14:0")]


def test_the_same_rows_give_the_same_file(gateway, tmp_path, capsys):
    for name in ("one.svg", "two.svg"):
        assert plotted(capsys, "by_room", "--gateway", gateway, "-o", tmp_path / name)[0] == 0
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_a_png_is_written_under_the_windows_name(gateway, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ("by_room", "--gateway", gateway, "--key", "cellar", "--part", "count")
    assert plotted(capsys, *words)[1].startswith("by_room.png: 3 windows of 1 key, ")
    assert (tmp_path / "by_room.png").read_bytes().startswith(b"\x89PNG")


def test_an_agents_own_windows_are_drawn(tmp_path, capsys):
    device = Device(tmp_path / "data", greenhouse.plan())
    device.read([21.5], [NOW_US], tags={"room": "attic"})
    device.tick(60)
    program = "lasp_edge.examples.greenhouse:program"
    words = ("--data-dir", device.directory, "--program", program, "-o", tmp_path / "here.svg")
    code, out, err = plotted(capsys, "temperature_by_room", *words)
    assert (code, err) == (Exit.FINE, "")
    assert "6 windows of 1 key" in out


def test_a_lakes_windows_are_drawn(tmp_path, capsys):
    plan, lake = greenhouse.plan(), LakeTables(tmp_path / "lake")
    prepare(plan, lake)
    stream = plan.windows["temperature_by_room"].stream
    values = {"key": "attic", "stream": stream, "count": 2, "total_q": 4300}
    rows = [window("temperature_by_room", start_s * SECOND_US, 0, **values) for start_s in (0, 10)]
    write(lake.windows, rows)
    words = ("temperature_by_room", "--lake", lake.root, "-o", tmp_path / "lake.svg")
    code, out, err = plotted(capsys, *words)
    assert (code, err) == (Exit.FINE, "")
    assert "2 windows of 1 key, 1970-01-01" in out
    assert "average (°C)" in (tmp_path / "lake.svg").read_text()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["-o", "day.txt"], Exit.USAGE, "-o day.txt: the ending says the form, as in week.png"),
        (["--part", "max"], Exit.USAGE, "--part: by_room has mean, count, total_q, not 'max'"),
        (["--time-zone", "Berlin"], Exit.USAGE, "--time-zone: no zone 'Berlin' on this machine"),
        (["--key", "shed"], Exit.NOT_FOUND, "nothing to draw of 'by_room': no row fits"),
        (["-o", "/no/day.png"], Exit.USAGE, "cannot write /no/day.png: No such file"),
    ],
)
def test_what_cannot_be_drawn_is_said(gateway, capsys, words, code, said):
    found, out, err = plotted(capsys, "by_room", "--gateway", gateway, *words)
    assert (found, out) == (code, "")
    assert said in err


def test_without_matplotlib_one_line_says_what_to_type(gateway, capsys, monkeypatch):
    imported = builtins.__import__

    def lacking(name, *rest):
        if name.split(".")[0] in {"matplotlib", "cloud_tier.command.chart"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return imported(name, *rest)

    monkeypatch.delitem(sys.modules, "cloud_tier.command.chart", raising=False)
    monkeypatch.setattr(builtins, "__import__", lacking)
    code, out, err = plotted(capsys, "by_room", "--gateway", gateway)
    assert (code, out) == (Exit.ENVIRONMENT, "")
    assert "the Python package 'matplotlib' is not installed; to bring it, type: " in err
    assert re.search(r"pip install .*\[plot\]'?\n$", err)
