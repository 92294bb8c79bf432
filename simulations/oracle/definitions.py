"""The definition of a window: what its readings count as, and which windows there are.

Of a reading count the parameters at its own time, of a window those at its start. Where nobody
changes a parameter, or none is used, both are as they were declared.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from crdts import ControlLog
from lasp_edge.errors import pass_interrupt
from lasp_edge.event import Event
from lasp_edge.folds.fold import Fold, as_fold
from lasp_edge.folds.revisable import Revisable, revisable
from lasp_edge.language.declarations import Parameter, Window
from lasp_edge.language.parameters import ParameterValues, is_value, plain
from lasp_edge.language.plan import Plan
from simulations.oracle.readings import AcceptedReading, quantised

MOST_WINDOWS = 10_000
"""Windows that hold one instant, at most."""
MICRO = 1_000_000


class TrueShape(NamedTuple):
    """How the windows are that start at some time."""

    size_us: int
    slide_us: int
    fold: Fold


class TrueValues:
    """What parameters are worth under the entries of operators."""

    def __init__(self, log: ControlLog) -> None:
        self._log = log
        self._known: dict[tuple[str, str | None], Any] = {}

    def default(self, parameter: Parameter) -> Any:
        """Return what a parameter is worth without any entry."""
        return self._plain(parameter, parameter.default)

    def value(self, parameter: Parameter, device: str, time_us: int) -> Any:
        """Return what a parameter is worth for a device at a time."""
        for scope in dict.fromkeys((device, "")):
            entries = [
                (at.from_us, entry.value)
                for at, entry in self._log.entries.items()
                if (at.parameter, at.scope) == (parameter.name, scope) and at.from_us <= time_us
            ]
            for _, text in sorted(entries, key=lambda each: each[0], reverse=True):
                value = self._plain(parameter, text)
                if value is not None:
                    return value
                if text == "":
                    break  # from there on as the wider scope says
        return self._plain(parameter, parameter.default)

    def _plain(self, parameter: Parameter, text: str | None) -> Any:
        """Return what a text is as a value; None where it is not one."""
        at = (parameter.name, text)
        if at not in self._known:
            known = text if text and is_value(parameter, text) else None
            self._known[at] = None if known is None else plain(parameter, known)
        return self._known[at]


class WindowDefinition:
    """A window under the entries of operators."""

    def __init__(self, plan: Plan, window: Window, log: ControlLog) -> None:
        self._functions, self._window = plan.functions.windows, window
        self._controls = window.controls
        self.value = TrueValues(log).value
        self._marks_us = sorted({at.from_us for at in log.entries})
        self._declared = TrueShape(window.size_us, window.slide_us, window.fold)
        self._shapes = {mark_us: self._shape(mark_us) for mark_us in self._marks_us}

    def counts_as(self, sample: AcceptedReading) -> int | None:
        """Return what a reading counts as, in steps; None where it does not count."""
        event, window = sample.event, self._window
        at = ParameterValues(
            {
                each.name: self.value(each, event.device, event.time_us)
                for each in self._controls.uses
            }
        )
        steps: int | None = sample.quantised
        if self._controls.value:
            steps = quantised(self._answer("value", event, at), window.resolution)
            if steps is None:
                return None
            if not isinstance(event.value, str | tuple):  # these stay: a filter asks for them
                event = event._replace(value=float(steps * window.resolution.exact))
        if self._controls.where and not self._answer("where", event, at):
            return None
        return steps

    def _answer(self, function: str, event: Event, at: ParameterValues) -> Any:
        """Return the result of a user's function; None where it fails: then nothing counts."""
        try:
            return self._functions[self._window.name, function](event, at)
        except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
            pass_interrupt(error)
            return None

    def shape(self, start_us: int) -> TrueShape:
        """Return the shape of the windows that start at a time."""
        before = [mark_us for mark_us in self._marks_us if mark_us <= start_us]
        return self._shapes[before[-1]] if before else self._declared

    def _shape(self, mark_us: int) -> TrueShape:
        """Return the last shape, up to a time, of which all parts fit each other."""
        for each_us in [mark for mark in reversed(self._marks_us) if mark <= mark_us]:
            found = self._fitting(each_us)
            if found is not None:
                return found
        return self._declared

    def _fitting(self, mark_us: int) -> TrueShape | None:
        declared, controls = self._declared, self._controls
        size_us, slide_us, fold = declared
        if controls.size is not None:
            size_us = round(self.value(controls.size, "", mark_us) * MICRO)
        if controls.slide is not None:
            slide_us = round(self.value(controls.slide, "", mark_us) * MICRO)
        elif controls.slides_by_size:
            slide_us = size_us
        if controls.fold:
            at = ParameterValues(
                {each.name: self.value(each, "", mark_us) for each in controls.uses}
            )
            try:
                given = self._functions[self._window.name, "fold"](at)
                fold = as_fold(given).at(self._window.resolution)
                if isinstance(declared.fold, Revisable):
                    fold = revisable(fold)
            except ValueError:
                return None
            if (fold.columns, fold.parts) != (declared.fold.columns, declared.fold.parts):
                return None
        fits = 0 < slide_us <= size_us <= slide_us * MOST_WINDOWS
        return TrueShape(size_us, slide_us, fold) if fits else None

    def starts(self, time_us: int) -> Iterator[int]:
        """Yield the starts of the windows that hold a time."""
        sizes = {(each.size_us, each.slide_us) for each in self._shapes.values()}
        for size_us, slide_us in sorted(sizes | {self._declared[:2]}):
            start_us = time_us // slide_us * slide_us
            while start_us + size_us > time_us:
                if self.shape(start_us)[:2] == (size_us, slide_us):
                    yield start_us
                start_us -= slide_us
