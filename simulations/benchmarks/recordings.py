"""The readings of the ingest benchmark: three real devices, copied until there are enough."""

import gzip
import json
import os
from collections.abc import Mapping
from pathlib import Path
from random import Random

from lasp_edge.units import SECOND_US

COPIES = 18
DAY_US = 25 * 3_600 * SECOND_US
"""The recording is a day and some minutes long; copies follow each other at this distance."""

Column = tuple[list[int | None], list[float]]
Fleet = dict[str, Column]
"""Device -> own times in microseconds, and values, in the order of acceptance."""


def recorded() -> tuple[dict[str, Column], str]:
    """Return three devices' readings of a day, and where they are from.

    The directory of real data is named by LASP_EDGE_TEST_DATA, else ../shared/data; without it the
    readings are drawn, at the real devices' periods.
    """
    named = os.environ.get("LASP_EDGE_TEST_DATA")
    checkout = Path(__file__).parent.parent.parent
    path = Path(named) if named else checkout.parent / "shared" / "data"
    path = path / "rpi_mqtt_3dev" / "messages.jsonl.gz"
    if not path.is_file():
        return drawn(), "no real data was found: the readings are drawn"
    found: dict[str, Column] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            message = json.loads(line)
            times_us, values = found.setdefault(message["device"], ([], []))
            times_us.append(round(message["ts"] * SECOND_US))
            values.append(message["data"]["temp"])
    return found, "real readings of three Raspberry Pis, temperatures"


def drawn() -> dict[str, Column]:
    """Return readings that look like those of three devices, one of them doubled."""
    draw, found = Random(1), {}
    for number, period_s in enumerate((5.43, 5.94, 3.69)):
        count = int(86_400 / period_s)
        start_us = 1_594_598_400 * SECOND_US
        times_us: list[int | None] = [
            start_us + round((at + draw.random() / 9) * period_s * SECOND_US) for at in range(count)
        ]
        values = [round(draw.gauss(22, 3), 1) for _ in range(count)]
        times_us.insert(99, times_us[98])
        values.insert(99, values[98])
        found[f"pi-{number}"] = (times_us, values)
    return found


def tiled(recording: Mapping[str, Column], readings: int, copies: int = COPIES) -> Fleet:
    """Return `copies` of each device, each its days one after the other, cut to fit."""
    share = readings / copies / sum(len(values) for _, values in recording.values())
    fleet = {}
    for device, (times_us, values) in recording.items():
        count = max(1, round(share * len(values)))
        days = range(count // len(values) + 1)
        later = [(time_us or 0) + day * DAY_US for day in days for time_us in times_us][:count]
        for copy in range(copies):
            fleet[f"{device}-{copy}"] = (list[int | None](later), (values * len(days))[:count])
    return fleet
