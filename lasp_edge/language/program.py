"""What a user writes: events, variables, folds and windows, as a pure description.

A `Program` holds no state and starts nothing. A wrong definition raises ValueError at once. What
can be checked only when the program is complete (which event a variable measures) is checked by
`plan`, which every command calls first.

    >>> from crdts import BoundedLWWSet
    >>> from lasp_edge import folds
    >>> program = Program("greenhouse")
    >>> temperature = program.event("temperature", resolution="0.01", unit="°C")
    >>> samples = program.declare_dynamic(BoundedLWWSet(bound=100), "samples")
    >>> @program.on_event(temperature)
    ... def sampled(event, update):
    ...     update(samples, BoundedLWWSet.add, event.value, event.time_us)
    >>> local_average = program.fold(samples, folds.mean(), "local_average")
    >>> global_average = program.fold_dynamic(local_average, "global_average")
    >>> program.plan().dynamic_folds["global_average"].resolution
    Resolution("0.01")

Source: Meiklejohn, Haeri and Van Roy, "Declarative, Sliding Window Aggregations for Computations
at the Edge", EdgeCom 2016.
"""

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from crdts import BoundedLWWSet
from lasp_edge.event import Event
from lasp_edge.folds.fold import Fold, as_fold
from lasp_edge.generics import Value
from lasp_edge.language.acting import Folded, FoldValue
from lasp_edge.language.arguments import need_function, several
from lasp_edge.language.declarations import EventType, Key, Parameter, Stream, Window
from lasp_edge.language.declaring import Declaring
from lasp_edge.language.draft import Draft
from lasp_edge.language.folding import declare_dynamic_fold
from lasp_edge.language.inputs import Inputs
from lasp_edge.language.plan import Plan
from lasp_edge.language.planning import plan_of
from lasp_edge.language.signatures import (
    Condition,
    Decorator,
    FoldFactory,
    FoldOf,
    Handler,
    Level,
    Source,
    ValueOf,
)
from lasp_edge.language.triggers import wait_time
from lasp_edge.language.watching import declare_alert, react, watch_value
from lasp_edge.language.window_sources import over_stream, window_source
from lasp_edge.language.windowing import WindowArguments, declare_window
from lasp_edge.variables import Variable, named

if TYPE_CHECKING:
    from lasp_edge.language.derivations import Derivations


class Program(Inputs, Declaring):
    """A fleet's computation: events, variables, folds and windows under one name.

    Every method raises ValueError where something does not fit; nothing is declared then.

    >>> from lasp_edge import folds
    >>> program = Program("weather")
    >>> rain = program.event("rain", resolution="0.1", unit="mm")
    >>> by_day = program.window("by_day", source=rain, fold=folds.sum(), size_s=86_400)
    >>> sorted(program.plan().windows)
    ['by_day']
    >>> program.event("rain")
    Traceback (most recent call last):
        ...
    ValueError: event 'rain' is declared twice

    Args:
        name: names the fleet on the broker and is part of every stream id.
    """

    def __init__(self, name: str) -> None:
        self._draft = Draft(name)
        self._derivations: Derivations | None = None

    def plan(self) -> Plan:
        """Return everything that was declared, checked and complete, as plain data.

        >>> program = Program("weather")
        >>> rain = program.event("rain", resolution="0.1", unit="mm")
        >>> program.plan().events["rain"].unit
        'mm'

        Raises:
            ValueError: the program cannot be run as it stands; the text says what is needed.
        """
        return plan_of(self._draft)

    def on_event(
        self, source: EventType[Value] | str, *, writes: Iterable[Variable] = ()
    ) -> Decorator[Event[Value]]:
        """Decorate a handler `(event, update)` that runs for each accepted reading.

        >>> from crdts import Counter
        >>> program = Program("doors")
        >>> door, openings = program.event("door"), program.declare(Counter(), "openings")
        >>> @program.on_event(door)
        ... def opened(event, update):
        ...     update(openings, Counter.increment, 1)

        Args:
            source: the event.
            writes: the sets of samples that it updates, where its code does not name them itself.
        """
        event, written = self._draft.event(source), [self._draft.variable(v) for v in writes]

        def register(handler: Handler[Event[Value]]) -> Handler[Event[Value]]:
            need_function(handler, "on_event", "(event, update)")
            self._draft.handlers.setdefault(event.name, []).append(handler)
            self._draft.writes.setdefault(event.name, []).extend(written)
            return handler

        return register

    def fold(
        self, source: Variable[BoundedLWWSet], fold: Fold | FoldFactory, target: Variable | str
    ) -> Variable[FoldValue]:
        """Derive `target` on each device: the fold of what `source` holds there now.

        >>> from crdts import BoundedLWWSet
        >>> from lasp_edge import folds
        >>> program = Program("house")
        >>> samples = program.declare_dynamic(BoundedLWWSet(bound=10), "samples")
        >>> program.fold(samples, folds.mean(), "here")
        the variable 'here'

        Args:
            source: a dynamic `BoundedLWWSet` variable.
            fold: a fold such as `folds.mean()`, or its factory.
            target: a new name, or a declared variable whose shape fits the fold's partial.
        """
        made = as_fold(fold)
        made = self._draft.fold_over(source := self._draft.variable(source), made)
        if not isinstance(source.bottom, BoundedLWWSet) or not source.dynamic:
            raise ValueError(f"fold: {source.name!r} must be a dynamic BoundedLWWSet variable")
        self._draft.check_columns(made)
        derived = self._draft.add_target(target, made)
        self._draft.local[derived.name] = (source, made)
        return derived

    def fold_dynamic(
        self,
        source: Folded,
        fold: Fold | FoldFactory | Variable | str | None = None,
        target: Variable | str | None = None,
        *,
        part: str | None = None,
        resolution: str | None = None,
        stale_after_s: float | None = None,
    ) -> Variable[FoldValue]:
        """Derive a fleet-wide value: the partials of all devices, combined.

        With another fold than that of `source` it is a fold over the devices' results: of the
        numbers that `source` gives on each of them, `folds.quantile(0.95)` is their percentile.

        >>> from crdts import BoundedLWWSet
        >>> from lasp_edge import folds
        >>> program = Program("house")
        >>> samples = program.declare_dynamic(BoundedLWWSet(bound=10), "samples")
        >>> here = program.fold(samples, folds.mean(), "here")
        >>> program.fold_dynamic(here, "everywhere", stale_after_s=600)
        the variable 'everywhere'
        >>> program.fold_dynamic(here, folds.quantile(0.95), "p95", resolution="0.1")
        the variable 'p95'

        Args:
            source: the target of a `fold`.
            fold: the fold that made the partials, as in the talk's `fold_dynamic(local, fold,
                target)`; it may be left out, as in `fold_dynamic(local, target)`. Or another one.
            target: a new name or a declared variable.
            part: which part of the devices' results is folded; needed where they have several.
            resolution: the step to which a device's result is rounded, that of the samples if it
                is left out. With it, or with `part`, a fold of the same kind is over results, too.
            stale_after_s: a device that is silent for longer does not count until it is heard.
        """
        given = (source, fold, target, part, resolution)
        return declare_dynamic_fold(self._draft, *given, stale_after_s)

    def window(  # noqa: PLR0913 - what a window can have
        self,
        name: str,
        *,
        source: Source[Value],
        fold: Fold | FoldFactory | FoldOf,
        size_s: float | Parameter[float],
        slide_s: float | Parameter[float] | None = None,
        key: Key[Value] | None = None,
        version: int = 1,
        uses: Iterable[Parameter] = (),
        value: ValueOf[Value] | None = None,
        where: Condition[Value] | None = None,
        tentative_after_s: float | str | None = None,
    ) -> Window:
        """Declare a sliding window over an event's readings by their own time.

        Windows are [start, start + size) with every start a multiple of the slide since the
        epoch; one exists where a reading lies in it.

        >>> from lasp_edge import folds
        >>> program = Program("house")
        >>> power = program.event("power", unit="W")
        >>> made = program.window(
        ...     "by_room", source=power, fold=folds.mean(), size_s=60, slide_s=10,
        ...     key=lambda event: event.tags["room"], where=lambda event: event.value > 0,
        ... )
        >>> made.size_us, made.slide_us
        (60000000, 10000000)

        Args:
            name: names the window in the lake.
            source: the event or stream; a list of several is their union. Where values have no
                step, as texts and pairs, `folds.count` counts them, and other folds need `value`.
            fold: a fold such as `folds.mean()`, or its factory. Over a scan, whose outputs may be
                taken back, first, last and what you wrote yourself are refused. A function of the
                parameters, `lambda at: folds.quantile(0.99, relative_error=at[error])`, gives the
                fold of the windows that start while they hold.
            size_s: length in seconds, to the microsecond; or a parameter, and of a window counts
                what holds at its start.
            slide_s: distance of the starts in seconds, or a parameter; the size where left out.
            key: gives the text by which readings are grouped; or a tuple of texts and whole
                numbers, which is shown as a list, as `["attic",2]`.
            version: raise it when the meaning of `key`, `value`, `where` or the fold's function
                changes.
            uses: the parameters that these functions ask for.
            value: gives what a reading counts as, from the event, or from the event and the
                parameters at its time; of a text or a pair a whole number.
            where: gives True (or 1) where a reading counts and else False (or 0), from the event
                with that value (a text or a pair stays as it is), or from it and the parameters.
            tentative_after_s: for how many seconds a gateway or Spark waits for devices before it
                shows a result that is tentative; 0 for not at all, "never" for final ones alone.
                Where it is left out, their `--tentative-after` counts.
        """
        draft, what = self._draft, f"window {name!r}"
        if draft.is_taken(named(name, "window"), events=False):
            raise ValueError(f"{what}: the name is taken")
        event, of_stream = window_source(draft, source, fold, name, value)
        wait_us = None if tentative_after_s is None else wait_time(tentative_after_s, what)
        shape = (fold, size_s, slide_s, key, version)
        counts = (several(uses, f"{what}: uses="), value, where)
        given = WindowArguments(name, event, of_stream, *shape, *counts, wait_us)
        return declare_window(draft, given, partial(over_stream, draft, event.name))

    def on_value(
        self,
        variable: Folded | str,
        *,
        part: str | None = None,
        above: Level | None = None,
        below: Level | None = None,
        for_s: float = 0,
        every_s: float | None = None,
    ) -> Decorator[FoldValue]:
        """Decorate a handler `(value, update)` that runs on each device when a fold's value moves.

        Without a level it runs for each new value; with one, when the value goes beyond it, and
        again only after it has come back: never twice for one `value.inputs`, not even after a
        restart. What it does beside `update` may be repeated by a crash.

        >>> from crdts import BoundedLWWSet
        >>> from lasp_edge import folds
        >>> program = Program("house")
        >>> samples = program.declare_dynamic(BoundedLWWSet(bound=10), "samples")
        >>> here = program.fold(samples, folds.mean(), "here")
        >>> @program.on_value(here, above=28, below=27)
        ... def warm(value, update):
        ...     print(value.number)

        Args:
            variable: the target of a `fold` or `fold_dynamic`, or its name.
            part: which part of the value is compared; needed where it has several.
            above: the handler runs when the value is greater than this; with `below`, again only
                after the value has come down to `below` or further.
            below: alone, the handler runs when the value is less than this.
            for_s: and has been for this many seconds.
            every_s: least seconds between two calls for one key; None: the agent's interval.
        """
        levels = {"above": above, "below": below, "for_s": for_s}
        watched = watch_value(self._draft, variable, part, levels, every_s)

        def register(handler: Handler[FoldValue]) -> Handler[FoldValue]:
            react(self._draft, watched, handler)
            return handler

        return register

    def alert(
        self,
        name: str,
        variable: Folded | Window | Stream | str,
        *,
        part: str | None = None,
        above: Level | None = None,
        below: Level | None = None,
        hysteresis: Level = 0,
        for_s: float = 0,
    ) -> None:
        """Declare an alert on a value, a window or a result: it is on or off, by key.

        That on a value, or on a result of each device, is of each device. That on a window, or on a
        result over the whole fleet, is of each gateway. Of a window or result counts the newest row
        that is final.

        >>> from crdts import BoundedLWWSet
        >>> from lasp_edge import folds
        >>> program = Program("house")
        >>> samples = program.declare_dynamic(BoundedLWWSet(bound=10), "samples")
        >>> here = program.fold(samples, folds.mean(), "here")
        >>> program.alert("too warm", here, above=28, hysteresis=1, for_s=60)

        Args:
            name: unique among the alerts, for people.
            variable: the target of a `fold` or `fold_dynamic`, a window, a stream that is a
                result, or its name.
            part: which part of it is compared; needed where it has several.
            above: it goes on when the value is greater than this, and off when that is over; a
                number, decimal text, or a parameter that operators change. With
                `below`, off when the value is `below` or less.
            below: alone, it goes on when the value is less than this.
            hysteresis: with one level alone, how far the value has to come back until it goes off.
            for_s: it goes on once the value has been there for this many seconds; of a window, from
                the end of the first such window to that of the newest one.

        Raises:
            ValueError: the name is taken, there is nothing to watch, or the levels do not fit.
        """
        levels = {"above": above, "below": below, "hysteresis": hysteresis, "for_s": for_s}
        declare_alert(self._draft, name, variable, part, levels)
