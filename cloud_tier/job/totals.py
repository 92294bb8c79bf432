"""The totals of windows, and how many devices are in each: from the panes, as relational algebra.

A window of 60 s that begins every 10 s holds each pane six times, and a fleet has many devices. So
what is the same for many is brought together before it is put into each window:

    partials   panes of several devices that are in the same windows are combined first
    devices    a device's windows are bits, 64 in a number, and equal numbers are counted

Both then meet in one aggregate. Nothing sorts, and no Python touches a row, but for folds that
combine by themselves.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from cloud_tier.job import merge, own_combine
from cloud_tier.job.combination import of_pooled, pooled, pooled_names
from cloud_tier.lake.sqltext import identifier
from lasp_edge.folds.columns import Column

_WINDOW = ("stream", "key", "start_us")
_BOUNDS = ("_from_us", "_to_us", "_slide_us")
_DEVICES_IN: Final = "CAST(sum(_devices) AS INT) AS devices_in"
_WORD: Final = 64
"""Windows that the bits of a long stand for."""


def of_panes(
    panes: DataFrame,
    columns: Sequence[Column],
    spans_: DataFrame,
    own: own_combine.OwnFolds,
    pieces: DataFrame | None = None,
    *,
    few: bool = False,
) -> DataFrame:
    """Return one row for each window with panes: `stream`, `key`, `start_us`, total, `devices_in`.

    Args:
        panes: rows of `lattice`, at least those that are needed.
        columns: the program's.
        spans_: which windows: what `cloud_tier.job.windows.spans_of` gives.
        own: the folds that combine by themselves.
        pieces: which panes count for which forms of windows; None without parameters.
        few: the rows are few, and all in one task.
    """
    names = [identifier(column.name) for column in columns]
    entries = merge.newest(panes, [column.name for column in columns], merge.PANE_IDENTITY)
    present = panes.select("stream", "key", "pane_us", "device")
    if pieces is not None:
        entries, present = (_in_forms(each, pieces) for each in (entries, present))
    partials = _placed(entries, spans_, names)
    devices = _devices(_placed(present, spans_, ["device"]))
    if not own:
        return _combined(partials, devices, columns, few=few)
    is_own = own_combine.of_streams(own)
    others = f"NOT {is_own}"
    by_ops = _combined(partials.where(others), devices.where(others), columns, few=few)
    rows = _together(_started(partials.where(is_own), names), devices.where(is_own), few=few)
    by_fold = own_combine.totals(rows, _WINDOW, columns, own, "_devices IS NULL", _DEVICES_IN)
    return _together(by_ops, by_fold, few=few)


def _in_forms(rows: DataFrame, pieces: DataFrame) -> DataFrame:
    """Return panes by the forms of windows that they count for, which stand for streams."""
    counts = (
        "pane.stream = _piece AND pane.pane_us >= _begin_us AND pane.pane_us < _until_us AND "
        "if(_device IS NULL, NOT array_contains(_others, pane.device), _device = pane.device)"
    )
    placed = rows.alias("pane").join(pieces.alias("piece"), sql.expr(counts))
    return placed.selectExpr("_form AS stream", "pane.* EXCEPT (stream)")


def _placed(panes: DataFrame, spans_: DataFrame, names: Iterable[str]) -> DataFrame:
    """Return panes with the first and the last start of the windows that they are in."""
    near = panes.alias("pane").join(
        spans_.alias("span"),
        sql.expr(
            "pane.stream = span._stream AND pane.pane_us >= span._first_us "
            "AND pane.pane_us <= span._last_us + span._reach_us"
        ),
    )
    least_us = "greatest(pane_us - _reach_us, _first_us)"
    first_us = f"{least_us} + pmod(-({least_us}), _slide_us)"
    greatest_us = "least(pane_us, _last_us)"
    last_us = f"{greatest_us} - pmod({greatest_us}, _slide_us)"
    bounds = (f"{first_us} AS _from_us", f"{last_us} AS _to_us", "_slide_us")
    return near.selectExpr("stream", "key", *bounds, *names).where("_from_us <= _to_us")


def _started(placed: DataFrame, names: Iterable[str]) -> DataFrame:
    """Return rows of `_placed` once for each window that they are in."""
    start_us = "explode(sequence(_from_us, _to_us, _slide_us)) AS start_us"
    return placed.selectExpr("stream", "key", start_us, *names)


def _devices(placed: DataFrame) -> DataFrame:
    """Return how many devices are in windows: a window's rows add up to it.

    A bit stands for a window, so that a device's 64 windows in a row are one number, and devices
    that are in the same windows, as most are, are one row.

    Args:
        placed: what `_placed` gives, with `device`.
    """
    word_us = f"{_WORD} * _slide_us"
    word = f"explode(sequence(_from_us - pmod(_from_us, {word_us}), _to_us, {word_us})) AS _word_us"
    lowest = "CAST(greatest(_from_us - _word_us, 0) div _slide_us AS INT)"
    highest = f"CAST(least((_to_us - _word_us) div _slide_us, {_WORD - 1}) AS INT)"
    bits = f"shiftleft(-1L, {lowest}) & shiftrightunsigned(-1L, {_WORD - 1} - {highest})"
    words = placed.selectExpr("*", word).selectExpr("*", f"{bits} AS _bits")
    several = ("stream", "key", "_word_us", "_slide_us")
    each = words.groupBy(*several, "device").agg(sql.expr("bit_or(_bits) AS _bits"))
    alike = each.groupBy(*several, "_bits").agg(sql.expr("count(1) AS _devices"))
    places = alike.selectExpr("*", f"explode(sequence(0, {_WORD - 1})) AS _place")
    return places.where("getbit(_bits, _place) = 1").selectExpr(
        "stream", "key", "_word_us + _place * _slide_us AS start_us", "_devices"
    )


def _together(rows: DataFrame, others: DataFrame, *, few: bool) -> DataFrame:
    """Return the rows of both, in the task that few rows are in: Spark would have two go on."""
    both = rows.unionByName(others, allowMissingColumns=True)
    return both.coalesce(1) if few else both


def _combined(
    partials: DataFrame, devices: DataFrame, columns: Sequence[Column], *, few: bool
) -> DataFrame:
    """Return one row for each window: its total over replicas, devices and panes.

    Partials that are in the same windows are combined before they are put into each of them.
    """
    together = partials.groupBy("stream", "key", *_BOUNDS).agg(*pooled(columns))
    rows = _together(_started(together, pooled_names(columns)), devices, few=few)
    return rows.groupBy(*_WINDOW).agg(*of_pooled(columns), sql.expr(_DEVICES_IN))
