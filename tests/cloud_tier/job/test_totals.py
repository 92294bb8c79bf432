"""The totals of windows from panes, compared with sums over each window's panes one by one."""

import random
from collections import defaultdict

import pyarrow as pa
import pytest

from cloud_tier.job import merge, totals
from cloud_tier.job.frames import frames
from lasp_edge.folds.columns import Column, Op

pytestmark = pytest.mark.spark

COLUMNS = (Column("total_q", Op.SUM), Column("most", Op.MAX, 2**58))
SHAPES = [(1, 1), (6, 1), (6, 2), (5, 3), (2, 2), (64, 1), (65, 1), (300, 7), (10, 40)]
"""(panes of a window, panes from a window's start to the next)."""
SPAN_US = 10
GREATEST_US = 4_000


@pytest.fixture(scope="module")
def fleet():
    """Return the panes of some streams, and which windows are asked for: spans by stream."""
    draw, panes, spans = random.Random(7), [], {}
    for stream, (_, slide) in enumerate(SHAPES):
        for key, device in [("a", "pi-1"), ("a", "pi-2"), ("a", "pi-3"), ("b", "pi-1")]:
            share = draw.choice([0.02, 0.3, 1.0])
            times = range(-GREATEST_US, GREATEST_US, SPAN_US)
            present = [pane_us for pane_us in times if draw.random() < share]
            panes += [
                (stream, key, pane_us, device, life, 7, seq, draw.randrange(100))
                for pane_us in present
                for life in range(1, draw.choice([2, 2, 3]))
                for seq in range(1, draw.choice([2, 3]))
            ]
        slide_us, bounds = slide * SPAN_US, sorted(draw.sample(range(-5_000, 5_000), 6))
        spans[stream] = [
            (first - first % slide_us, last - last % slide_us)
            for first, last in zip(bounds[::2], bounds[1::2], strict=True)
            if first - first % slide_us <= last - last % slide_us
        ]
        spans[stream] = [
            span
            for at, span in enumerate(spans[stream])
            if not at or spans[stream][at - 1][1] < span[0]
        ]
    return panes, spans


def expected(panes, spans):
    """Return (stream, key, start) -> (total, greatest, devices), window by window."""
    newest = {}
    for stream, key, pane_us, device, life, nonce, seq, value in panes:
        entry = newest.setdefault((stream, key, pane_us, device, life, nonce), (seq, value))
        newest[stream, key, pane_us, device, life, nonce] = max(entry, (seq, value))
    at_times = defaultdict(list)
    for (stream, key, pane_us, device, *_), (_, value) in newest.items():
        at_times[stream, key, pane_us].append((device, value))
    found = {}
    for stream, (size, slide) in enumerate(SHAPES):
        for first, last in spans[stream]:
            for start_us in range(first, last + 1, slide * SPAN_US):
                for key in "ab":
                    inside = [
                        each
                        for at in range(size)
                        for each in at_times[stream, key, start_us + at * SPAN_US]
                    ]
                    if inside:
                        values = [value for _, value in inside]
                        devices = len({device for device, _ in inside})
                        found[stream, key, start_us] = (sum(values), max(values), devices)
    return found


def rows_of(spark, names, rows):
    """Return rows as a frame: text and long integers."""
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(columns, names))


def test_each_window_holds_its_panes_and_counts_its_devices_once(spark, fleet):
    panes, spans = fleet
    truth = expected(panes, spans)
    assert len(truth) > 1_000
    names = [*merge.PANE_IDENTITY, "seq", "total_q"]
    absent = ["CAST(NULL AS BIGINT) low_us", "CAST(NULL AS BOOLEAN) done", "0L AS changed"]
    lattice = rows_of(spark, names, panes).selectExpr("*", "total_q AS most", *absent)
    named = ["_stream", "_first_us", "_last_us", "_slide_us", "_reach_us"]
    asked = [
        (stream, first, last, SHAPES[stream][1] * SPAN_US, (SHAPES[stream][0] - 1) * SPAN_US)
        for stream, each in spans.items()
        for first, last in each
    ]
    with frames(spark, few=False) as made:
        spans_ = made.view(rows_of(spark, named, asked))
        found = totals.of_panes(made, made.view(lattice), COLUMNS, spans_, {})
        columns = ("stream", "key", "start_us", "total_q", "most", "devices_in")
        rows = found.select(*columns).frame().collect()
    assert {
        (stream, key, start_us): (int(total), most, devices)
        for stream, key, start_us, total, most, devices in rows
    } == truth
    assert len(rows) == len(truth)
