"""A draft: what a program has declared so far. Each name in it stands for one thing.

`Program` writes it, and `planning` makes a plan of it once it is complete.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from crdts import GCounter, Lattice, PNCounter, Product
from crdts.wire import CODES
from lasp_edge.aggregates.absence import Absent
from lasp_edge.folds.columns import Column, Op, need_alike
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import Resolution
from lasp_edge.language.acting import Watched
from lasp_edge.language.declarations import (
    EventType,
    Key,
    LocalFold,
    Parameter,
    Shown,
    Stream,
    StreamResult,
    UserHandler,
    Window,
)
from lasp_edge.language.derivation import Awaited, Derivation
from lasp_edge.protocol.lake_columns import LAKE_COLUMNS
from lasp_edge.variables import Variable, named


class MadeOf(NamedTuple):
    """How a local fold is made of others (`lasp_edge.folds.derived`).

    Attributes:
        targets: of those others.
        resolution: the step of its values; None: that of the first of them.
        fold: gives it, once the others are at their resolutions.
    """

    targets: tuple[str, ...]
    resolution: Resolution | None
    fold: Callable[[Sequence[LocalFold], Resolution], Fold]


_NO_EVENT = {
    Window: "a window, of whose rows nothing is made; give it a fold= of all that is asked for, "
    "such as folds.struct(..)",
    Stream: "a stream; a window over it folds its values, and what on_result(..) decorates runs "
    "for each row of a program.result(..)",
}
"""What stands in place of an event -> what to write."""
_NO_VARIABLE = {
    Window: "a window, which is over the readings of all devices already: its rows have the value, "
    "and program.alert(..) watches them",
    Stream: "a stream; a window over it folds its values, over all devices",
}
"""The same in place of a variable."""


class Draft:
    """The tables of a program that is being written, by name.

    Attributes:
        keys: the key functions of windows and variables.
        writes: event -> the variables that `writes=` declares for its handlers.
        local: target -> the variable and the fold of a local fold.
        dynamic: target -> the local fold that a dynamic fold combines.
        made_of: target of a local fold -> those that its partials are made of, and how.
        derived: the functions of derived sets.
        reached: the handler of each entry of `awaited`.
        reactions: what the handlers of `on_value` watch.
        reacting: the handler of each entry of `reactions`.
        alerts: what each alert watches.
        stream_functions: the function or scan of each stream that has one.
        stream_results: the streams that leave.
        result_handlers: the handlers of the rows of each of them.
        stale_us: target of a dynamic fold -> the silence after which a device does not count.
        parameters: what operators can change.
        shown: how people are shown values, windows and results, where the program says it.
        window_functions: (window, "value", "where" or "fold") -> its function that sees parameters.
    """

    def __init__(self, name: str) -> None:
        self.name = named(name, "program")
        self.events: dict[str, EventType] = {}
        self.variables: dict[str, Variable] = {}
        self.windows: dict[str, Window] = {}
        self.keys: dict[str, Key] = {}
        self.handlers: dict[str, list[UserHandler]] = {}
        self.writes: dict[str, list[Variable]] = {}
        self.collections: dict[str, list[Variable]] = {}
        self.local: dict[str, tuple[Variable, Fold]] = {}
        self.dynamic, self.stale_us = dict[str, str](), dict[str, int]()
        self.made_of: dict[str, MadeOf] = {}
        self.derivations: dict[str, Derivation] = {}
        self.derived: dict[str, Callable[[Any], Any]] = {}
        self.awaited: list[Awaited] = []
        self.reached: list[UserHandler] = []
        self.reactions: list[Watched] = []
        self.reacting: list[UserHandler] = []
        self.alerts: dict[str, Watched] = {}
        self.streams: dict[str, Stream] = {}
        self.stream_functions: dict[str, Any] = {}
        self.stream_results: dict[str, StreamResult] = {}
        self.result_handlers: dict[str, list[UserHandler]] = {}
        self.parameters: dict[str, Parameter] = {}
        self.shown: dict[str, Shown] = {}
        self.window_functions: dict[tuple[str, str], Callable[..., Any]] = {}

    def event(self, source: Any) -> EventType:
        """Return a declared event, given itself or its name.

        Raises:
            ValueError: the program declares no such event.
        """
        name = source.name if isinstance(source, EventType) else source
        if isinstance(name, Variable) and self.variables.get(name.name) is name:
            raise ValueError(
                f"an event is needed, and {name.name!r} is a variable; collect(EVENT, "
                f"into={name.name}) fills one from the other"
            )
        if isinstance(name, Window | Stream):
            raise ValueError(f"an event is needed, and {name.name!r} is {_NO_EVENT[type(name)]}")
        if not isinstance(name, str):
            shown, meant = _shown(name, "on_event(door)")
            raise ValueError(f"program {self.name!r} declares no event {shown}{meant}")
        known = self.events.get(name)
        if known is None or (isinstance(source, EventType) and known != source):
            raise ValueError(f"program {self.name!r} declares no event {name!r}")
        return known

    def is_taken(self, name: str, *, events: bool = True) -> bool:
        """Return whether a name stands for a variable, a window, a stream, or else an event."""
        known = name in self.variables or name in self.windows or name in self.streams
        return known or (events and name in self.events)

    def variable(self, variable: Any) -> Variable:
        """Return a declared variable, given itself.

        Raises:
            ValueError: the program did not declare it.
        """
        if isinstance(variable, EventType):
            raise ValueError(
                f"a variable is needed, and {variable.name!r} is an event; samples = "
                f'declare_dynamic(BoundedLWWSet(bound=100), "samples") and collect({variable.name}'
                ", into=samples) make one of it"
            )
        declared = [*self.windows.values(), *self.streams.values()]
        if isinstance(variable, Window | Stream) and any(each is variable for each in declared):
            raise ValueError(
                f"a variable is needed, and {variable.name!r} is {_NO_VARIABLE[type(variable)]}"
            )
        if not isinstance(variable, Variable) or self.variables.get(variable.name) is not variable:
            shown, meant = _shown(variable, "on_value(mean)")
            raise ValueError(f"{shown} is not a variable of program {self.name!r}{meant}")
        return variable

    def declare(self, made: Variable, measures: Any, key: Key | None = None) -> Variable:
        """Add a variable, or return it where it was declared alike before.

        Raises:
            ValueError: its bottom cannot be used, or the name stands for something else.
        """
        name, bottom = made.name, made.bottom
        if named(name, "variable") in self.windows or name in self.streams:
            raise ValueError(f"variable {name!r}: the name is taken by a window or stream")
        if not isinstance(bottom, Lattice) or bottom != bottom.bottom():
            own = isinstance(bottom, Lattice)
            such = f"{type(bottom).__name__}()" if own else "TwoPSet() or Counter()"
            raise ValueError(
                f"declare {name!r}: a CRDT's bottom value is needed, such as {such}, not {bottom!r}"
            )
        if type(bottom) not in CODES:
            kinds = [kind.__name__ for kind in type(bottom).__mro__ if kind in CODES]
            instead = f"declare {kinds[0]}()" if kinds else "declare one, such as TwoPSet()"
            raise ValueError(
                f"declare {name!r}: devices and lakes join the types of crdts alone, and "
                f"{type(bottom).__name__} is one of your own; {instead}, one for each "
                "part of it, or keep it in an ORMap or an LWWRegister"
            )
        event = None if measures is None else self.event(measures).name
        bound = self._bound(made)
        made = replace(
            made, bottom=bottom.bottom(), measures=event, keyed=key is not None, bound=bound
        )
        known = self.variables.get(name, made)
        if _meaning(known) != _meaning(made) or (known is not made and self.keys.get(name) != key):
            raise ValueError(f"variable {name!r} is declared twice, differently")
        self.variables[name] = known
        if key is not None:
            self.keys[name] = key
        return known

    def _bound(self, made: Variable) -> str | None:
        """Return the parameter that is the bound of a variable's samples, if one is.

        Raises:
            ValueError: it is not of this program, or the variable is not dynamic.
        """
        given = getattr(made.bottom, "given", None)
        if not isinstance(given, Parameter):
            return None
        if self.parameters.get(given.name) != given:
            raise ValueError(f"declare {made.name!r}: the bound is a parameter of another program")
        if not made.dynamic:
            raise ValueError(
                f"declare {made.name!r}: a bound that operators change is for declare_dynamic: "
                "each device has samples of its own then"
            )
        return given.name

    def fold_over(self, source: Variable, fold: Fold) -> Fold:
        """Return what makes the partials of a variable's samples."""
        if source.bound is None:
            return fold
        from lasp_edge.folds.bounds import NewestBound  # noqa: PLC0415 - few programs need it

        return NewestBound(fold, source.bound)

    def add_target(self, target: Any, fold: Fold) -> Variable:
        """Return the variable that a fold makes; a new name adds it.

        Raises:
            ValueError: the fold cannot make this variable.
        """
        if isinstance(target, str):
            if named(target, "variable") in self.windows:
                raise ValueError(f"variable {target!r}: the name is taken by a window")
            if target not in self.variables:
                self.variables[target] = Variable(target, None, dynamic=True)
            target = self.variables[target]
        name = self.variable(target).name
        if self.is_folded(name):
            raise ValueError(f"{name!r} is the target of a fold already")
        if name in self.derivations or name in self.sources:
            raise ValueError(
                f"{name!r} cannot be a fold's target: sets are derived from it, or it is one"
            )
        if target.bottom is not None and _shape(target.bottom) != [c.op for c in fold.columns]:
            kind = type(target.bottom).__name__
            raise ValueError(
                f"{name!r} is declared as a {kind}, which cannot hold what {fold} gives; choose "
                "another name for the fold (a Counter holds one sum, Pair and Product several)"
            )
        return self.variables[name]

    def check_columns(self, fold: Fold) -> None:
        """Check that a fold's columns and parts can stand in the lake, beside all others.

        Raises:
            ValueError: one has the name of a column of the lake, or of another kind of column.
        """
        for name in (*fold.columns_named, *fold.parts):
            if name.casefold() in LAKE_COLUMNS:
                raise ValueError(f"fold {fold.name}: the lake has a column {name!r}; rename yours")
        need_alike(self.columns, fold.columns)

    def is_folded(self, name: str) -> bool:
        """Return whether a fold makes this variable."""
        return name in self.local or name in self.dynamic

    def fold_of(self, name: str) -> Fold:
        """Return the fold whose target a variable is."""
        return self.local[self.dynamic.get(name, name)][1]

    @property
    def sources(self) -> set[str]:
        """The variables that sets are derived from, or that handlers wait for."""
        used = {source for made in self.derivations.values() for source in made.sources}
        return used | {awaited.variable for awaited in self.awaited}

    @property
    def columns(self) -> list[Column]:
        """The columns of all folds; several have one name where folds share it."""
        folds = [window.fold for window in self.windows.values()]
        folds += [fold for _, fold in self.local.values()]
        folds += [Absent()] if self.stale_us else []
        return [column for fold in folds for column in fold.columns]


def _meaning(variable: Variable) -> tuple[Any, ...]:
    """Return what two declarations of one variable must have in common."""
    return (
        variable.dynamic,
        variable.bottom,
        variable.measures,
        variable.keyed,
        variable.version,
        variable.bound,
    )


def _shape(bottom: Lattice) -> list[Op] | None:
    """Return the ops of the columns that a state can stand for; None if no op fits it."""
    if isinstance(bottom, GCounter | PNCounter):
        return [Op.SUM]
    if not isinstance(bottom, Product):
        return None
    shapes = [_shape(part) for part in bottom.parts]
    return None if None in shapes else [op for ops in shapes for op in ops or ()]


def _shown(given: Any, such: str) -> tuple[str, str]:
    """Return what somebody gave in place of an event or variable, and what was meant by it."""
    if isinstance(given, Window | Stream | Parameter):
        return repr(given.name), ""
    if not callable(given) or isinstance(given, type):
        return repr(given), ""
    name = getattr(given, "__name__", type(given).__name__)
    return name, f"; a decorator takes the name, as in @program.{such}"
