"""What a user writes: events, variables, folds and windows, as a pure description.

A `Program` holds no state and starts nothing. The same description runs on a device, in a
simulated fleet and in Spark. Defining it wrongly raises ValueError at once; what can be known only
when all of it is there (which event a variable measures) is checked by `validate`, which every
command calls first.

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
    >>> program.validate().dynamic_folds["global_average"].resolution
    Resolution("0.01")

Source: Meiklejohn, Haeri and Van Roy, "Declarative, Sliding Window Aggregations for Computations
at the Edge", EdgeCom 2016.
"""

from collections.abc import Callable
from dataclasses import replace
from math import gcd
from typing import Any

from crdts import BoundedLWWSet, Lattice
from lasp_edge.folds import as_fold
from lasp_edge.folds.columns import need_alike
from lasp_edge.folds.fold import Column, Fold, Op
from lasp_edge.folds.numbers import Resolution
from lasp_edge.language.declarations import (
    Awaited,
    Change,
    Derivation,
    DynamicFold,
    Event,
    EventType,
    Key,
    LocalFold,
    Variable,
    Window,
    checked_key,
    key_of,
    named,
    need_key,
    size_and_slide,
)
from lasp_edge.language.derivations import Derivations
from lasp_edge.language.mentions import mentioned
from lasp_edge.language.mutators import check_mutator, shape
from lasp_edge.language.plan import Functions, Plan
from lasp_edge.protocol.streams import stream_id


class Update:
    """What a handler is given: it collects changes, which are applied together or not at all."""

    __slots__ = ("_event", "_program", "changes")

    def __init__(self, program: "Program", event: Event | None = None) -> None:
        self._program = program
        self._event = event
        self.changes: list[Change] = []

    def __call__(self, variable: Variable, mutator: Any, *arguments: Any) -> None:
        """Ask for a change: `update(samples, BoundedLWWSet.add, value, time_us)`.

        A variable with keys changes where its key of the event says.

        Args:
            variable: a declared variable of the program.
            mutator: a mutator of its type, its name, or the whole change as a tuple
                `("add", value, time_us)`.
            *arguments: the mutator's arguments after the replica.

        Raises:
            ValueError: a derived or foreign variable, no such mutator, or no valid key.
        """
        if isinstance(mutator, tuple):
            mutator, *rest = mutator
            arguments = (*rest, *arguments)
        name = mutator if isinstance(mutator, str) else getattr(mutator, "__name__", "")
        change = self._program.change(variable, name, arguments)
        if variable.key is not None:
            if self._event is None:
                raise ValueError(f"update: {variable.name!r} has keys, and there is no event")
            key = key_of(variable.key, self._event, f"variable {variable.name!r}")
            change = change._replace(key=key)
        self.changes.append(change)


Handler = Callable[[Event, Update], None]


class Program(Derivations):
    """A fleet's computation: events, variables, folds and windows under one name.

    Args:
        name: names the fleet on the broker and is part of every stream id.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = named(name, "program")
        self.events: dict[str, EventType] = {}
        self.windows: dict[str, Window] = {}
        self.variables: dict[str, Variable] = {}
        self._handlers: dict[str, list[Handler]] = {}
        self._collections: dict[str, list[Variable]] = {}
        self._folds: dict[str, tuple[Variable, Fold]] = {}
        self._dynamic: dict[str, str] = {}
        self._resolutions: dict[str, Resolution] = {}
        self._mutators: set[tuple[str, str, int]] = set()

    def event(self, name: str, *, resolution: str = "1", unit: str = "") -> EventType:
        """Declare a kind of reading.

        Args:
            name: what sources call it.
            resolution: the step of its values as decimal text; readings are rounded to it once.
            unit: for people, such as "°C".

        Raises:
            ValueError: the name is taken or the resolution is not a positive decimal.
        """
        if named(name, "event") in self.events:
            raise ValueError(f"event {name!r} is declared twice")
        self.events[name] = EventType(name, Resolution(resolution), unit)
        self._resolutions.clear()
        return self.events[name]

    def declare(
        self, bottom: Lattice, name: str, *, measures: EventType | str | None = None
    ) -> Variable:
        """Declare a variable that the whole fleet shares: every device's updates are joined.

        Declaring the same variable again returns it.

        Args:
            bottom: the value it starts with, such as `Counter()`.
            name: unique in the program.
            measures: the event whose resolution its values have; needed only where the program's
                handlers leave it open.

        Raises:
            ValueError: the name stands for something else already.
        """
        return self._declared(Variable(name, bottom, dynamic=False), measures)

    def declare_dynamic(
        self,
        bottom: Lattice,
        name: str,
        *,
        measures: EventType | str | None = None,
        key: Key | None = None,
        version: int = 1,
    ) -> Variable:
        """Declare a variable that each device has for itself; it is never joined over devices.

        Args:
            bottom: the value it starts with, such as `BoundedLWWSet(bound=100)`.
            name: unique in the program.
            measures: as for `declare`.
            key: gives the text by which readings are grouped: each key has a set of its own, which
                folds and dynamic folds follow. A key comes with its first sample, and goes when
                its samples have become too old.
            version: raise it when the meaning of `key` changes.

        Raises:
            ValueError: as for `declare`, or what has keys is no `BoundedLWWSet`.
        """
        need_key(key, version, f"declare {name!r}")
        if key is not None and not isinstance(bottom, BoundedLWWSet):
            raise ValueError(f"declare {name!r}: key= is for a BoundedLWWSet, not {bottom!r}")
        made = Variable(name, bottom, dynamic=True, key=key, version=version)
        return self._declared(made, measures)

    def collect(self, source: EventType | str, *, into: Variable) -> Variable:
        """Add every accepted reading of an event to a dynamic set, without a handler.

        It means the same as a handler with `update(into, BoundedLWWSet.add, event.value,
        event.time_us)` that runs before all others, and costs no Python function a reading.

        Args:
            source: the event.
            into: a dynamic `BoundedLWWSet` variable.

        Returns:
            The variable.

        Raises:
            ValueError: something does not fit; nothing is declared then.
        """
        event, variable = self._event(source), self._own(into)
        if not variable.dynamic or not isinstance(variable.bottom, BoundedLWWSet):
            raise ValueError(f"collect: {variable.name!r} must be a dynamic BoundedLWWSet variable")
        if variable.name in self._folds or variable.name in self._dynamic:
            raise ValueError(f"collect: {variable.name!r} is derived by a fold")
        if variable.measures is not None and variable.measures.resolution != event.resolution:
            raise ValueError(
                f"collect: {variable.name!r} measures {variable.measures.name!r}, whose resolution "
                f"is not that of {event.name!r}"
            )
        known = self._collections.setdefault(event.name, [])
        if variable not in known:
            known.append(variable)
        self._resolutions.clear()
        return variable

    def collections(self, event_name: str) -> tuple[Variable, ...]:
        """Return the variables that collect the event, in the order in which they were named."""
        return tuple(self._collections.get(event_name, ()))

    def on_event(self, source: EventType | str) -> Callable[[Handler], Handler]:
        """Decorate a handler `(event, update)` that runs for each accepted reading."""
        event = self._event(source)

        def register(handler: Handler) -> Handler:
            if not callable(handler):
                raise ValueError(f"on_event: a function (event, update) is needed, not {handler!r}")
            self._handlers.setdefault(event.name, []).append(handler)
            self._resolutions.clear()
            return handler

        return register

    def fold(self, source: Variable, fold: Any, target: Variable | str) -> Variable:
        """Derive `target` on each device: the fold of what `source` holds there now.

        Args:
            source: a dynamic `BoundedLWWSet` variable.
            fold: a fold such as `folds.mean()`, or its factory.
            target: a new name, or a declared variable whose shape fits the fold's partial.

        Raises:
            ValueError: something does not fit; nothing is declared then.
        """
        made = as_fold(fold)
        source = self._own(source)
        if not isinstance(source.bottom, BoundedLWWSet) or not source.dynamic:
            raise ValueError(f"fold: {source.name!r} must be a dynamic BoundedLWWSet variable")
        need_alike(self._every_column(), made.columns)
        derived = self._target(target, made)
        self._folds[derived.name] = (source, made)
        return derived

    def fold_dynamic(self, source: Variable, *rest: Any) -> Variable:
        """Derive a fleet-wide value: the partials of all devices, combined.

        Called as `fold_dynamic(local, target)`; the talk's `fold_dynamic(local, fold, target)`
        means the same and checks that the fold is the one that made the partials.

        Args:
            source: the target of a `fold`.
            *rest: the target (a new name or a declared variable), before it the fold if wanted.

        Raises:
            ValueError: something does not fit; nothing is declared then.
        """
        if self._own(source).name not in self._folds:
            raise ValueError(f"fold_dynamic: {source.name!r} must be the target of a fold")
        _, made = self._folds[source.name]
        *given, target = rest or (None,)
        if len(given) > 1 or not isinstance(target, Variable | str):
            raise ValueError("fold_dynamic: needed are (local, target) or (local, fold, target)")
        if given and as_fold(given[0]).fingerprint(_ONE) != made.fingerprint(_ONE):
            raise ValueError(
                f"fold_dynamic: {source.name!r} holds partials of {made}, not of {given[0]!r}"
            )
        derived = self._target(target, made)
        self._dynamic[derived.name] = source.name
        return derived

    def window(
        self,
        name: str,
        *,
        source: EventType | str,
        fold: Any,
        size_s: float,
        slide_s: float | None = None,
        key: Key | None = None,
        version: int = 1,
    ) -> Window:
        """Declare a sliding window over an event's readings by their own time.

        Windows are [start, start + size) with every start a multiple of the slide since the
        epoch; one exists where a reading lies in it.

        Args:
            name: names the window in the lake.
            source: the event.
            fold: a fold such as `folds.mean()`, or its factory.
            size_s: length in seconds, to the microsecond.
            slide_s: distance of the starts in seconds; the size where it is left out.
            key: gives the text by which readings are grouped.
            version: raise it when the meaning of `key` changes.

        Raises:
            ValueError: something does not fit; nothing is declared then.
        """
        if named(name, "window") in self.windows or name in self.variables:
            raise ValueError(f"window {name!r}: the name is taken")
        event = self._event(source)
        made = as_fold(fold).at(event.resolution)
        size_us, slide_us = size_and_slide(
            f"window {name!r}", size_s, size_s if slide_s is None else slide_s
        )
        need_key(key, version, f"window {name!r}")
        need_alike(self._every_column(), made.columns)
        span_us = gcd(size_us, slide_us)
        meaning = (name, event.name, span_us, version, made.fingerprint(event.resolution))
        stream = stream_id(self.name, "window", *meaning)
        window = Window(name, event, made, size_us, slide_us, key, version, stream)
        self.windows[name] = window
        return window

    @property
    def local_folds(self) -> dict[str, LocalFold]:
        """The local folds by target name."""
        return {name: self._local_fold(name) for name in self._folds}

    @property
    def dynamic_folds(self) -> dict[str, DynamicFold]:
        """The dynamic folds by target name."""
        folds = {}
        for name, source_name in self._dynamic.items():
            source = self._local_fold(source_name)
            stream = stream_id(self.name, "fold_dynamic", name, source.stream)
            folds[name] = DynamicFold(name, source, stream)
        return folds

    @property
    def published_folds(self) -> dict[str, LocalFold]:
        """The local folds that some dynamic fold reads: only these travel."""
        wanted = set(self._dynamic.values())
        return {name: fold for name, fold in self.local_folds.items() if name in wanted}

    @property
    def shared_variables(self) -> dict[str, Variable]:
        """The variables that are joined over the fleet."""
        derived = self._folds.keys() | self._dynamic.keys()
        return {n: v for n, v in self.variables.items() if not v.dynamic and n not in derived}

    def columns(self) -> dict[str, Op]:
        """Return every column of the program's partials with its op, sorted by name."""
        return dict(sorted((column.name, column.op) for column in self._every_column()))

    def validate(self) -> "Program":
        """Return the program itself.

        Raises:
            ValueError: it cannot be run as it stands; the text says what is needed.
        """
        if not self.events:
            raise ValueError(f"program {self.name!r} declares no event")
        for variable in self.variables.values():
            if isinstance(variable.bottom, BoundedLWWSet):
                self.resolution_of(variable)
        for name, variables in self._collections.items():
            for variable in variables:
                if self.resolution_of(variable) != self.events[name].resolution:
                    raise ValueError(
                        f"collect: {variable.name!r} has another resolution than event {name!r}"
                    )
        return self

    def plan(self) -> Plan:
        """Return everything that was declared, checked and complete, as plain data.

        Raises:
            ValueError: the program cannot be run as it stands; the text says what is needed.
        """
        self.validate()
        named: list[tuple[str, str, Key | None]] = []
        named += [(w.name, f"window {w.name!r}", w.key) for w in self.windows.values()]
        named += [(v.name, f"variable {v.name!r}", v.key) for v in self.variables.values()]
        made = self.derivations.items()
        columns = {column.name: column for column in self._every_column()}
        return Plan(
            self.name,
            dict(self.events),
            dict(self.variables),
            {
                name: self.resolution_of(variable)
                for name, variable in self.variables.items()
                if isinstance(variable.bottom, BoundedLWWSet)
            },
            {name: tuple(several) for name, several in self._collections.items()},
            dict(self.windows),
            self.local_folds,
            self.dynamic_folds,
            {
                name: Derivation(definition.operator, definition.sources, version)
                for name, (definition, version) in made
            },
            tuple(Awaited(variable, threshold) for variable, threshold, _ in self.awaited),
            {name: columns[name] for name in sorted(columns)},
            Functions(
                self.name,
                {name: checked_key(key, whose) for name, whose, key in named if key is not None},
                {name: tuple(handlers) for name, handlers in self._handlers.items()},
                {name: each.function for name, (each, _) in made if each.function is not None},
                tuple(handler for _, _, handler in self.awaited),
            ),
        )

    def resolution_of(self, variable: Variable) -> Resolution:
        """Return the resolution of a variable's values.

        It is that of the event it `measures`, else of the events that it collects or whose handlers
        name it, else of the program's only event.

        Raises:
            ValueError: that leaves several.
        """
        if variable.name not in self._resolutions:
            self._resolutions[variable.name] = self._find_resolution(variable)
        return self._resolutions[variable.name]

    def run_handlers(self, event: Event) -> list[Change]:
        """Return what the event's handlers ask for."""
        update = Update(self, event)
        for handler in self._handlers.get(event.name, ()):
            handler(event, update)
        return update.changes

    def has_handlers(self, event_name: str) -> bool:
        """Return whether some handler wants this event."""
        return event_name in self._handlers

    def handlers(self, event_name: str) -> tuple[Handler, ...]:
        """Return the event's handlers, in the order in which they were declared."""
        return tuple(self._handlers.get(event_name, ()))

    def change(self, variable: Variable, mutator: str, arguments: tuple[Any, ...]) -> Change:
        """Return a checked change; measured values in it become quantised integers.

        Raises:
            ValueError: as `Update.__call__`; `numbers.Refused` for a value that is no number.
        """
        name = self._own(variable).name
        if variable.bottom is None or name in self._folds or name in self._dynamic:
            made = self.derivations[name].definition if name in self.derivations else "a fold"
            raise ValueError(f"update: {name!r} is derived by {made} and cannot be updated")
        asked = (name, mutator, len(arguments))
        if asked not in self._mutators:
            check_mutator(name, type(variable.bottom), mutator, len(arguments))
            self._mutators.add(asked)
        if isinstance(variable.bottom, BoundedLWWSet):
            value = self.resolution_of(variable).quantise(arguments[0])
            arguments = (value, *arguments[1:])
        return Change(name, mutator, arguments)

    def _declared(self, made: Variable, measures: Any) -> Variable:
        name, bottom = made.name, made.bottom
        if named(name, "variable") in self.windows:
            raise ValueError(f"variable {name!r}: the name is taken by a window")
        if not isinstance(bottom, Lattice) or bottom != bottom.bottom():
            raise ValueError(f"declare {name!r}: a CRDT's bottom value is needed, not {bottom!r}")
        event = None if measures is None else self._event(measures)
        made = replace(made, bottom=bottom.bottom(), measures=event)
        known = self.variables.setdefault(name, made)
        if _meaning(known) != _meaning(made):
            raise ValueError(f"variable {name!r} is declared twice, differently")
        return known

    def _own(self, variable: Any) -> Variable:
        if not isinstance(variable, Variable) or self.variables.get(variable.name) is not variable:
            raise ValueError(f"{variable!r} is not a variable of program {self.name!r}")
        return variable

    def _event(self, source: Any) -> EventType:
        name = source.name if isinstance(source, EventType) else source
        known = self.events.get(name) if isinstance(name, str) else None
        if known is None or (isinstance(source, EventType) and known != source):
            raise ValueError(f"program {self.name!r} declares no event {name!r}")
        return known

    def _target(self, target: Variable | str, fold: Fold) -> Variable:
        if isinstance(target, str):
            if named(target, "variable") in self.windows:
                raise ValueError(f"variable {target!r}: the name is taken by a window")
            if target not in self.variables:
                self.variables[target] = Variable(target, None, dynamic=True)
            target = self.variables[target]
        name = self._own(target).name
        if name in self._folds or name in self._dynamic:
            raise ValueError(f"{name!r} is the target of a fold already")
        if name in self.derivations or name in self.followed:
            raise ValueError(
                f"{name!r} cannot be a fold's target: sets are derived from it, or it is one"
            )
        needed = [column.op for column in fold.columns]
        if target.bottom is not None and shape(target.bottom) != needed:
            raise ValueError(
                f"{name!r}: {fold} gives the columns {fold.columns_named}, a declared "
                f"{target.bottom!r} does not; a Counter holds one sum, Pair and Product several"
            )
        return target

    def _every_column(self) -> list[Column]:
        folds = [window.fold for window in self.windows.values()]
        folds += [fold for _, fold in self._folds.values()]
        return [column for fold in folds for column in fold.columns]

    def _local_fold(self, name: str) -> LocalFold:
        source, fold = self._folds[name]
        resolution = self.resolution_of(source)
        fold = fold.at(resolution)
        fingerprint = fold.fingerprint(resolution)
        grouped = source.version if source.key is None else f"by key {source.version}"
        stream = stream_id(self.name, "fold", name, source.name, grouped, fingerprint)
        return LocalFold(name, source, fold, resolution, stream)

    def _find_resolution(self, variable: Variable) -> Resolution:
        if variable.measures is not None:
            return variable.measures.resolution
        named = {
            self.events[event].resolution
            for event, handlers in self._handlers.items()
            if any(named is variable for handler in handlers for named in mentioned(handler))
        }
        named |= {
            self.events[event].resolution
            for event, collecting in self._collections.items()
            if variable in collecting
        }
        found = named or {event.resolution for event in self.events.values()}
        if len(found) != 1:
            raise ValueError(
                f"variable {variable.name!r}: which event does it measure? "
                f"Declare it with measures=..., one of {sorted(self.events)}"
            )
        return found.pop()


_ONE = Resolution("1")


def _meaning(variable: Variable) -> tuple[Any, ...]:
    """Return what two declarations of one variable must have in common."""
    return variable.dynamic, variable.bottom, variable.measures, variable.key, variable.version
