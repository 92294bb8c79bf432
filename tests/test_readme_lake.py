"""What the README shows of a lake: the trial's windows, and its tables in other tools."""

import json
import os
import re
import sys
from importlib.util import find_spec

import pytest

from lasp_edge import folds
from tests.brokers import PATIENCE_S
from tests.support_missing import lacks
from tests.support_readme import BIN, CHECKOUT, block, commands, here, succeeds


@pytest.fixture(scope="module")
def trial(warm_jvm, tmp_path_factory):
    """A folder with the lake that the README's trial run of a recording leaves."""
    home = tmp_path_factory.mktemp("trial")
    (home / "readings.jsonl").write_text(block("recording"))
    demo, windows = commands(block("trial"))
    with warm_jvm.lent():
        told = succeeds(here(demo, home, ""), home, timeout=PATIENCE_S)
    assert told.splitlines()[-1] == "RESULT ok"
    return home, succeeds(["sh", "-c", f"PATH={BIN}:$PATH; {windows}"], home)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.broker
def test_trial_gives_the_windows_that_are_shown(trial):
    _, printed = trial
    # How often a window was revised tells in how many batches its readings came.
    shown, printed = (
        re.sub(r",\d+$", "", t, flags=re.MULTILINE) for t in (block("trial output"), printed)
    )
    assert printed == shown


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.broker
def test_lake_opens_in_deltalake_and_duckdb(trial):
    home, _ = trial
    first = succeeds([sys.executable, "-c", block("deltalake")], home)
    assert "'attic'" in first
    assert "'count': " in first
    (*_, current) = commands(block("looking into a lake"))
    assert "./tables/rooms" in succeeds(here(current, home, ""), home)
    shown = succeeds([sys.executable, "-c", block("duckdb")], home)
    accepted = [json.loads(line) for line in block("recording").splitlines()]
    for room, mean in greatest_means(accepted).items():
        assert re.search(rf"{room} +│ +{mean} ", shown), shown


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.broker
def test_the_notebook_makes_a_plot_of_the_lake(trial):
    if find_spec("matplotlib") is None:
        lacks("matplotlib is not installed; type: make setup")
    home, _ = trial
    cells = json.loads((CHECKOUT / "docs" / "lake.ipynb").read_text())["cells"]
    code = ["".join(each["source"]) for each in cells if each["cell_type"] == "code"]
    succeeds([sys.executable, "-c", "\n".join(code)], home)
    assert (home / "temperature.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.broker
def test_analysts_read_the_lake_in_python_and_on_the_command_line(trial):
    home, _ = trial
    told = succeeds([sys.executable, "-c", block("analysts")], home).splitlines()
    assert "'mean': 21.37, 'status': 'final'" in told[0]
    assert "'name': 'global_average', 'key': '', 'mean': 17.14" in told[1]
    assert "{'device': 'attic-pi', 'state': 'done', 'holds': False}" in told[2]
    assert told[3] == "20 windows were known when results were final up to 00:05"
    assert re.fullmatch(r"\d+ rows up to version \d+, 0 since", told[4])
    windows, status, _ = (
        succeeds(here(command, home, ""), home)
        for command in commands(block("looking into a lake"))
    )
    assert windows.count("attic") == len(windows.splitlines()) - 1 > 0
    assert "program greenhouse" in status
    assert "all that landed is merged" in status


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.broker
def test_the_tutorial_goes_from_a_file_to_a_plot(warm_jvm, tmp_path):
    if find_spec("matplotlib") is None:
        lacks("matplotlib is not installed; type: make setup")
    cells = json.loads((CHECKOUT / "docs" / "tutorial.ipynb").read_text())["cells"]
    code = ["".join(each["source"]) for each in cells if each["cell_type"] == "code"]
    words = ["env", f"PATH={BIN}:{os.environ['PATH']}", sys.executable, "-c", "\n".join(code)]
    with warm_jvm.lent():
        printed = succeeds(words, tmp_path)
    assert printed.splitlines()[-1] == "RESULT ok"
    assert (tmp_path / "rooms.png").read_bytes().startswith(b"\x89PNG")


def greatest_means(accepted):
    """The greatest mean of a minute, every 10 seconds, by room."""
    known = {(r["data"]["location"], r["ts"], r["data"]["temp"], r["device"]) for r in accepted}
    means = {}
    for start in {int(ts) // 10 * 10 - back for _, ts, *_ in known for back in range(0, 60, 10)}:
        of = {}
        for room, ts, warm, _ in known:
            if start <= ts < start + 60 and warm is not None:
                of.setdefault(room, []).append(round(warm * 100))
        for room, steps in of.items():
            means[room] = max(means.get(room, 0), sum(steps) / len(steps) / 100)
    return means


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.broker
def test_lake_opens_in_spark_and_its_merged_view_holds_every_reading_once(trial, spark, capsys):
    home, _ = trial
    shown = {}
    (*_, current) = commands(block("looking into a lake"))
    assert "./tables/rooms" in succeeds(here(current, home, ""), home)
    code = block("spark").replace("lake/", f"{home}/lake/").replace("tables/", f"{home}/tables/")
    exec(code, shown)  # Spark runs elsewhere
    accepted = [json.loads(line) for line in block("recording").splitlines()]
    printed = dict(re.findall(r"^\| *(\w+)\| *([\d.]+)\|$", capsys.readouterr().out, re.MULTILINE))
    assert {room: float(mean) for room, mean in printed.items()} == greatest_means(accepted)
    assert shown["spark"].sparkContext is spark.sparkContext
    merged = shown["spark"].sql(block("merged view")).collect()
    known = {(r["ts"], r["device"], r["data"]["temp"]) for r in accepted}
    assert sum(row["count"] for row in merged) == len([k for k in known if k[2] is not None])


def image(*values):
    return folds.distinct().lift_column(values, [0] * len(values))[0]


@pytest.mark.slow
@pytest.mark.spark
def test_spark_joins_sketches_by_its_own_functions(spark):
    rows = [("a", "attic", 0, 0, image(1)), ("a", "attic", 0, 1, image(1, 2, 3))]
    rows += [("a", "cellar", 0, 0, image(3, 4)), ("b", "attic", 0, 0, image(9))]
    columns = "window string, key string, start_us long, revision int, seen_distinct_hll12 binary"
    spark.createDataFrame(rows, columns).createOrReplaceTempView("windows")
    found = spark.sql(block("sketches")).collect()
    assert sorted((row["window"], row["seen"]) for row in found) == [("a", 4), ("b", 1)]
