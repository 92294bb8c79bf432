"""Forms: size, slide and fold of a window, by the start of each; without parameters one alone.

A window's form is that of the values at its start, for all devices alike. Values that do not fit
each other (a slide beyond the size, a fold with other columns than the declared one) count for
nothing: the form before them goes on. So all devices have the same windows, whatever an operator
enters.
"""

from collections.abc import Iterator
from math import gcd
from typing import Any, Final, NamedTuple

from crdts.control_log import BEFORE_ALL_US, FLEET, INHERITED, ControlEntry, ControlLog
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.revisable import Revisable, revisable
from lasp_edge.language.arguments import fold_at, need_same_columns, size_and_slide
from lasp_edge.language.declarations import Parameter, Window
from lasp_edge.language.parameters import (
    ParameterValues,
    is_value,
    plain,
    steps_of,
    value_at,
)
from lasp_edge.language.plan import Functions
from lasp_edge.protocol.limits import EARLIEST_PANE_US, LATEST_PANE_US

FOR_EVER_US: Final = LATEST_PANE_US
"""After every pane."""


class WindowForm(NamedTuple):
    """The windows that start from one time until another, and how they are.

    Attributes:
        from_us, until_us: of their starts; the latter is excluded.
        fold: at the event's resolution.
        fingerprint: of the fold.
    """

    from_us: int
    until_us: int
    size_us: int
    slide_us: int
    fold: Fold
    fingerprint: str

    @property
    def span_us(self) -> int:
        """Length of a pane."""
        return gcd(self.size_us, self.slide_us)

    @property
    def first_us(self) -> int:
        """The first start."""
        return -(-self.from_us // self.slide_us) * self.slide_us

    @property
    def last_us(self) -> int:
        """The last start; before the first where no window starts."""
        return (self.until_us - 1) // self.slide_us * self.slide_us

    @property
    def end_us(self) -> int:
        """The end of the last window."""
        return self.last_us + self.size_us

    def starts(self, first_us: int, last_us: int) -> range:
        """Return the starts of its windows from one time to another, both included."""
        first_us = max(first_us, self.from_us)
        aligned_us = -(-first_us // self.slide_us) * self.slide_us
        return range(aligned_us, min(last_us, self.until_us - 1) + 1, self.slide_us)


class ParameterHistory:
    """The entries of one parameter and scope, by time.

    Attributes:
        times_us: from when on each entry holds.
        entries: the entries.
    """

    __slots__ = ("entries", "name", "scope", "times_us")

    def __init__(self, log: ControlLog, parameter: Parameter, scope: str) -> None:
        self.name, self.scope = parameter.name, scope
        places = log.places(parameter.name, scope)
        self.times_us = [from_us for from_us, _ in places]
        self.entries = [_as_counted(parameter, entry) for _, entry in places]

    def hash_key(self, at: int) -> tuple[Any, ...]:
        """Return a time and its entry, as a stream's id is a hash of them."""
        return (self.name, self.scope, self.times_us[at], *self.entries[at])


class WindowForms:
    """What gives the windows their forms, under one log.

    Attributes:
        forms: by time; equal neighbours are one.
        places: (time, from when on it counts, place and entry) of all entries about it: a
            parameter that the fold's function asks for under some values alone counts from then.
        unfit: (time, why) of values that do not fit each other, and so count for nothing.
    """

    def __init__(self, window: Window, functions: Functions, log: ControlLog) -> None:
        self._window, self._functions, self._controls = window, functions, window.controls
        self._asked: list[tuple[int, str]] = []
        self.unfit: list[tuple[int, str]] = []
        self.forms = tuple(self._forms(log))
        self.places = tuple(self._places(log))

    def _forms(self, log: ControlLog) -> Iterator[WindowForm]:
        controls, window = self._controls, self._window
        forming = [each for each in (controls.size, controls.slide) if each is not None]
        forming += controls.uses if controls.fold else ()
        steps = {each.name: steps_of(log, each) for each in forming}
        marks = sorted({BEFORE_ALL_US, *(mark for each in steps.values() for mark, _ in each)})
        found = [(BEFORE_ALL_US, window.size_us, window.slide_us, window.fold)]
        for mark_us in marks if forming else ():
            values = {
                each.name: plain(each, value_at(steps[each.name], mark_us)) for each in forming
            }
            _, size_us, slide_us, fold = found[-1]
            made = self._form(mark_us, values) or (size_us, slide_us, fold)
            if made[:2] != (size_us, slide_us) or not _alike(made[2], fold, window):
                found.append((mark_us, *made))
        for number, (from_us, size_us, slide_us, fold) in enumerate(found):
            until_us = found[number + 1][0] if number + 1 < len(found) else FOR_EVER_US
            first_us = max(from_us, EARLIEST_PANE_US)
            fingerprint = fold.fingerprint(window.resolution)
            yield WindowForm(first_us, until_us, size_us, slide_us, fold, fingerprint)

    def _form(self, mark_us: int, values: dict[str, Any]) -> tuple[int, int, Fold] | None:
        """Return size, slide and fold under some values; None where they do not fit each other."""
        controls, window = self._controls, self._window
        what = f"window {window.name!r}"
        at = ParameterValues(
            {each.name: values[each.name] for each in controls.uses if each.name in values}
        )
        try:
            size_us, slide_us = self._sizes(values, what)
            fold = window.fold
            if controls.fold:
                function = self._functions.windows[window.name, "fold"]
                fold = fold_at(function, window.name, at).at(window.resolution)
                if isinstance(window.fold, Revisable):
                    fold = revisable(fold)
                need_same_columns(window.fold, fold, what)
        except ValueError as error:
            self.unfit.append((mark_us, str(error)))
            return None
        finally:
            self._asked += [(mark_us, name) for name in at.asked]
        return size_us, slide_us, fold

    def _sizes(self, values: dict[str, Any], what: str) -> tuple[int, int]:
        controls, window = self._controls, self._window
        size_s: Any = window.size_us / 1_000_000
        slide_s: Any = window.slide_us / 1_000_000
        if controls.size is not None:
            size_s = values[controls.size.name]
        if controls.slide is not None:
            slide_s = values[controls.slide.name]
        elif controls.slides_by_size:
            slide_s = size_s
        size_us, slide_us = size_and_slide(what, size_s, slide_s)
        # What is fixed stays exactly as it was declared, whatever a float makes of it.
        size_us = window.size_us if controls.size is None else size_us
        fixed = controls.slide is None and not controls.slides_by_size
        return size_us, window.slide_us if fixed else slide_us

    def _places(self, log: ControlLog) -> list[tuple[int, int, tuple[Any, ...]]]:
        controls = self._controls
        since: dict[str, int] = {}
        for mark_us, name in self._asked:
            since[name] = min(mark_us, since.get(name, mark_us))
        parameters = {each.name: each for each in controls.uses if each.name in since}
        for each in (controls.size, controls.slide):
            if each is not None:
                parameters[each.name] = each
                since[each.name] = BEFORE_ALL_US
        found = []
        for name, parameter in parameters.items():
            history = ParameterHistory(log, parameter, FLEET)
            for at, time_us in enumerate(history.times_us):
                found.append((time_us, since[name], history.hash_key(at)))
        return sorted(found)


def _alike(fold: Fold, other: Fold, window: Window) -> bool:
    resolution = window.resolution
    return fold is other or fold.fingerprint(resolution) == other.fingerprint(resolution)


def _as_counted(parameter: Parameter, entry: ControlEntry) -> ControlEntry:
    """Return an entry; one whose text is no value of the parameter counts as taken back."""
    text = entry.value
    if text is None or text == INHERITED or is_value(parameter, text):
        return entry
    return entry._replace(value=None)
