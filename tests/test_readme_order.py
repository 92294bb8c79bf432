"""What the docs show of scans comes out as shown: programs on a core, a correction by processes."""

import json
import re
import subprocess

import pytest

from cloud_tier.job.job import Job
from cloud_tier.job.results import Frontiers, append_results
from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.tables import LakeTables
from device_agent.agent.stored_rows import Retraction
from lasp_edge.checking.streams import tried_streams
from lasp_edge.language.streaming import parts_of, shown_parts
from lasp_edge.testing import replay
from lasp_edge.tool.command_line import main
from simulations.processes.broker import PrivateBroker
from tests.brokers import PATIENCE_S, broker_program, until_true
from tests.cloud_tier.support_devices import row, table
from tests.device_agent.agent.scans.support_streams import SECOND_US, Metered
from tests.device_agent.agents import NOW_US
from tests.support_readme import block, commands, here, succeeds


@pytest.fixture
def run(tmp_path):
    """Return a function: a program over (name, seconds, value, tags); its device and results."""
    made = []

    def run_program(text, readings, minutes=60):
        shown = {}
        exec(text, shown)
        device = Metered(tmp_path, program=shown["program"].plan())
        made.append(device)
        for name, at_s, value, tags in readings:
            at_us = NOW_US + at_s * SECOND_US
            device.now_us = max(device.now_us, at_us)
            device.take([value], [at_us], [tags], name=name)
        for name in {name for name, *_ in readings}:
            device.take([None], [None], [{}], name=name, done=True)
        device.tick(60 * minutes)
        return device

    yield run_program
    for device in made:
        device.kill()


def rows(device, name):
    """Return key and parts of a result, in order."""
    result = device.program.stream_results[name]
    found = [row for _, row in sorted(device.said(name).items()) if row.event is not None]
    values = [(row.event.key, row.event.value) for row in found]
    return [(key, *shown_parts(result, parts_of(result, value)).values()) for key, value in values]


def test_runs_of_a_machine(run):
    tags = {"machine": "m1"}
    readings = [("power", at_s, watts, tags) for at_s, watts in ((0, 100), (60, 120), (900, 7))]
    device = run(block("laundry"), [*readings, ("power", 120, 2, tags)])
    first, second = rows(device, "runs")
    assert first == ("m1", NOW_US, NOW_US + 60 * SECOND_US, 2, 110)
    assert second[3:] == (1, 7)


def test_a_door_that_is_left_open(run):
    told = ((0, 0), (100, 1), (150, 1), (200, 0), (300, 1), (1500, 0), (1600, 1))
    device = run(block("cold room"), [("door", at_s, v, {"room": "hall"}) for at_s, v in told])
    opened = [NOW_US + at_s * SECOND_US for at_s in (300, 1600)]
    assert rows(device, "left_open") == [("hall", at_us) for at_us in opened]
    assert device.alarms == {f"hall open since {at_us}" for at_us in opened}


def test_two_sensors_of_one_moment(run):
    told = (("temperature", 10, 20), ("humidity", 10, 50), ("temperature", 40, 21.5))
    told = (*told, ("humidity", 45, 55), ("temperature", 200, 22))
    device = run(block("climate"), [(*each, {"room": "attic"}) for each in told])
    assert [value for _, value in rows(device, "dew_point")] == [9.26, 10.63]


def test_words_are_counted(run):
    device = run(block("words"), [("line", 1, "dog cat dog", {}), ("line", 2, "dog", {})])
    counts = [parts[2:] for parts in rows(device, "counts")]
    assert counts == [("dog", 1), ("cat", 1), ("dog", 2), ("dog", 3)]


def test_rows_are_in_the_lake_as_shown(run, tmp_path, capsys):
    """What a device sends of the meter's readings, and the job's part that needs no Spark."""
    read = [json.loads(line) for line in block("meter readings").splitlines()]
    device = run(block("meter"), [])
    for each in read:
        value = Retraction(each["litres"]) if each.get("wrong") else each["litres"]
        device.take([value], [each["ts"] * SECOND_US], [{}], name="litres")
        device.land()
    device.settle()
    lake = LakeTables(tmp_path / "lake")
    prepare(device.program, lake)
    job = Job(device.program, lake)
    result = device.program.stream_results["used"]
    landed = [
        row("pane", name, life, nonce, seq, stream=of, key=key, pane_us=at_us, said=partial[0])
        for (of, key, at_us, name, life, nonce), (seq, partial) in device.landed.panes.items()
        if of == result.stream
    ]
    job.tables.append(lake.lattice, table(device.program, landed))
    touched = {result.stream: dict.fromkeys([each["pane_us"] for each in landed], 1)}
    append_results(job, touched, Frontiers(None, 2**60))
    (words,) = commands(block("rows in the lake"))
    assert main(words.replace("./lake", lake.root).split()[1:]) == 0
    assert capsys.readouterr().out == block("rows as they stand")


@pytest.mark.slow
@pytest.mark.broker
def test_a_wrong_reading_is_corrected_as_shown(tmp_path):
    agent, status = commands(block("correcting"))
    (tmp_path / "water.py").write_text(block("meter"))
    (tmp_path / "meter.jsonl").write_text(block("meter readings"))
    with PrivateBroker(tmp_path / "broker", broker_program()) as broker:
        looked = here(status, tmp_path, broker.url)
        words = here(agent, tmp_path, broker.url)
        running = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        try:
            until_true(lambda: "6 readings" in running.stdout.readline(), 60)
            until_true(
                lambda: block("corrected") in succeeds(looked, tmp_path),
                60,
            )
        finally:
            running.terminate()
            running.wait(timeout=PATIENCE_S)


DOORS = block("entrance"), block("order of doors"), block("readings of doors"), block("visits")
PLUGS = block("energy"), block("order of plugs"), block("readings of plugs"), block("loads")


@pytest.mark.slow
@pytest.mark.broker
@pytest.mark.parametrize(
    ("program", "typed", "read", "rows"), [DOORS, PLUGS], ids=["entrance", "energy"]
)
def test_one_order_over_three_devices_is_as_shown(request, tmp_path, program, typed, read, rows):
    gateway, agent, results = commands(typed)
    (tmp_path / f"{request.node.callspec.id}.py").write_text(program)
    by_device = {}
    for line in read.splitlines():
        by_device.setdefault(json.loads(line)["of"], []).append(line)
    of = agent.split("--device ")[1].split()[0]
    with PrivateBroker(tmp_path / "broker", broker_program()) as broker:
        running = [start(f"{gateway} --commit-every 0.2 --dead-after 5", tmp_path, broker)]
        try:
            for device, lines in by_device.items():
                (tmp_path / f"{device}.jsonl").write_text("\n".join(lines) + "\n")
                running.append(start(agent.replace(of, device), tmp_path, broker))
            looked = here(results, tmp_path, broker.url)
            shown = without_revisions(rows)
            until_true(lambda: without_revisions(printed(looked, tmp_path)) == shown, 120)
        finally:
            for each in running:
                each.kill()
                each.wait()


def test_points_far_from_the_mean_of_the_newest_model():
    shown = {}
    exec(block("outliers"), shown)
    near = [("a", "point", 10 + n % 3, n) for n in range(9)]
    given = [*near, ("desk", "train", 1, 10), ("b", "point", 50, 11), ("a", "point", 9, 12)]
    late = [("b", "point", 90, 5)]  # before there is a model; and it widens the model behind it
    found = [row["value"] for row in replay(shown["program"], given).result("odd")]
    again = [row["value"] for row in replay(shown["program"], given + late).result("odd")]
    assert (found, again) == ([50], [])


@pytest.mark.parametrize("name", ["energy", "outliers"])
def test_the_laws_hold_and_a_share_of_all_breaks_one_as_shown(name):
    shown = {}
    exec(block(name), shown)
    assert tried_streams(shown["program"].plan()).wrong == []
    exec(block("outliers").replace("return state[0], (0, 0, 0)", "return state"), shown)
    (wrong,) = tried_streams(shown["program"].plan()).wrong
    assert f"FAIL  {wrong}\n" == block("a broken law")


def test_choices_of_order_cost_what_is_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "energy.py").write_text(block("energy"))
    (tmp_path / "plugs.jsonl").write_text(block("readings of plugs"))
    (typed,) = commands(block("choices"))
    assert main(typed.split()[1:]) == 0
    assert capsys.readouterr().out == block("choices shown")
    often = {"ts": 1_700_000_000, "house": "oak"}
    lines = [
        often | {"ts": often["ts"] + n, "power": 100 + n % 9, "of": "oven"} for n in range(3600)
    ]
    lines += [each | {"of": "washer"} for each in lines]
    ends = range(600, 3601, 600)
    lines += [often | {"ts": often["ts"] + n - 0.5, "slice": 1, "of": "meter"} for n in ends]
    (tmp_path / "plugs.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert main(typed.split()[1:]) == 0
    sizes = re.findall("([0-9,]+) bytes", capsys.readouterr().out)
    local, everything, _ = (int(size.replace(",", "")) for size in sizes)
    print(f"{everything / local:.1f} times")
    assert everything > 8 * local


def start(line, directory, broker):
    """Start a command of the docs, with its paths in a directory."""
    return subprocess.Popen(
        here(line, directory, broker.url), cwd=directory, stdout=subprocess.DEVNULL
    )


def printed(line, directory):
    """Return what a command prints; nothing while there is nothing yet."""
    found = subprocess.run(line, cwd=directory, capture_output=True, text=True, check=False)
    return found.stdout


def without_revisions(text):
    """Return the lines without the number of revisions: how many there were is chance.

    On a busy machine a device may begin so late that rows were final without it: they are revised.
    """
    return [line.replace("revised", "final").split()[:-1] for line in text.splitlines()]
