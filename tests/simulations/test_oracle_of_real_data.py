"""The oracle gives the answers to real data that the reference files hold."""

import csv
import gzip
import json
import random
from collections import Counter as Tally
from decimal import ROUND_HALF_EVEN, Decimal

import pytest

from simulations.oracle import (
    Reading,
    WindowTruth,
    dynamic_partials,
    local_partials,
    windows,
)
from tests.simulations.support_oracle import temperatures


@pytest.fixture(scope="module")
def messages(shared_data):
    """Messages of three real devices, in the order of their arrival."""
    with gzip.open(shared_data / "rpi_mqtt_3dev" / "messages.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def readings(messages):
    return [
        Reading(m["device"], "temperature", m["data"]["temp"], round(m["ts"] * 1_000_000))
        for m in messages
    ]


@pytest.fixture(scope="module")
def minutes(readings):
    return windows(temperatures(), "minute", readings)


def test_windows_of_real_data_are_the_reference(shared_data, minutes):
    path = shared_data / "rpi_mqtt_3dev" / "reference_windows_temp_60s.csv.gz"
    with gzip.open(path, "rt", newline="") as lines:
        rows = [{name: int(text) for name, text in row.items()} for row in csv.DictReader(lines)]
    reference = {}
    for row in rows:
        assert row["end_us"] == row["start_us"] + 60_000_000
        partial = (row["count"], row["total_q"], row["min_q"], row["max_q"])
        reference["", row["start_us"]] = WindowTruth(partial, row["devices_in"])
    assert len(reference) == 8_671
    assert minutes == reference


def test_last_hundred_of_real_data_are_the_reference(shared_data, readings):
    path = shared_data / "rpi_mqtt_3dev" / "reference_last100_temp.csv"
    with path.open(newline="") as lines:
        reference = {row.pop("device"): row for row in csv.DictReader(lines)}
    by_device = {d: [r for r in readings if r.device == d] for d in reference}
    assert sum(map(len, by_device.values())) == len(readings) == 50_270
    by_device = {d: of[-3_000:] for d, of in by_device.items()}  # no older ones are in a set
    partials = []
    for device, row in reference.items():
        partials.append(local_partials(temperatures(), "last", by_device[device])[""])
        assert partials[-1] == tuple(int(row[n]) for n in ("count", "total_q", "min_q", "max_q"))
    counts, totals, least, greatest = zip(*partials, strict=True)
    assert dynamic_partials(temperatures(), "fleet", by_device)[""] == (
        sum(counts),
        sum(totals),
        min(least),
        max(greatest),
    )


def test_shuffled_and_repeated_messages_give_the_same_windows(readings):
    chance = random.Random(3)
    some = readings[:8_000]
    doubled = [*some, *chance.sample(some, 800)]
    chance.shuffle(doubled)
    assert windows(temperatures(), "minute", doubled) == windows(temperatures(), "minute", some)


def brute_force(messages, size_us, slide_us, first_us, last_us):
    """Compute windows another way: by decimals, and from each window to its readings."""
    seen = {
        (
            message["device"],
            round(Decimal(message["ts"]) * 1_000_000),
            int((Decimal(message["data"]["temp"]) * 100).quantize(Decimal(1), ROUND_HALF_EVEN)),
        )
        for message in messages
    }
    found = {}
    for start_us in range(first_us // slide_us * slide_us, last_us, slide_us):
        inside = [row for row in seen if start_us <= row[1] < start_us + size_us]
        if inside:
            values = sorted(value for _, _, value in inside)
            partial = (len(values), sum(values), values[0], values[-1])
            found["", start_us] = WindowTruth(partial, len(Tally(row[0] for row in inside)))
    return found


@pytest.mark.parametrize(("name", "size_s", "slide_s"), [("minute", 60, 10), ("uneven", 50, 20)])
def test_windows_equal_a_brute_force_on_a_slice(messages, readings, name, size_s, slide_s):
    some, size_us, slide_us = messages[20_000:20_800], size_s * 1_000_000, slide_s * 1_000_000
    truth = windows(temperatures(), name, readings[20_000:20_800])
    times = [round(message["ts"] * 1_000_000) for message in some]
    first_us, last_us = min(times) - size_us, max(times) + slide_us
    assert truth == brute_force(some, size_us, slide_us, first_us, last_us)
    assert len(truth) > 50
