"""The recorded fleet, merged by Spark: the reference windows, integer for integer."""

import csv
import gzip
import json
import random

import pytest

from lasp_edge import Program, folds
from simulations.oracle import Reading
from tests.cloud_tier.lakes import LakeUnderTest
from tests.cloud_tier.support_devices import Device, table

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def program():
    made = Program("recorded")
    temperature = made.event("temperature", resolution="0.01")
    made.window(
        "minute",
        source=temperature,
        fold=folds.struct(mean=folds.mean(), min=folds.min(), max=folds.max()),
        size_s=60,
        slide_s=10,
    )
    return made.plan()


def recorded(folder):
    seen = set()
    with gzip.open(folder / "messages.jsonl.gz", "rt") as lines:
        for line in lines:
            message = json.loads(line)
            time_us = round(message["ts"] * 1_000_000)
            reading = (message["device"], round(message["data"]["temp"] * 100), time_us)
            if reading not in seen:
                seen.add(reading)
                yield Reading(reading[0], "temperature", message["data"]["temp"], time_us)


def test_recorded_readings_give_the_reference_windows(spark, tmp_path, shared_data):
    folder = shared_data / "rpi_mqtt_3dev"
    made, rows = program(), []
    devices = {}
    for reading in recorded(folder):
        device = devices.setdefault(reading.device, Device(made, reading.device))
        device._variable = dict
        rows += [row for row in device.accept([reading]) if row]
    draw = random.Random(5)
    rows += draw.sample(rows, 5_000)
    draw.shuffle(rows)
    lake = LakeUnderTest(spark, made, tmp_path)
    half = len(rows) // 2
    lake.step(rows[:half])
    lake.step(rows[half:])
    assert table(made, rows).num_rows > 50_000
    with gzip.open(folder / "reference_windows_temp_60s.csv.gz", "rt") as lines:
        truth = {
            ("minute", "", int(row["start_us"])): (
                tuple(int(row[name]) for name in ("count", "total_q", "min_q", "max_q")),
                int(row["devices_in"]),
            )
            for row in csv.DictReader(lines)
        }
    assert len(truth) == 8_671
    assert lake.current() == truth
