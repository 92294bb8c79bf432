"""A stranger publishes garbage on the fleet's topics while all runs, and nothing comes of it."""

import time
from itertools import chain

import pytest

from tests.end_to_end import programs, tables, truth
from tests.end_to_end.processes import SETTLES_S, Site, now_s
from tests.end_to_end.stranger import Stranger, huge, words

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.broker]
DEVICES = ["iot-device-01", "iot-device-02", "iot-device-03"]
LINES = 2_000
LASTS_S = 15.0
SEED = 5


def test_a_strangers_garbage_is_refused_and_changes_nothing(tmp_path, lines):
    some = lines[:LINES]
    path = tmp_path / "some.jsonl"
    path.write_text("".join(some), encoding="utf-8")
    speed = truth.lasts_s(some) / LASTS_S
    now_us = time.time_ns() // 1_000  # noqa: TID251 - what the lander's clock shows
    program = programs.program
    said = chain(
        huge(program, DEVICES[0], SEED), words(program, DEVICES, now_us, SEED)
    )
    with Site(tmp_path / "site", path, DEVICES, "--speed", f"{speed:.3f}") as site:
        site.start_cloud()
        site.start_agents()
        site.heard()
        ends_s = now_s() + SETTLES_S
        with Stranger(site.broker.url, said) as stranger:
            stranger.speak_while(lambda: not site.landed() and now_s() < ends_s)
        site.settle()
        site.finish_cloud()
        reports = site.reports()
        site.stop()
    assert stranger.count > 1_000
    for name in truth.WINDOWS:
        expected = tables.expected(truth.windows(some, name), name)
        assert not tables.difference(tables.held(site.lake, name), expected), f"seed {SEED}"
    value = tables.fleet_value(site.lake, "last_everywhere")
    assert {each["values"]["last_everywhere"]["inputs"] for each in reports.values()} == {
        value["inputs"]
    }
    rejects = tables.sql(site.lake, "rejects", "SELECT reason, topic, frame FROM w")
    print(sorted({row["reason"] for row in rejects}), stranger.count)
    assert {"too large", "not msgpack", "not an envelope", "not the frame of its topic"} <= {
        row["reason"] for row in rejects
    }
    assert max(len(row["frame"]) for row in rejects) <= 4_096
    for process in (site.cloud, *site.agents.values()):
        assert "Traceback" not in process.last_words()
