"""Streams of real agents, through broker, lander, Spark and Delta: late readings, corrections."""

import json
from random import Random

import pytest

from cloud_tier import Lake
from lasp_edge.ordered.places import place_text
from simulations.oracle import Reading, rows
from tests.brokers import broker_program
from tests.end_to_end import streamed, tables
from tests.end_to_end.support_site import Site, until

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.broker]
BEGIN_S = 1_700_000_000
DEVICES = ("pi-1", "pi-2")
PLAN = streamed.program.plan()


def line(device, at_s, litres, tap, *, wrong=False):
    return {"ts": BEGIN_S + at_s, "device": device, "litres": litres, "tap": tap, "wrong": wrong}


def readings_of(lines):
    return [
        Reading(
            each["device"],
            "litres",
            each["litres"],
            each["ts"] * 1_000_000,
            {"tap": each["tap"]},
            retracted=each["wrong"],
        )
        for each in lines
    ]


def measured():
    """Return lines of two meters: some come late, one twice, and a meter is exchanged."""
    rng, lines = Random(7), []
    for device in DEVICES:
        total, at_s, own = 0.0, 0, []
        for _ in range(60):
            at_s += rng.choice((5, 5, 20, 90))
            total += rng.choice((0, 0.5, 3, -total))
            own.append(line(device, at_s, total, rng.choice("ab")))
        own[20], own[40] = own[40], own[20]
        lines += [*own, own[7]]
    return lines


def corrections(lines):
    """Return lines that take a reading of each meter back and put another there, and a late one."""
    found = []
    for at, device in enumerate(DEVICES):
        wrong = lines[61 * at + 30]
        found += [
            wrong | {"wrong": True},
            wrong | {"litres": wrong["litres"] + 4},
            line(device, 33, 2.5, "a"),
        ]
    return found


def held(lake, name):
    """Return the rows that the command prints: (device, place) -> key and parts in steps."""
    columns = PLAN.stream_results[name].columns
    printed = tables.command("results", name, "--lake", str(lake))
    assert {row["present"] for row in printed} == {"True"}
    assert [(row["key"], int(row["time_us"])) for row in printed] == sorted(
        (row["key"], int(row["time_us"])) for row in printed
    )
    return {
        (row["device"], row["place"]): (row["key"], tuple(int(row[each]) for each in columns))
        for row in printed
    }


def right(name, lines):
    found = rows(PLAN, name, readings_of(lines))
    return {(d, place_text(place)): (row.key, row.parts) for (d, place), row in found.items()}


def replay(site, spark, life):
    """Let agents read the file as far as it goes, in this life of theirs; merge what they say."""
    site.start_lander()
    site.start_agents()
    until(site.landed, lambda: f"landed\n{site.standing()}")
    query = f"SELECT count(DISTINCT device) AS n FROM w WHERE done AND incarnation = {life}"
    until(
        lambda: tables.sql(site.lake, "landing", query)[0]["n"] == len(DEVICES),
        lambda: f"promised\n{site.standing()}",
    )
    site.merge(spark)
    site.stop()


def test_results_in_the_lake_are_revised_as_the_readings_are(tmp_path, spark):
    broker_program()
    recording = tmp_path / "meters.jsonl"
    first = measured()
    recording.write_text("".join(json.dumps(each) + "\n" for each in first))
    options = {"program": streamed.SPEC, "fields": streamed.FIELDS}
    with Site(tmp_path / "site", recording, DEVICES, **options) as site:
        replay(site, spark, life=1)
        for name in PLAN.stream_results:
            assert held(site.lake, name) == right(name, first)
        lake = Lake(site.lake)
        before = lake.results("used").current()
        assert set(before.column("status").to_pylist()) == {"final"}
        corrected = corrections(first)
        with recording.open("a") as file:
            file.writelines(json.dumps(each) + "\n" for each in corrected)
        replay(site, spark, life=2)
        for name in PLAN.stream_results:
            assert held(site.lake, name) == right(name, [*first, *corrected])
    after = lake.results("used").revisions().to_pylist()
    taken_back = [row for row in after if not row["present"]]
    places = {(row["device"], row["place"]) for row in taken_back}
    assert {device for device, _ in places} == set(DEVICES)
    assert {row["status"] for row in after if row["revision"]} <= {"final", "revised"}
    assert {row["status"] for row in taken_back} == {"revised"}
    as_it_was = before.column("frontier").to_pylist()[-1]
    assert lake.results("used").revisions(as_of=as_it_was).num_rows >= before.num_rows
