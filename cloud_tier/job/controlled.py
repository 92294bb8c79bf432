"""Windows of a program with parameters, in Spark: forms and pieces in place of one stream a window.

A window has a form for each stretch of its starts (size, slide, fold), and is made from pieces:
stretches of panes of one stream, for one device or for all but some. Both are rows of small frames,
so what Spark plans does not depend on what operators said. A pane's row is given the number of each
form that its piece belongs to in place of its stream; from there on a form is a window like any
other (`cloud_tier.job.windows`). Windows without parameters have one form and one piece.

Unlike those, a window with parameters may lose all that it held, or not exist any more. Then a row
of the fold's zero and no devices follows.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from cloud_tier.job import windows
from cloud_tier.job.control import ControlState, LookedStarts, due_anew_us, starts_of
from cloud_tier.job.finality import StepFinality
from cloud_tier.job.frames import Frames
from cloud_tier.job.job import Job
from cloud_tier.lake.sqltext import any_of, identifier, literal, one_of, within
from cloud_tier.lake.tables import PANE
from lasp_edge.folds.columns import Column, Op
from lasp_edge.folds.fold import Fold
from lasp_edge.language.regimes import PanePiece
from lasp_edge.protocol import spans
from lasp_edge.protocol.limits import EARLIEST_PANE_US, LATEST_PANE_US
from lasp_edge.protocol.spans import Span
from lasp_edge.protocol.status import STATUSES, TENTATIVE
from lasp_edge.units import SECOND_US

_PIECES = pa.schema(
    {
        "_piece": pa.int64(),
        "_begin_us": pa.int64(),
        "_until_us": pa.int64(),
        "_device": pa.string(),
        "_others": pa.list_(pa.string()),
        "_form": pa.int64(),
    }
)
_SHAPES = pa.schema(
    {
        "_stream": pa.int64(),
        "_window": pa.string(),
        "_size_us": pa.int64(),
        **windows.RECORD,
        "_of": pa.int64(),
        "_from_us": pa.int64(),
        "_to_us": pa.int64(),
    }
)
_LOOKS = pa.schema(
    {
        "_look": pa.string(),
        "_key": pa.string(),
        "_first_us": pa.int64(),
        "_last_us": pa.int64(),
        "_needs": pa.int32(),
    }
)
_HELD = pa.schema(
    {
        "_held": pa.string(),
        "_least_us": pa.int64(),
        "_most_us": pa.int64(),
        "_promised": pa.int64(),
        "_anew": pa.int64(),
    }
)
_TENTATIVE: Final = STATUSES.index(TENTATIVE)


class FormedWindow(NamedTuple):
    """Windows of one name that are alike: what `windows` asks of a window, and more.

    Attributes:
        name: of the form; `of` is the window's.
        stream: the number of the form.
        of_stream: the id of the window's definition.
        from_us, until_us: of the starts; the latter is excluded.
        pieces: (a piece, its device, or those for which it does not count).
    """

    name: str
    of: str
    stream: int
    of_stream: int
    size_us: int
    slide_us: int
    span_us: int
    fold: Fold
    from_us: int
    until_us: int
    pieces: tuple[tuple[PanePiece, str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class ControlledStep:
    """The windows that a step looks at, of a program with parameters.

    Attributes:
        job: the program over the lake.
        state: with what is held.
        looks: which starts.
        promised_us: G, up to which all have promised under the present log; None for nothing.
    """

    job: Job
    state: ControlState
    looks: Sequence[LookedStarts]
    promised_us: int | None

    @cached_property
    def starts(self) -> spans.Starts:
        """The starts that are looked at, by window."""
        return starts_of(self.looks)

    @cached_property
    def forms(self) -> tuple[FormedWindow, ...]:
        """The forms of all windows, with the pieces that are needed."""
        return tuple(self._forms())

    @cached_property
    def starts_of_forms(self) -> spans.Starts:
        """The starts that are looked at, by form."""
        found = {form.name: list(self._within(form)) for form in self.forms}
        return {name: wanted for name, wanted in found.items() if wanted}

    @property
    def slides(self) -> int:
        """In how many windows a pane is, at most."""
        return max(form.size_us // form.slide_us for form in self.forms)

    @property
    def needed(self) -> str:
        """Which rows of `lattice` the windows are made of, in Spark's dialect or the standard."""
        wanted: dict[int, list[Span]] = {}
        for form in self.forms:
            panes = spans.panes_of(form, self.starts_of_forms.get(form.name, ()))
            for piece, _, _ in form.pieces:
                for first_us, last_us in panes:
                    span = Span(max(first_us, piece.first_us), min(last_us, piece.end_us - 1))
                    if span.first <= span.last:
                        wanted.setdefault(piece.stream, []).append(span)
        streams = any_of(
            f"(stream = {stream} AND {within('pane_us', spans.joined(several))})"
            for stream, several in sorted(wanted.items())
        )
        return f"{one_of('kind', [PANE])} AND {streams if wanted else 'false'}"

    def recomputed(
        self, made: Frames, panes: DataFrame, rows: DataFrame, finality: StepFinality
    ) -> DataFrame:
        """Return the rows to append.

        Args:
            made: makes frames.
            panes: rows of `lattice`, at least those that are needed.
            rows: those of `windows` that have these starts.
            finality: the frontier and the devices to record, and what is due.
        """
        columns = tuple(self.job.plan.columns.values())
        shapes = made.rows(_table(_SHAPES, self._shapes(finality)))
        found = windows.computed(
            panes,
            columns,
            made.rows(windows.spans_of(self.forms, self.starts_of_forms)),
            shapes,
            {form.stream: form.fold for form in self.forms if form.fold.combines_itself},
            made.rows(_table(_PIECES, self._pieces())),
        )
        before = windows.current(rows, columns)
        both = _beside(found, before, columns).join(
            shapes.alias("shape"),
            sql.expr(
                "window = _window AND start_us BETWEEN _from_us AND _to_us "
                "AND start_us + _size_us > _after_us AND start_us + _size_us <= _until_us"
            ),
        )
        looked = made.rows(_table(_LOOKS, self.looks)).alias("look")
        held = made.rows(_table(_HELD, self._held())).alias("held")
        wanted = both.join(looked, sql.expr(_LOOKED), "leftsemi")
        within_ = "window = _held AND start_us BETWEEN _least_us AND _most_us"
        return self._revisions(wanted.join(held, sql.expr(within_), "left"), columns)

    def _revisions(self, rows: DataFrame, columns: Sequence[Column]) -> DataFrame:
        zeros = {
            name: dict(zip(window.fold.columns_named, window.fold.zero, strict=True))
            for name, window in self.state.regimes.changing.items()
        }
        values = [
            f"if(_devices IS NULL, {_zero(column, zeros)}, _new_{at}) AS _value_{at}"
            for at, column in enumerate(columns)
        ]
        awaited = "_held IS NOT NULL AND NOT coalesce(start_us + _size_us <= _promised, false)"
        passed = "coalesce(start_us + _size_us <= _frontier, false)"
        ready = rows.selectExpr(
            "*",
            *values,
            "start_us + _size_us AS _now_end",
            "coalesce(_devices, 0) AS _now_devices",
            f"{passed} AS _is_passed",
            f"{awaited} AS _is_held",
        )
        same = [f"_value_{at} <=> _old_{at}" for at in range(len(columns))]
        same += ["_now_end <=> _old_end", "_now_devices <=> _old_devices", "_of <=> _old_stream"]
        differs = f"NOT ({' AND '.join(same)})"
        is_open = f"coalesce(status = {_TENTATIVE}, false)"
        is_final = f"(status IS NOT NULL AND status <> {_TENTATIVE})"
        held = f"((_is_passed OR {is_final}) AND _is_held)"
        passed = f"(_is_passed AND ({is_final} OR NOT _is_held))"
        after = windows.status_after(passed=passed, differs=differs)
        tentative = f"{after} = {_TENTATIVE}"
        names = one_of("window", self.state.regimes.changing)
        statuses = ", ".join(map(literal, STATUSES))
        ready = ready.alias("old").where(
            f"({differs} OR NOT ({after} <=> old.status)) "
            f"AND NOT ({held} AND NOT {is_open} AND NOT coalesce(_now_end <= _anew, false)) "
            f"AND NOT (status IS NULL AND {tentative} AND NOT coalesce(_now_end <= _due, false)) "
            f"AND (_devices IS NOT NULL OR {names})"
        )
        return ready.selectExpr(
            "window",
            "key",
            "start_us",
            "_now_end AS end_us",
            *(f"_value_{at} AS {identifier(column.name)}" for at, column in enumerate(columns)),
            "CAST(_now_devices AS INT) AS devices_in",
            "_expected AS devices_expected",
            f"if({tentative} OR {held}, _missing, _excluded) AS excluded",
            f"element_at(array({statuses}), {after} + 1) AS status",
            "coalesce(_revision + 1, 0) AS revision",
            "_frontier AS frontier",
            "_of AS stream",
        )

    def _forms(self) -> Iterator[FormedWindow]:
        number = 0
        regimes = self.state.regimes
        for name, window in self.job.plan.windows.items():
            if window.is_fixed:
                piece = PanePiece(
                    EARLIEST_PANE_US,
                    LATEST_PANE_US + window.span_us,
                    window.span_us,
                    window.stream,
                    window.fold,
                    "",
                )
                at = (window.size_us, window.slide_us, window.span_us, window.fold)
                ends = (EARLIEST_PANE_US - window.size_us, LATEST_PANE_US + 1)
                yield FormedWindow(
                    str(number), name, number, window.stream, *at, *ends, ((piece, "", ()),)
                )
                number += 1
                continue
            scopes = regimes.scopes(name)
            for form in regimes.of(name).forms:
                wanted = [*_clipped(self.starts.get(name, ()), form.from_us, form.until_us)]
                pieces = []
                for scope in scopes if wanted else ():
                    first_us, end_us = wanted[0].first, wanted[-1].last + form.size_us
                    others = tuple(each for each in scopes if each) if not scope else ()
                    pieces += [
                        (piece, scope, others)
                        for piece in regimes.of(name, scope).pieces_of(form, first_us, end_us)
                    ]
                at = (form.size_us, form.slide_us, form.span_us, form.fold)
                ends = (form.from_us, form.until_us)
                yield FormedWindow(
                    str(number), name, number, window.stream, *at, *ends, tuple(pieces)
                )
                number += 1

    def _within(self, form: FormedWindow) -> Iterator[Span]:
        yield from _clipped(self.starts.get(form.of, ()), form.from_us, form.until_us)

    def _shapes(self, finality: StepFinality) -> list[tuple[Any, ...]]:
        return [
            (
                form.stream,
                form.of,
                form.size_us,
                *record,
                form.of_stream,
                form.from_us,
                form.until_us - 1,
            )
            for form in self.forms
            for record in windows.records_of(form.of, self._ends(form), finality)
        ]

    def _ends(self, form: FormedWindow) -> Iterator[range]:
        """Yield the ends of a form's windows, and of those that are there no more.

        These have other slides: of whole seconds, or else they are given the devices that are
        missing up to a second later.
        """
        several = self.starts_of_forms.get(form.name, ())
        for first_us, _ in several:
            yield range(first_us + form.size_us, first_us + form.size_us + 1)
        yield from windows.ends_of(form, several, gcd(form.slide_us, SECOND_US))

    def _pieces(self) -> list[tuple[Any, ...]]:
        return [
            (piece.stream, piece.first_us, piece.end_us, device or None, list(others), form.stream)
            for form in self.forms
            for piece, device, others in form.pieces
        ]

    def _held(self) -> list[tuple[Any, ...]]:
        """Return the starts that are held; no two spans of a window overlap."""
        found: dict[str, list[Span]] = {}
        for name, first_us, last_us in self.state.held:
            found.setdefault(name, []).append(Span(first_us, last_us))
        return [
            (name, *span, self.promised_us, due_anew_us(self.job, self.state, name))
            for name, several in sorted(found.items())
            for span in spans.joined(several, most=len(several))
        ]


_LOOKED: Final = (
    "window = _look AND (_key IS NULL OR _key = key) AND start_us BETWEEN _first_us AND _last_us "
    f"AND (_needs = 0 OR (_needs = 1 AND status = {_TENTATIVE} AND _old_end <= _frontier) "
    "OR (_needs = 2 AND _devices IS NOT NULL) "
    "OR (_needs = 3 AND _devices IS NOT NULL AND status IS NULL))"
)


def _beside(found: DataFrame, before: DataFrame, columns: Sequence[Column]) -> DataFrame:
    """Return one row for each window that is or was: what it holds, beside its newest row."""
    names = [identifier(column.name) for column in columns]
    identity = ["window", "key", "start_us"]
    both = found.alias("new").join(before.alias("old"), identity, "full")
    return both.selectExpr(
        *identity,
        "new.devices_in AS _devices",
        *(f"new.{name} AS _new_{at}" for at, name in enumerate(names)),
        "old.revision AS _revision",
        "old.status AS status",
        "old.end_us AS _old_end",
        "old.devices_in AS _old_devices",
        "old.stream AS _old_stream",
        *(f"old.{name} AS _old_{at}" for at, name in enumerate(names)),
    )


def _zero(column: Column, zeros: dict[str, dict[str, Any]]) -> str:
    """Return what a column holds of a window that holds nothing, as SQL text."""
    type_ = "DECIMAL(38, 0)" if column.op is Op.SUM else "BINARY" if column.binary else "BIGINT"
    cases = []
    for name, parts in zeros.items():
        value = parts.get(column.name)
        if value is not None:
            text = f"X'{value.hex()}'" if isinstance(value, bytes) else str(value)
            cases.append(f"WHEN {literal(name)} THEN CAST({text} AS {type_})")
    if not cases:
        return f"CAST(NULL AS {type_})"
    return f"(CASE window {' '.join(cases)} END)"


def _clipped(several: Iterable[Span], from_us: int, until_us: int) -> Iterator[Span]:
    for first, last in several:
        span = Span(max(first, from_us), min(last, until_us - 1))
        if span.first <= span.last:
            yield span


def _table(schema: pa.Schema, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
    arrays = [
        pa.array(list(column), field.type) for column, field in zip(columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
