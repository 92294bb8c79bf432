"""The windows of a step as rows of small frames: their forms, pieces and starts.

A window has a form for each stretch of its starts (size, slide, fold), and is made from pieces:
stretches of panes of one stream, for one device or for all but some. A window that nobody can
change has one form and one piece, whose stream is its own. All are rows, so what Spark plans does
not depend on what operators changed. Where a window has several pieces, a pane's row is given the
number of each form that its piece belongs to in place of its stream.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import Any, Final, NamedTuple

import pyarrow as pa

from cloud_tier.job.control import ControlState, due_under_log_us
from cloud_tier.job.finality import BEFORE_ALL_US, StepFinality
from cloud_tier.job.job import Job
from cloud_tier.job.renamed import NOTHING_RENAMED, RenamedWindows
from cloud_tier.job.starts import RecomputedStarts, spans_by_window
from cloud_tier.lake.sqltext import any_of, one_of, within
from cloud_tier.lake.tables import PANE
from lasp_edge.folds.fold import Fold
from lasp_edge.language.declarations import Window
from lasp_edge.language.forms import WindowForm
from lasp_edge.language.regimes import PanePiece
from lasp_edge.protocol import spans
from lasp_edge.protocol.spans import Span
from lasp_edge.units import SECOND_US

RECORD: Final = {
    "_frontier": pa.int64(),
    "_devices_expected": pa.int32(),
    "_due": pa.int64(),
    "_since": pa.int64(),
    "_after_us": pa.int64(),
    "_until_us": pa.int64(),
    "_missing": pa.string(),
    "_missing_devices": pa.int32(),
    "_excluded": pa.string(),
    "_excluded_devices": pa.int32(),
    "_either": pa.string(),
    "_either_devices": pa.int32(),
}
"""What all rows of a window that end in one stretch of time record in one step."""
_SPANS = pa.schema(
    [(f"_{name}", pa.int64()) for name in ("stream", "first_us", "last_us", "slide_us", "reach_us")]
)
_SHAPES = pa.schema(
    {
        "_stream": pa.int64(),
        "_window": pa.string(),
        "_size_us": pa.int64(),
        **RECORD,
        "_of": pa.int64(),
        "_from_us": pa.int64(),
        "_to_us": pa.int64(),
    }
)
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
_STARTS = pa.schema(
    {
        "_at": pa.string(),
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
        "_due_under_log": pa.int64(),
    }
)


class FormedWindow(NamedTuple):
    """Windows of one name that are alike.

    Attributes:
        name: of the form; `of` is the window's.
        stream: that of the panes, or the number of the form where these have several.
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
class StepWindows:
    """The windows that a step recomputes.

    Attributes:
        job: the program over the lake.
        state: the log of parameters, and the starts that wait for it.
        starts: which starts.
        promised_us: G, up to which all have promised under the present log; None for nothing.
        renamed: those whose rows are to name others, as devices have spoken.
    """

    job: Job
    state: ControlState
    starts: Sequence[RecomputedStarts]
    promised_us: int | None = None
    renamed: RenamedWindows = NOTHING_RENAMED

    @property
    def changing(self) -> dict[str, Window]:
        """The windows that some parameter changes, by name."""
        return self.state.regimes.changing

    @cached_property
    def starts_by_window(self) -> spans.Starts:
        """The starts by window."""
        return spans_by_window(self.starts)

    @cached_property
    def forms(self) -> tuple[FormedWindow, ...]:
        """The forms of all windows, with the pieces that are needed."""
        return tuple(self._forms())

    @cached_property
    def starts_of_forms(self) -> spans.Starts:
        """The starts by form."""
        return {
            form.name: several
            for form in self.forms
            if (several := list(_clipped(self._starts_of(form.of), form.from_us, form.until_us)))
        }

    @property
    def slides(self) -> int:
        """In how many windows a pane is, at most."""
        return max(form.size_us // form.slide_us for form in self.forms)

    @property
    def needed(self) -> str:
        """Which rows of `lattice` the windows are made of, in Spark's dialect or the standard.

        Delta and DataFusion leave unread the files that hold none of them.
        """
        wanted: dict[int, list[Span]] = {}
        for form in self.forms:
            panes = spans.panes_of(form, self.starts_of_forms.get(form.name, ()))
            for piece, _, _ in form.pieces:
                found = _clipped(panes, piece.first_us, piece.end_us)
                wanted.setdefault(piece.stream, []).extend(found)
        streams = any_of(
            f"(stream = {stream} AND {within('pane_us', spans.joined(several))})"
            for stream, several in sorted(wanted.items())
            if several
        )
        return f"{one_of('kind', [PANE])} AND {streams if any(wanted.values()) else 'false'}"

    @property
    def folds(self) -> dict[int, Fold]:
        """The folds that combine by themselves, by the stream of their forms."""
        return {form.stream: form.fold for form in self.forms if form.fold.combines_itself}

    def spans(self) -> pa.Table:
        """Return one row for each span of starts: which panes make which windows."""
        rows = [
            (form.stream, *span, form.slide_us, form.size_us - form.span_us)
            for form in self.forms
            for span in self.starts_of_forms.get(form.name, ())
        ]
        return _table(_SPANS, rows)

    def shapes(self, finality: StepFinality) -> pa.Table:
        """Return the forms, and what their rows of this step record, by stretches of ends."""
        coverage = finality.coverage
        record = (coverage.frontier, len(coverage.expected))
        since_us = self.job.since_us
        rows = [
            (
                *(form.stream, form.of, form.size_us),
                *(
                    *record,
                    finality.due_us[form.of],
                    since_us.get(form.of, BEFORE_ALL_US),
                    *stretch,
                ),
                *(form.of_stream, form.from_us, form.until_us - 1),
            )
            for form in self.forms
            for stretch in finality.missing.stretches(
                finality.lead_us[form.of],
                form.size_us,
                self._ends(form),
                finality.begun_of(self.job.plan.windows[form.of].stream),
            )
        ]
        return _table(_SHAPES, rows)

    def pieces(self) -> pa.Table | None:
        """Return which panes count for which forms; None where each form's stream says it."""
        rows = [
            (piece.stream, piece.first_us, piece.end_us, device or None, list(others), form.stream)
            for form in self.forms
            for piece, device, others in form.pieces
        ]
        return _table(_PIECES, rows) if any(row[0] != row[-1] for row in rows) else None

    def needs(self) -> pa.Table:
        """Return the starts, with their keys and what their rows need."""
        return _table(_STARTS, self.starts)

    def held(self) -> pa.Table | None:
        """Return the held starts, spans of a window that never overlap; None without any."""
        found: dict[str, list[Span]] = {}
        for name, first_us, last_us in self.state.held:
            found.setdefault(name, []).append(Span(first_us, last_us))
        rows = [
            (name, *span, self.promised_us, due_under_log_us(self.job, self.state, name))
            for name, several in sorted(found.items())
            for span in spans.joined(several, most=len(several))
        ]
        return _table(_HELD, rows) if rows else None

    def _forms(self) -> Iterator[FormedWindow]:
        number = 0
        for name, window in self.job.plan.windows.items():
            regimes, scopes = self.state.regimes.of(name), self.state.regimes.scopes(name)
            for form in regimes.forms:
                pieces = tuple(self._pieces_of(name, form, scopes))
                is_one = len(regimes.pieces) == len(scopes) == 1
                yield FormedWindow(
                    str(number),
                    name,
                    regimes.pieces[0].stream if is_one else number,
                    window.stream,
                    *(form.size_us, form.slide_us, form.span_us, form.fold),
                    *(form.from_us, form.until_us),
                    pieces,
                )
                number += 1

    def _pieces_of(
        self, name: str, form: WindowForm, scopes: Sequence[str]
    ) -> Iterator[tuple[PanePiece, str, tuple[str, ...]]]:
        wanted = list(_clipped(self._starts_of(name), form.from_us, form.until_us))
        for scope in scopes if wanted else ():
            others = tuple(each for each in scopes if each) if not scope else ()
            regimes = self.state.regimes.of(name, scope)
            for piece in regimes.pieces_of(form, wanted[0].first, wanted[-1].last + form.size_us):
                yield piece, scope, others

    def _starts_of(self, name: str) -> Sequence[Span]:
        return self.starts_by_window.get(name, ())

    def _ends(self, form: FormedWindow) -> Iterator[range]:
        """Yield the ends of a form's windows, and of those that are there no more.

        These have other slides: of whole seconds, or else they are given the devices that are
        missing up to a second later.
        """
        changes = form.of in self.changing
        grid_us = gcd(form.slide_us, SECOND_US) if changes else form.slide_us
        for first_us, last_us in self.starts_of_forms.get(form.name, ()):
            least_us = first_us + -first_us % grid_us
            yield range(least_us + form.size_us, last_us + form.size_us + 1, grid_us)
            if changes:
                yield range(first_us + form.size_us, first_us + form.size_us + 1)


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
