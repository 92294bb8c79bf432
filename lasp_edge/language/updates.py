"""What handlers ask for: they run over one event, and their updates become checked changes.

>>> from lasp_edge.examples.greenhouse import program
>>> run_handlers(program.plan(), Event("temperature", 21.507, 10, "pi-1", {}))
[Mutation(variable='samples', mutator='add', arguments=(2151, 10), key='')]
"""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Concatenate, NamedTuple, ParamSpec, overload

from crdts import BoundedLWWSet, Lattice, Replica
from lasp_edge.event import Event
from lasp_edge.generics import State
from lasp_edge.language.acting import Folded, FoldValue
from lasp_edge.language.declarations import DynamicFold
from lasp_edge.language.plan import Plan
from lasp_edge.variables import Variable, check_mutator, in_order

Arguments = ParamSpec("Arguments")


class Mutation(NamedTuple):
    """A change of a variable: a mutator by name, and its arguments after the replica.

    `key` says which of a keyed variable's states changes; it is "" where there is one state.
    """

    variable: str
    mutator: str
    arguments: tuple[Any, ...]
    key: str = ""


ValueOf = Callable[[str, str], FoldValue | None]
"""Returns what a fold's target and key are worth on this device, as far as it knows."""


class Update:
    """What a handler is given: it collects changes, which are applied together or not at all.

    >>> from crdts import GSet
    >>> from lasp_edge import Program
    >>> program = Program("doors")
    >>> door, seen = program.event("door"), program.declare(GSet(), "seen")
    >>> @program.on_event(door)
    ... def opened(event, update):
    ...     update(seen, GSet.add, event.tags["room"])
    >>> from lasp_edge.testing import replay
    >>> sorted(replay(program, [("hall", "door", 1, 0, {"room": "attic"})]).variable("seen"))
    ['attic']

    Args:
        event: the event that the handler runs for; None where it waited for something else.
        value: the value that the handler runs for; None where it runs for something else.
        value_of: returns what a fold's target and key are worth on this device; None: nothing is.
    """

    __slots__ = ("_event", "_plan", "_value", "_value_of", "changes")

    def __init__(
        self,
        plan: Plan,
        event: Event[Any] | None = None,
        *,
        value: FoldValue | None = None,
        value_of: ValueOf | None = None,
    ) -> None:
        self._plan = plan
        self._event = event
        self._value = value
        self._value_of = value_of
        self.changes: list[Mutation] = []

    @overload
    def __call__(
        self,
        variable: Variable[State],
        mutator: Callable[Concatenate[State, Replica, Arguments], Lattice],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> None: ...
    @overload
    def __call__(
        self, variable: Variable, mutator: str | tuple[Any, ...], *arguments: Any
    ) -> None: ...
    def __call__(self, variable: Variable, mutator: Any, *arguments: Any, **named: Any) -> None:
        """Ask for a change: `update(samples, BoundedLWWSet.add, value, time_us)`.

        `mutator` is one of the variable's type, its name, or the whole change as a tuple
        `("add", value, time_us)`; `arguments` follow the replica.

        A variable with keys changes at the key of the event, or of the value that is reacted to.

        Raises:
            ValueError: the variable is derived or of another program, there is no such mutator, or
                there is no valid key; `numbers.Refused` for a value that is not a number.
        """
        if isinstance(mutator, tuple):
            mutator, *rest = mutator
            arguments = (*rest, *arguments)
        name = mutator if isinstance(mutator, str) else getattr(mutator, "__name__", "")
        if named:
            arguments = in_order(variable, name, arguments, named)
        arguments = _checked(self._plan, variable, name, arguments)
        self._need_source(variable.name)
        self.changes.append(Mutation(variable.name, name, arguments, self._key(variable)))

    def _need_source(self, variable: str) -> None:
        """Check that the plan knows that this event writes the variable's samples."""
        meaning, event, value = self._plan.meanings[variable], self._event, self._value
        if meaning.resolution and event is not None and event.name not in meaning.events:
            raise ValueError(
                f"update: a handler of {event.name!r} changes {variable!r}, which its code does "
                f"not name; write on_event({event.name!r}, writes=[{variable}])"
            )
        if meaning.resolution and value and reaction_source(value.name) not in meaning.events:
            raise ValueError(
                f"update: a handler of the value {value.name!r} changes {variable!r}, which its "
                "code does not name; let it name the variable itself"
            )

    def _key(self, variable: Variable) -> str:
        if not variable.keyed:
            return ""
        if self._value is not None:
            return self._value.key
        if self._event is None:
            raise ValueError(f"update: {variable.name!r} has keys, and there is no event")
        return self._plan.functions.key(variable.name, self._event)

    def value(self, fold: Folded | str, key: str | None = None) -> FoldValue | None:
        """Return what a fold is worth now, as this device knows it; None where nothing is known.

        It is read, and no part of what is computed: two devices may know different things at one
        time, and nobody can compute again what a handler made of it. So what is to be equal
        everywhere, such as a window, must not depend on it.

        >>> from lasp_edge.examples.greenhouse import program
        >>> print(Update(program.plan()).value("global_average"))  # no device knows it yet
        None

        Args:
            fold: the target of a `fold` or `fold_dynamic`, or its name.
            key: of a fold with keys; where it is None, the key of the event or value at hand.

        Raises:
            ValueError: the program has no such fold, or there is no key at hand.
        """
        name = fold.name if isinstance(fold, Variable) else fold
        made = self._plan.dynamic_folds.get(name) or self._plan.local_folds.get(name)
        if made is None:
            raise ValueError(f"update.value: {name!r} is not made by fold or fold_dynamic")
        if key is None:
            local = made.source if isinstance(made, DynamicFold) else made
            key = self._key(local.source)
        return None if self._value_of is None else self._value_of(name, key)


def run_handlers(plan: Plan, event: Event[Any], value_of: ValueOf | None = None) -> list[Mutation]:
    """Return what the event's handlers ask for."""
    update = Update(plan, event, value_of=value_of)
    for handler in plan.functions.handlers.get(event.name, ()):
        try:
            handler(event, update)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise  # the handler's own line raised it
            raise TypeError(f"{error}{_place_of(handler)}") from error
    return update.changes


def _place_of(handler: object) -> str:
    """Return where a handler stands that cannot be called as it is."""
    code = getattr(handler, "__code__", None)
    return f": {Path(code.co_filename).name} line {code.co_firstlineno}" if code else ""


def result_source(stream: str) -> str:
    """Return what stands for a handler of results among the events that write a variable."""
    return f"{stream} (on_result)"


def reaction_source(variable: str) -> str:
    """Return what stands for a handler of a value among the events that write a variable."""
    return f"{variable} (on_value)"


def _checked(
    plan: Plan, variable: Any, mutator: str, arguments: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Return the arguments of a change; measured values in them become quantised integers."""
    if not isinstance(variable, Variable) or plan.variables.get(variable.name) is not variable:
        raise ValueError(f"{variable!r} is not a variable of program {plan.name!r}")
    name, bottom = variable.name, variable.bottom
    if bottom is None or name in plan.local_folds or name in plan.dynamic_folds:
        made = plan.derivations.get(name, "a fold")
        raise ValueError(f"update: {name!r} is derived by {made} and cannot be updated")
    _check_mutator(name, type(bottom), mutator, len(arguments))
    if isinstance(bottom, BoundedLWWSet):
        return (plan.resolutions[name].quantise(arguments[0]), *arguments[1:])
    return arguments


@lru_cache(maxsize=1024)
def _check_mutator(name: str, kind: type[Lattice], mutator: str, count: int) -> None:
    check_mutator(name, kind, mutator, count)
