"""Regimes: which panes a window has at each time, and the meaning of each.

Two rules are everything; the rest of this module makes them fast.

- The parameters of a **reading** (`value=`, `where=`) are those at its own time on its device.
- The parameters of a **window** (size, slide, the fold's) are those at its start, the same for all
  devices. A window that began before a change ends by its old size.

A pane's meaning is in its stream's id, so that what was made under other parameters can never be
added to it, whoever is late. The id is a hash of the window's definition, the pane's span, its
fold, and **the entries that decide it**, with their places and numbers. Values would not be enough:
30, then 28, then 30 again would come back under the first id, and the first panes lack what was
read in between. A place's number only grows, so no id recurs. The entries that decide a pane are,
of each parameter that readings see, those from its end back to the last entry with a value;
and of what gives windows their form, all before its end. A window that no parameter changes has one
form and one piece, and its panes travel under its own id.

Between two neighbouring places nothing of this changes from pane to pane. So a window consists of
few **pieces**: stretches of panes with one stream, one span and one fold; and time consists of few
**regimes**, in which a reading goes to the same pieces and sees the same parameters. Both are found
by bisection.

    >>> from crdts import ControlLog
    >>> from lasp_edge import Program, folds
    >>> program = Program("greenhouse")
    >>> temperature = program.event("temperature", resolution="0.1")
    >>> offset = program.parameter("offset", "0", resolution="0.1")
    >>> window = program.window(
    ...     "sum", source=temperature, fold=folds.sum(), size_s=10, slide_s=5,
    ...     uses=(offset,), value=lambda event, at: event.value + at[offset])
    >>> log = ControlLog()
    >>> log |= log.set("offset", "", 7_500_000, "100", "ann")
    >>> regimes = WindowRegimes(window, program.plan().functions, log)
    >>> [(piece.first_us, piece.end_us) for piece in regimes.pieces][1:]
    [(5000000, 253402214400000000)]
    >>> [regimes.regime_at(t).at[offset] for t in (7_499_999, 7_500_000)]
    [0.0, 100.0]
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from crdts.control_log import BEFORE_ALL_US, FLEET, INHERITED, ControlLog
from lasp_edge.event import Event
from lasp_edge.folds.fold import Fold
from lasp_edge.language.declarations import Window
from lasp_edge.language.forms import FOR_EVER_US, ParameterHistory, WindowForm, WindowForms
from lasp_edge.language.parameters import ParameterValues, plain, steps_of, value_at
from lasp_edge.language.plan import Functions
from lasp_edge.protocol.streams import stream_id


class PanePiece(NamedTuple):
    """Neighbouring panes of one stream.

    Attributes:
        first_us: start of the first pane.
        end_us: end of the last one.
        stream: the id under which they travel.
        fingerprint: of the fold.
    """

    first_us: int
    end_us: int
    span_us: int
    stream: int
    fold: Fold
    fingerprint: str

    @property
    def size_us(self) -> int:
        """Length of a pane: how long windows are is another matter."""
        return self.span_us

    def is_of(self, form: WindowForm) -> bool:
        """Return whether windows of a form are made from such panes."""
        return (self.span_us, self.fingerprint) == (form.span_us, form.fingerprint)


class Regime(NamedTuple):
    """A stretch of time in which readings go to the same pieces and see the same parameters.

    Attributes:
        first_us, end_us: the latter is excluded.
        pieces: in which there is a pane for a reading, by stream.
        at: the parameters.
    """

    first_us: int
    end_us: int
    pieces: tuple[PanePiece, ...]
    at: ParameterValues


class WindowRegimes:
    """A window under one log of parameters, as one device has it.

    Args:
        window: of the program.
        functions: of the plan.
        log: the entries of the parameters.
        device: whose own scope goes first; "" for a device without entries of its own.

    Attributes:
        forms: by time; their starts cover all of it.
        pieces: of all panes that some window has, by time and stream.
    """

    def __init__(
        self, window: Window, functions: Functions, log: ControlLog, device: str = FLEET
    ) -> None:
        controls = window.controls
        self.window = window
        scopes = (device,) if device != FLEET else ()
        self._uses, self._functions = controls.uses, functions
        self._seen = [
            [ParameterHistory(log, each, scope) for scope in (*scopes, FLEET)]
            for each in (controls.uses if controls.counts else ())
        ]
        self._seen_us = sorted({at for each in self._seen for one in each for at in one.times_us})
        self._steps = {each.name: steps_of(log, each, *scopes) for each in controls.uses}
        forming = WindowForms(window, functions, log)
        self.forms, self._forming = forming.forms, forming.places
        self._starts_us = [form.from_us for form in self.forms]
        self.pieces = tuple(self._pieces())
        self._bounds_us = self._regime_bounds()
        self._regimes: dict[int, Regime] = {}

    @property
    def longest_us(self) -> int:
        """The length of the longest windows."""
        return max(form.size_us for form in self.forms)

    def form_at(self, start_us: int) -> WindowForm:
        """Return the form of the windows that start at a time."""
        return self.forms[max(0, bisect_right(self._starts_us, start_us) - 1)]

    def regime_at(self, time_us: int) -> Regime:
        """Return the regime that a time lies in."""
        at = bisect_right(self._bounds_us, time_us) - 1
        found = self._regimes.get(at)
        if found is None:
            found = self._regimes[at] = self._regime(at)
        return found

    def regimes(self, first_us: int, end_us: int) -> Iterator[Regime]:
        """Yield the regimes from one time to another, which is excluded."""
        while first_us < end_us:
            regime = self.regime_at(first_us)
            yield regime
            first_us = regime.end_us

    def counted(self, event: Event, quantised: int, at: ParameterValues) -> int | None:
        """Return what a reading counts as, in steps; None where it does not count.

        Args:
            event: the reading, as it was read.
            quantised: its value in steps.
            at: the parameters at its time.

        Raises:
            ValueError: the value is no number in range. What the functions raise is passed on.
        """
        window, functions = self.window, self._functions.windows
        value = functions.get((window.name, "value"))
        if value is not None:
            quantised = window.resolution.quantise(value(event, at))
        where = functions.get((window.name, "where"))
        if where is None:
            return quantised
        if value is not None and not isinstance(event.value, str | tuple):
            event = event._replace(value=window.resolution.real(quantised))
        return quantised if where(event, at) else None

    def starts(self, first_us: int, last_us: int) -> Iterator[tuple[int, WindowForm]]:
        """Yield the starts from one time to another, both included, each with its form."""
        at = max(0, bisect_right(self._starts_us, first_us) - 1)
        for form in self.forms[at:]:
            if form.from_us > last_us:
                return
            for start_us in form.starts(first_us, last_us):
                yield start_us, form

    def exists(self, start_us: int) -> bool:
        """Return whether a window starts at a time."""
        return start_us % self.form_at(start_us).slide_us == 0

    def starts_over(self, piece: PanePiece, pane_us: int) -> Iterator[tuple[int, WindowForm]]:
        """Yield the starts of the windows that a pane of a piece is part of, with their forms."""
        for form in self.forms:
            if form.from_us > pane_us:
                return
            if not piece.is_of(form):
                continue
            reach_us = form.size_us - form.span_us
            for start_us in form.starts(pane_us - reach_us, pane_us):
                yield start_us, form

    def pieces_of(self, form: WindowForm, first_us: int, end_us: int) -> Iterator[PanePiece]:
        """Yield the pieces that windows of a form are made from, in a stretch of time."""
        for piece in self.pieces:
            if piece.is_of(form) and piece.first_us < end_us and piece.end_us > first_us:
                yield piece

    def _pieces(self) -> Iterator[PanePiece]:
        """Yield the pieces of all forms, each once, by time and stream."""
        places_us = set(self._seen_us)
        for time_us, since_us, _ in self._forming:
            places_us.update((time_us, max(since_us, time_us)))
        found: dict[tuple[int, int, int], PanePiece] = {}
        for form in self.forms:
            if form.first_us <= form.last_us:
                for piece in self._pieces_of(form, sorted(places_us)):
                    found[piece.first_us, piece.end_us, piece.stream] = piece
        yield from _without_doubles(found.values())

    def _pieces_of(self, form: WindowForm, places_us: Sequence[int]) -> Iterator[PanePiece]:
        span_us, end_us = form.span_us, min(form.end_us, FOR_EVER_US)
        bounds = {form.first_us}
        for place_us in places_us:
            pane_us = place_us // span_us * span_us
            bounds.update(
                each for each in (pane_us, pane_us + span_us) if form.first_us < each < end_us
            )
        ordered = sorted(bounds)
        piece: PanePiece | None = None
        for first_us, until_us in zip(ordered, [*ordered[1:], end_us], strict=True):
            stream = self._stream(form, first_us)
            if piece is not None and piece.stream == stream:
                piece = piece._replace(end_us=until_us)
                continue
            if piece is not None:
                yield piece
            piece = PanePiece(first_us, until_us, span_us, stream, form.fold, form.fingerprint)
        if piece is not None:
            yield piece

    def _stream(self, form: WindowForm, pane_us: int) -> int:
        """Return the id of a pane's stream."""
        if self.window.is_fixed:
            return self.window.stream
        end_us, times_us = pane_us + form.span_us, self._seen_us
        inside = times_us[bisect_right(times_us, pane_us) : bisect_left(times_us, end_us)]
        deciding = {
            key
            for histories in self._seen
            for time_us in (pane_us, *inside)
            for key in _deciding(histories, time_us)
        }
        forming = [
            key
            for time_us, since_us, key in self._forming
            if time_us < end_us and since_us < end_us
        ]
        keys = (form.span_us, form.fingerprint, sorted(deciding, key=str), forming)
        return stream_id(self.window.stream, "piece", *keys)

    def _regime_bounds(self) -> list[int]:
        bounds = {BEFORE_ALL_US}
        for piece in self.pieces:
            bounds.update((piece.first_us, piece.end_us))
        for steps in self._steps.values():
            bounds.update(from_us for from_us, _ in steps)
        return sorted(bounds)

    def _regime(self, at: int) -> Regime:
        first_us = self._bounds_us[at]
        end_us = self._bounds_us[at + 1] if at + 1 < len(self._bounds_us) else 2**62
        pieces = [each for each in self.pieces if each.first_us <= first_us < each.end_us]
        values = {
            each.name: plain(each, value_at(self._steps[each.name], first_us))
            for each in self._uses
        }
        by_stream = tuple(sorted(pieces, key=lambda piece: piece.stream))
        return Regime(first_us, end_us, by_stream, ParameterValues(values))


def difference(pieces: Iterable[PanePiece], known: Iterable[PanePiece]) -> list[PanePiece]:
    """Return the panes of some pieces that are in none of the known ones, as pieces."""
    by_stream: dict[int, list[PanePiece]] = {}
    for piece in known:
        by_stream.setdefault(piece.stream, []).append(piece)
    found = []
    for piece in pieces:
        first_us = piece.first_us
        for other in by_stream.get(piece.stream, ()):  # by time
            if other.end_us <= first_us or other.first_us >= piece.end_us:
                continue
            if other.first_us > first_us:
                found.append(piece._replace(first_us=first_us, end_us=other.first_us))
            first_us = other.end_us
        if first_us < piece.end_us:
            found.append(piece._replace(first_us=first_us))
    return found


def _deciding(histories: Iterable[ParameterHistory], time_us: int) -> Iterator[tuple[Any, ...]]:
    """Yield the places that decide a value at a time: back to the last one that has a value."""
    for history in histories:
        for at in range(bisect_right(history.times_us, time_us) - 1, -1, -1):
            yield history.hash_key(at)
            value = history.entries[at].value
            if value is None:
                continue
            if value != INHERITED:
                return
            break


def _without_doubles(pieces: Iterable[PanePiece]) -> list[PanePiece]:
    """Return pieces such that no two of one stream overlap, by time and stream.

    Two forms can need the same panes: windows that began before a change, and those after it.
    """
    by_stream: dict[int, list[PanePiece]] = {}
    for piece in sorted(pieces, key=lambda each: (each.stream, each.first_us, each.end_us)):
        known = by_stream.setdefault(piece.stream, [])
        if known and piece.first_us <= known[-1].end_us:
            known[-1] = known[-1]._replace(end_us=max(known[-1].end_us, piece.end_us))
        else:
            known.append(piece)
    every = [piece for several in by_stream.values() for piece in several]
    return sorted(every, key=lambda each: (each.first_us, each.stream))
