"""Scans: a scan is the ordered sister of a fold, for what does not commute.

It has a first state (`zero`), and a `step` that takes a state and the next event of a key in the
order of places, and gives the next state and what it says. If time alone can bring something, `due`
tells when, and `ring` is called then, before all events of that instant. A late event is put in its
place, and all behind it is stepped again until the state is what it was.

What is asked of the functions: they depend on their arguments alone, states and values are plain
(`lasp_edge.ordered.plain`), and a state is never changed in place. One that raises, or gives what
is not plain, says nothing and leaves the state as it was, everywhere.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Generic

from lasp_edge.event import Event
from lasp_edge.folds.numbers import Resolution
from lasp_edge.generics import Value_co

TIME = "time"
"""In place of the step of a part: it is a time, in whole microseconds since 1970."""

MOST_RINGS: Final = 10_000
"""Timers between two items, at most: one that sets itself again and again does not go on for ever.
Part of the meaning of a scan, as the limit of a state is."""

Stepped = tuple[Any, Sequence[Any]]
"""The next state, and the values of the outputs."""


class Scan(ABC, Generic[Value_co]):
    """A fold whose order matters. Define `step`; `due` and `ring`, if time alone can say something.

    A `Scan[float]` gives numbers.

    >>> from lasp_edge import scans
    >>> class Alternations(scans.Scan):
    ...     '''How often a value has changed its sign.'''
    ...     name, zero, parts = "alternations", (0, 0), {"times": "1"}
    ...
    ...     def step(self, state, event):
    ...         times, sign = state
    ...         now = 1 if event.value > 0 else -1
    ...         return ((times + 1, now), [times + 1]) if now == -sign else ((times, now), [])
    >>> from lasp_edge.testing import scan_outputs
    >>> scan_outputs(Alternations(), [3, -1, -2, 5])
    [1, 2]

    Attributes:
        name: names its kind; a stream of it has a name of its own.
        version: raise it whenever the meaning of the state or of a value changes.
        zero: the state before the first event, a plain value.
        parts: what the values that it says consist of, by name: the step of a number as decimal
            text, "text", or "time"; empty where only its user knows.
        resolution: the step of the values that it says, if they are numbers with a step.
        tells_apart: the names of the events or streams that it asks for, if it asks for names.
        of_numbers: it computes with numbers, so that an event with texts is refused.
        local: a change at one place revises few results; else, all behind it.
    """

    name: str
    version: int = 1
    zero: Any = ()
    parts: Mapping[str, str] = {}
    resolution: Resolution | None = None
    tells_apart: tuple[str, ...] = ()
    of_numbers: ClassVar[bool] = False
    local: ClassVar[bool] = False

    @abstractmethod
    def step(self, state: Any, event: Event[Any]) -> Stepped:
        """Return the state after an event, and the outputs at its place."""

    def due(self, state: Any) -> int | None:  # noqa: ARG002 - most scans have no timer
        """Return when `ring` is to be called if nothing comes before, in microseconds."""
        return None

    def ring(self, state: Any, at_us: int) -> Stepped:  # noqa: ARG002
        """Return the state after that time has come, and the outputs then."""
        return state, ()

    def at(self, resolution: Resolution | None) -> "Scan":  # noqa: ARG002
        """Return the scan for events in steps of `resolution`; None where they have no step."""
        return self

    @property
    def timed(self) -> bool:
        """Whether time alone can bring something."""
        return type(self).due is not Scan.due

    @property
    def fingerprint(self) -> str:
        """Canonical text that differs for scans whose states or values must not meet."""
        return f"{self.name} {self.version}"

    def __repr__(self) -> str:
        return f"scans.{self.name}"


class InSteps(Scan):
    """A scan whose values are rounded to its step: who wrote it may give any number.

    Args:
        scan: the scan.
        step: of its values.

    Attributes:
        inner: the scan.
    """

    def __init__(self, scan: Scan, step: Resolution) -> None:
        self.name, self.version, self.zero = scan.name, scan.version, scan.zero
        self.parts, self.resolution, self.due = scan.parts, step, scan.due  # type: ignore[method-assign]
        self.inner = scan

    def step(self, state: Any, event: Event[Any]) -> Stepped:
        return self._rounded(*self.inner.step(state, event))

    def ring(self, state: Any, at_us: int) -> Stepped:
        return self._rounded(*self.inner.ring(state, at_us))

    def _rounded(self, state: Any, values: Sequence[Any]) -> Stepped:
        assert self.resolution is not None
        return state, [self.resolution.nearest(value) for value in values]

    @property
    def timed(self) -> bool:
        return self.inner.timed

    @property
    def fingerprint(self) -> str:
        return self.inner.fingerprint
