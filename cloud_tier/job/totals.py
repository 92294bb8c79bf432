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

from cloud_tier.job import merge, own_combine
from cloud_tier.job.combination import of_pooled, pooled, pooled_names
from cloud_tier.job.frames import Frames
from cloud_tier.job.selection import Selection
from cloud_tier.lake.sqltext import identifier
from lasp_edge.folds.columns import Column

_WINDOW = ("stream", "key", "start_us")
_BOUNDS = ("_from_us", "_to_us", "_slide_us")
_DEVICES_IN: Final = "CAST(sum(_devices) AS INT) AS devices_in"
_WORD: Final = 64
"""Windows that the bits of a long stand for."""


def of_panes(
    made: Frames,
    panes: Selection,
    columns: Sequence[Column],
    spans_: Selection,
    own: own_combine.OwnFolds,
    pieces: Selection | None = None,
) -> Selection:
    """Return one row for each window with panes: `stream`, `key`, `start_us`, total, `devices_in`.

    Args:
        made: makes frames.
        panes: rows of `lattice`, at least those that are needed.
        columns: the program's.
        spans_: which windows: what `cloud_tier.job.windows.spans_of` gives.
        own: the folds that combine by themselves.
        pieces: which panes count for which forms of windows; None without parameters.
    """
    names = [identifier(column.name) for column in columns]
    entries = merge.newest(panes, [column.name for column in columns], merge.PANE_IDENTITY)
    present = panes.select("stream", "key", "pane_us", "device")
    if pieces is not None:
        entries, present = (_in_forms(each, pieces) for each in (entries, present))
    partials = made.resolved(_placed(entries, spans_, names))
    devices = made.resolved(_devices(_placed(present, spans_, ["device"])))
    if not own:
        return _combined(partials, devices, columns, few=made.few)
    is_own = own_combine.of_streams(own)
    others = f"NOT {is_own}"
    by_ops = _combined(partials.where(others), devices.where(others), columns, few=made.few)
    of_own, devices = _started(partials.where(is_own), names), devices.where(is_own)
    rows = _together(of_own, devices, names, few=made.few).frame()
    by_fold = own_combine.totals(rows, _WINDOW, columns, own, "_devices IS NULL", _DEVICES_IN)
    listed = (*_WINDOW, *names, "devices_in")
    both = by_ops.select(*listed).union(made.view(by_fold).select(*listed))
    return _in_one_task(both) if made.few else both


def _in_forms(rows: Selection, pieces: Selection) -> Selection:
    """Return panes by the forms of windows that they count for, which stand for streams."""
    counts = (
        "pane.stream = _piece AND pane.pane_us >= _begin_us AND pane.pane_us < _until_us AND "
        "if(_device IS NULL, NOT array_contains(_others, pane.device), _device = pane.device)"
    )
    placed = rows.alias("pane").join(pieces.alias("piece"), counts)
    return placed.select("_form AS stream", "pane.* EXCEPT (stream)")


def _placed(panes: Selection, spans_: Selection, names: Iterable[str]) -> Selection:
    """Return panes with the first and the last start of the windows that they are in."""
    near = panes.alias("pane").join(
        spans_.alias("span"),
        "pane.stream = span._stream AND pane.pane_us >= span._first_us "
        "AND pane.pane_us <= span._last_us + span._reach_us",
    )
    least_us = "greatest(pane_us - _reach_us, _first_us)"
    first_us = f"{least_us} + pmod(-({least_us}), _slide_us)"
    greatest_us = "least(pane_us, _last_us)"
    last_us = f"{greatest_us} - pmod({greatest_us}, _slide_us)"
    bounds = (f"{first_us} AS _from_us", f"{last_us} AS _to_us", "_slide_us")
    return near.select("stream", "key", *bounds, *names).where("_from_us <= _to_us")


def _started(placed: Selection, names: Iterable[str]) -> Selection:
    """Return rows of `_placed` once for each window that they are in."""
    start_us = "explode(sequence(_from_us, _to_us, _slide_us)) AS start_us"
    return placed.select("stream", "key", start_us, *names)


def _devices(placed: Selection) -> Selection:
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
    words = placed.select("*", word).select("*", f"{bits} AS _bits")
    several = ("stream", "key", "_word_us", "_slide_us")
    each = words.grouped([*several, "device"], ["bit_or(_bits) AS _bits"])
    alike = each.grouped([*several, "_bits"], ["count(1) AS _devices"])
    places = alike.select("*", f"explode(sequence(0, {_WORD - 1})) AS _place")
    return places.where("getbit(_bits, _place) = 1").select(
        "stream", "key", "_word_us + _place * _slide_us AS start_us", "_devices"
    )


def _together(
    partials: Selection, devices: Selection, names: Sequence[str], *, few: bool
) -> Selection:
    """Return partials in windows, whose columns have these names, and the rows of `_devices`."""
    of_devices = devices.select(*_WINDOW, *(f"NULL AS {name}" for name in names), "_devices")
    both = partials.select(*_WINDOW, *names, "NULL AS _devices").union(of_devices)
    return _in_one_task(both) if few else both


def _in_one_task(rows: Selection) -> Selection:
    """Return rows in the task that few rows are in: of a union Spark would have two go on."""
    return rows.select("*", hint="COALESCE(1)")


def _combined(
    partials: Selection, devices: Selection, columns: Sequence[Column], *, few: bool
) -> Selection:
    """Return one row for each window: its total over replicas, devices and panes.

    Partials that are in the same windows are combined before they are put into each of them.
    """
    together = partials.grouped(["stream", "key", *_BOUNDS], pooled(columns))
    names = pooled_names(columns)
    rows = _together(_started(together, names), devices, names, few=few)
    return rows.grouped(_WINDOW, [*of_pooled(columns), _DEVICES_IN])
