"""A stranger publishes garbage on the fleet's topics while all runs, and nothing comes of it."""

import time
from itertools import chain

import pytest

from simulations.processes.process import now_s
from tests.brokers import PATIENCE_S, broker_program
from tests.end_to_end import support_recorded, tables, truth
from tests.end_to_end.stranger import Stranger, huge, publications
from tests.end_to_end.support_site import Site

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.broker]
DEVICES = ["iot-device-01", "iot-device-02", "iot-device-03"]
LINES = 2_000
LASTS_S = 4.0
SEED = 5
REASONS = {
    "incarnation too far ahead",
    "not an envelope",
    "not msgpack",
    "not the frame of its topic",
    "panes from the far future",
    "promise from the far future",
    "too large",
    "unknown stream",
}


def test_a_strangers_garbage_is_refused_and_changes_nothing(tmp_path, lines, spark):
    broker_program("mosquitto")  # the other is too slow for so many frames
    some, program = lines[:LINES], support_recorded.program.plan()
    now_us = time.time_ns() // 1_000  # noqa: TID251 - what the lander's clock shows
    frames = chain(huge(program, DEVICES[0], SEED), publications(program, DEVICES, now_us, SEED))
    speed = truth.speed(some, LASTS_S)
    with Site(tmp_path / "site", truth.written(tmp_path, some), DEVICES, *speed) as site:
        site.start_lander()
        site.start_agents()
        site.heard()
        ends_s = now_s() + PATIENCE_S
        with Stranger(site.broker.url, frames) as stranger:
            stranger.speak_while(lambda: not site.landed() and now_s() < ends_s)
        site.settle()
        site.merge(spark)
        inputs = {each["values"]["last_everywhere"]["inputs"] for each in site.reports().values()}
        site.stop()
    assert stranger.count > 1_000
    wrong = tables.wrong(site.lake, some)
    assert not wrong, f"seed {SEED}: {wrong}"
    assert inputs == {tables.fleet_value(site.lake, "last_everywhere")["inputs"]}
    rejects = tables.sql(site.lake, "rejects", "SELECT reason, frame FROM w")
    assert {row["reason"] for row in rejects} >= REASONS
    assert max(len(row["frame"]) for row in rejects) <= 4_096
    assert "Traceback" not in site.last_words()
