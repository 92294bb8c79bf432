"""The quantile sketch beside the package `ddsketch`: cost of an add, bytes, and the error.

Run: `python -m simulations.benchmarks quantile`. Both promise a relative error of 1 % and
get the same samples in steps of 0.01, log-normally spread about 20. A device adds its samples by
column; `one by one` combines a lifted sample into an immutable partial each time. The error is the
greatest found at any percentile, against the sample of that rank.
"""

import importlib
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

from lasp_edge import folds
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import Resolution
from simulations.benchmarks.measure import (
    OURS,
    Line,
    cpu_s,
    is_installed,
    missing,
    rates,
    sizes,
)

SAMPLES = 100_000
ERROR = 0.01
PEER = "ddsketch"
BRING = "not installed: pip install 'lasp-edge[bench]'"
STEP = Resolution("0.01")
PERCENTILES = tuple(range(1, 100))


def table(*, quick: bool = False) -> Iterator[Line]:
    """Yield the lines of this benchmark."""
    values = samples(SAMPLES // 10 if quick else SAMPLES)
    fold = folds.quantile(*[f"0.{n:02}" for n in PERCENTILES], relative_error=str(ERROR))
    there = is_installed(PEER)
    for lines, what in (
        (_adds(fold, values), "quantile sketch, 1 %: adds"),
        (_bytes(fold, values), f"quantile sketch, 1 %: bytes after {len(values):,} samples"),
        (_errors(fold, values), "quantile sketch, 1 %: greatest relative error of p1 ... p99"),
    ):
        yield from (line._replace(what=what) for line in lines)
        if not there:
            yield missing(what, PEER, BRING)


def samples(count: int) -> list[int]:
    """Return quantised samples, in steps of 0.01."""
    draw = random.Random(4)
    return [max(1, round(2_000 * math.exp(draw.gauss(0, 0.6)))) for _ in range(count)]


def by_column(fold: Fold, values: list[int]) -> Partial:
    """Return the partial of all values, lifted at once."""
    return fold.lift_column(values, [0] * len(values))


def one_by_one(fold: Fold, values: list[int]) -> Partial:
    """Return the partial of all values, each lifted and combined."""
    partial = fold.zero
    for value in values:
        partial = fold.combine(partial, fold.lift(value, 0))
    return partial


def peer(values: list[int]) -> Any:
    """Return the package's sketch of the values."""
    sketch = importlib.import_module("ddsketch").DDSketch(ERROR)
    for value in values:
        sketch.add(value / 100)
    return sketch


def _adds(fold: Fold, values: list[int]) -> Iterator[Line]:
    some = values[: len(values) // 20]

    def each_s(work: Callable[[list[int]], Any], given: list[int]) -> float:
        return cpu_s(lambda _: work(given), rounds=3) * len(values) / len(given)

    spent = {OURS: each_s(lambda given: by_column(fold, given), values)}
    if is_installed(PEER):
        spent[PEER] = each_s(peer, values)
    spent["one by one"] = each_s(lambda given: one_by_one(fold, given), some)
    notes = {
        OURS: "by column, as a device does it",
        "one by one": "ours too: an immutable partial is made again for each sample",
    }
    yield from rates("", "adds/s", len(values), spent, notes=notes)


def _bytes(fold: Fold, values: list[int]) -> Iterator[Line]:
    (packed,) = by_column(fold, values)
    assert isinstance(packed, bytes)
    figures = {OURS: float(len(packed))}
    if is_installed(PEER) and is_installed("google.protobuf"):
        figures[PEER] = float(peer_bytes(peer(values)))
    notes = {
        OURS: f"{len(packed) // 8} buckets of 8 B, of fixed width, so that SQL can read them",
        PEER: "its protobuf form, a double for each bin from the first to the last",
    }
    yield from sizes("", "B", figures, notes=notes)


def peer_bytes(sketch: Any) -> int:
    """Return the size of the package's sketch on the wire."""
    proto = importlib.import_module("ddsketch.pb.proto").DDSketchProto
    return len(proto.to_proto(sketch).SerializeToString())


def _errors(fold: Fold, values: list[int]) -> Iterator[Line]:
    ordered = sorted(values)
    lowered = fold.lower(by_column(fold, values), STEP)
    found = {OURS: [lowered[f"p{n}"] for n in PERCENTILES]}
    if is_installed(PEER):
        sketch = peer(values)
        found[PEER] = [sketch.get_quantile_value(n / 100) for n in PERCENTILES]
    truth = [ordered[n * (len(ordered) - 1) // 100] / 100 for n in PERCENTILES]
    figures = {
        way: 100 * max(abs(q - t) / t for q, t in zip(qs, truth, strict=True) if q is not None)
        for way, qs in found.items()
    }
    one_rounding = 2**-52  # of the double that a quantile is
    yield from sizes("", "%", figures, goal=100 * (ERROR + one_rounding))
