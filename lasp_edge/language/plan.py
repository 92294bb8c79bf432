"""The plan of a program: everything it declares, checked and complete, as plain data.

A `Program` is written, a `Plan` is read. Agents, the simulated fleet, the oracle and the cloud all
start from the plan, so a stream id, a column or a resolution is worked out in one place. A plan
does not change and can be pickled. The user's functions stand apart, in `Plan.functions`: they run
only in the process that loaded the program, and a pickled plan leaves them behind.

    >>> from lasp_edge.examples.greenhouse import program
    >>> plan = program.plan()
    >>> sorted(plan.windows), sorted(plan.dynamic_folds), sorted(plan.columns)
    (['temperature_by_room'], ['global_average'], ['count', 'total_q'])
    >>> plan.windows["temperature_by_room"].keyed
    True
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from crdts.wire import encode
from lasp_edge.event import Event
from lasp_edge.folds.columns import Column
from lasp_edge.folds.numbers import Resolution
from lasp_edge.language.acting import Watched
from lasp_edge.language.declarations import (
    DynamicFold,
    EventType,
    LocalFold,
    Parameter,
    Shown,
    Stream,
    StreamResult,
    UserHandler,
    Window,
)
from lasp_edge.language.derivation import Awaited, Derivation
from lasp_edge.language.item_stream import ItemStream
from lasp_edge.language.meaning import Meaning, program_digest
from lasp_edge.protocol.streams import stream_id
from lasp_edge.variables import Variable

AT_ONCE_US = 1
"""For how long an event waits for others before it leaves that others wait for."""


@dataclass(frozen=True)
class Functions:
    """The user's functions in a plan. Pickled, they are left behind.

    Attributes:
        program: the name of the program, for errors.
        keys: the key functions by the name of their window or variable; each one checks the text
            that it gives (`checked_key`), and makes one text of several parts.
        handlers: event name -> its handlers, in the order of their declaration.
        derived: the functions of maps and filters, by the name of the derived set.
        reached: the handler of each entry of `Plan.awaited`.
        reacting: the handler of each entry of `Plan.reactions`.
        streams: the function or scan of each stream that has one.
        results: the handlers of the rows of each result.
        windows: (window, "value", "where" or "fold") -> its function that sees parameters.
    """

    program: str
    keys: Mapping[str, Callable[[Event[Any]], str]]
    handlers: Mapping[str, tuple[UserHandler, ...]]
    derived: Mapping[str, Callable[[Any], Any]]
    reached: tuple[UserHandler, ...]
    reacting: tuple[UserHandler, ...]
    streams: Mapping[str, Any]
    results: Mapping[str, tuple[UserHandler, ...]]
    windows: Mapping[tuple[str, str], Callable[..., Any]] = field(default_factory=dict)

    def key(self, name: str, event: Event[Any]) -> str:
        """Return the key of an event for a window or variable; "" where that has no keys.

        Raises:
            ValueError: the user's function gives no valid key. What it raises is passed on.
        """
        key = self.keys.get(name)
        return "" if key is None else key(event)

    def __reduce__(self) -> tuple[Any, ...]:
        return LeftBehind, (self.program,)


class LeftBehind:
    """What stands for the functions in a plan that was pickled: using any of them is an error."""

    def __init__(self, program: str) -> None:
        self._program = program

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise RuntimeError(
            f"the {name} of program {self._program!r} are not here: a pickled plan leaves the "
            "functions behind; load the program in the process that is to run them"
        )


@dataclass(frozen=True)
class Plan:
    """What a program declares, checked and complete.

    >>> from lasp_edge.examples.greenhouse import program
    >>> plan = program.plan()
    >>> plan.name, sorted(plan.events), sorted(plan.windows)
    ('greenhouse', ['temperature'], ['temperature_by_room'])
    >>> plan.windows["temperature_by_room"].size_us
    60000000

    Attributes:
        name: the program's name; names the fleet on the broker and is part of every stream id.
        events: the kinds of readings, by name.
        variables: all variables by name, targets of folds and derived sets among them.
        resolutions: the step of the values of each `BoundedLWWSet`, by the variable's name.
        meanings: what the values of each variable with a state mean, by the variable's name.
        collections: event name -> the variables that collect it, in the order of declaration.
        windows: the windows by name. Devices make their panes, the cloud their rows.
        local_folds: the local folds by target, each made on the device whose set it reads.
        dynamic_folds: the dynamic folds by target, made on every device and in the cloud.
        derivations: the derived sets by name, each after what it is made from.
        awaited: what the handlers of `on_threshold` wait for, in the order of declaration.
        reactions: what the handlers of `on_value` watch, in the order of declaration.
        alerts: what each alert watches, by its name.
        reads: event -> the folds' targets that its handlers name. What a handler reads of the fleet
            is what its device knew at that time: nobody else can compute it again.
        streams: what is made of events item by item, each after what it is made from.
        stream_results: the streams that leave, by name.
        columns: every column of the program's partials by name, sorted.
        functions: the user's functions.
        parameters: what operators can change, by name.
        shown: how people are shown values, windows and results, of those that state it.
    """

    name: str
    events: Mapping[str, EventType]
    variables: Mapping[str, Variable]
    resolutions: Mapping[str, Resolution]
    meanings: Mapping[str, Meaning]
    collections: Mapping[str, tuple[Variable, ...]]
    windows: Mapping[str, Window]
    local_folds: Mapping[str, LocalFold]
    dynamic_folds: Mapping[str, DynamicFold]
    derivations: Mapping[str, Derivation]
    awaited: tuple[Awaited, ...]
    reactions: tuple[Watched, ...]
    alerts: Mapping[str, Watched]
    reads: Mapping[str, tuple[str, ...]]
    streams: Mapping[str, Stream]
    stream_results: Mapping[str, StreamResult]
    columns: Mapping[str, Column]
    functions: Functions
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    shown: Mapping[str, Shown] = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """The digest of the program: 16 hexadecimal digits.

        It is made of all that is declared and that devices have to agree on, so not of what each
        does about a value; of a function it knows the version alone.
        """
        return program_digest(
            self.name,
            [
                (event.name, event.resolution.canonical, event.unit, *_span(event))
                for event in self.events.values()
            ],
            [
                (v.name, self.meanings[v.name].text, encode(v.bottom).hex())
                + ((v.bound,) if v.bound else ())
                for v in self.variables.values()
                if v.bottom is not None
            ],
            [(w.name, w.stream, w.size_us, w.slide_us, w.keyed) for w in self.windows.values()],
            [(fold.name, fold.stream) for fold in self.local_folds.values()],
            [(fold.name, fold.stream) for fold in self.dynamic_folds.values()],
            [(name, str(made), made.version) for name, made in self.derivations.items()],
            [(awaited.variable,) for awaited in self.awaited],
            # A program without streams keeps the digest that it had before there were any.
            *([sorted(self._streamed)] if self.streams else ()),
            *([sorted(self._parameters)] if self.parameters else ()),
        )

    @property
    def _parameters(self) -> list[tuple[Any, ...]]:
        return [
            (
                each.name,
                each.default,
                each.resolution.canonical if each.resolution else "",
                each.choices,
                *_span(each),
            )
            for each in self.parameters.values()
        ]

    @property
    def _streamed(self) -> list[tuple[str, str]]:
        results = [(each.name, str(each.stream)) for each in self.stream_results.values()]
        return [(each.name, each.fingerprint) for each in self.streams.values()] + results

    @property
    def text_events(self) -> frozenset[str]:
        """The events whose readings are texts."""
        return frozenset(name for name, event in self.events.items() if event.text)

    @cached_property
    def fleet_streams(self) -> Mapping[str, Stream]:
        """The streams of the order over the fleet, and what they are made from; in order."""
        needed: set[str] = set()
        for name, each in reversed(list(self.streams.items())):
            if each.fleet or name in needed:
                needed |= {name, *each.sources} - made_by_devices(self.streams)
        return {name: each for name, each in self.streams.items() if name in needed}

    @cached_property
    def device_streams(self) -> Mapping[str, Stream]:
        """The streams that each device evaluates; not those of which only the fleet's are made."""
        used = {source for each in self.streams.values() for source in each.sources}
        needed = {window.source.name for window in self.windows.values()} | set(self.stream_results)
        needed |= (self.streams.keys() - used) | (
            set(fleet_sources(self)) & made_by_devices(self.streams)
        )
        for name, each in reversed(list(self.streams.items())):
            if name in needed and not each.fleet:
                needed |= set(each.sources)
        return {n: each for n, each in self.streams.items() if n in needed and not each.fleet}

    @property
    def streamed_events(self) -> frozenset[str]:
        """The events that streams are made from."""
        return frozenset(event for each in self.streams.values() for event in each.events)

    @cached_property
    def evaluated_events(self) -> frozenset[str]:
        """The events of which a device keeps the items: those of the streams that it evaluates.

        And those that leave and have a window, out of which a reading can be taken back.
        """
        found = {event for each in self.device_streams.values() for event in each.events}
        windows = {window.source.name for window in self.windows.values()}
        return frozenset(found | (windows & self.item_streams.keys() & self.events.keys()))

    @cached_property
    def item_streams(self) -> Mapping[str, ItemStream]:
        """What leaves for streams over the fleet.

        Event -> its readings as they are; stream of each device -> its outputs.
        """
        found: dict[str, list[str]] = {}
        outputs: dict[str, ItemStream] = {}
        for source in fleet_sources(self):
            made = self.streams.get(source)
            if source in made_by_devices(self.streams):
                outputs[source] = _output_stream(self, self.streams[source])
                continue
            for event in [source] if made is None else made.events:
                # A filter on the device decides what leaves, so its meaning is the stream's.
                found.setdefault(event, []).append("" if made is None else made.fingerprint)
        items = {event: _item_stream(self, event, found[event]) for event in sorted(found)}
        return items | dict(sorted(outputs.items()))

    @property
    def device_results(self) -> Mapping[str, StreamResult]:
        """The results that each device makes."""
        return {n: each for n, each in self.stream_results.items() if not self.streams[n].fleet}

    @property
    def fleet_results(self) -> Mapping[str, StreamResult]:
        """The results of the order over the fleet."""
        return {n: each for n, each in self.stream_results.items() if self.streams[n].fleet}

    @property
    def windows_of_readings(self) -> list[Window]:
        """The windows over events that are not plain: devices ask what each reading counts as."""
        return [w for w in self.windows.values() if not w.is_plain and w.source.name in self.events]

    @property
    def pane_streams(self) -> tuple[Window | StreamResult, ...]:
        """The windows, and the rows of results that each device makes."""
        return (*self.windows.values(), *self.device_results.values())

    @property
    def sent_streams(self) -> tuple[Window | StreamResult | ItemStream, ...]:
        """What devices send pane entries of: those, and items and outputs for the fleet's order."""
        return (*self.pane_streams, *self.item_streams.values())

    @property
    def published_folds(self) -> dict[str, LocalFold]:
        """The local folds that a dynamic fold reads, and notes of absence: only these are sent."""
        read = {fold.source.name for fold in self.dynamic_folds.values()}
        found = {name: fold for name, fold in self.local_folds.items() if name in read}
        notes = [fold.absence for fold in self.dynamic_folds.values() if fold.absence]
        return found | {each.name: each for each in notes}

    @property
    def fold_targets(self) -> frozenset[str]:
        """The variables that a fold makes; nobody else writes them."""
        return frozenset(self.local_folds.keys() | self.dynamic_folds.keys())

    @property
    def shared_variables(self) -> dict[str, Variable]:
        """The variables that are joined over the fleet."""
        made = self.fold_targets
        return {n: v for n, v in self.variables.items() if not v.dynamic and n not in made}

    @cached_property
    def shared_streams(self) -> dict[str, int]:
        """Shared variable -> the id under which it travels: a hash of its meaning."""
        return {
            name: stream_id(self.name, "shared", name, self.meanings[name].text)
            for name in self.shared_variables
        }

    @property
    def own_variables(self) -> dict[str, Variable]:
        """The variables that devices write: those with a state that are no fold's target."""
        made = self.fold_targets
        return {n: v for n, v in self.variables.items() if v.bottom is not None and n not in made}

    @property
    def followed(self) -> tuple[str, ...]:
        """The shared variables that a derived set is made from, or that a handler waits for."""
        used = [source for made in self.derivations.values() for source in made.sources]
        used += [awaited.variable for awaited in self.awaited]
        return tuple(name for name in dict.fromkeys(used) if name not in self.derivations)


def is_apart(plan: Plan) -> bool:
    """Return whether devices need nothing of each other, and answer gateways alone.

    All that they send is for scans with local events. Then they do not hear each other's beats, and
    send fewer of them.
    """
    sent = {
        source
        for each in plan.streams.values()
        if each.operator == "gather"
        for source in each.sources
    }
    others = (plan.windows, plan.variables, plan.parameters, plan.device_results)
    return bool(sent) and not any(others) and plan.item_streams.keys() <= sent


def made_by_devices(streams: Mapping[str, Stream]) -> frozenset[str]:
    """Return the streams that only a device can make: its scans, and what is made of them."""
    return frozenset(n for n, each in streams.items() if not (each.fleet or each.stateless))


def windows_of_streams(plan: Plan) -> list[Window]:
    """Return the windows over streams that parameters change."""
    return [w for w in plan.windows.values() if not w.is_fixed and w.source.name in plan.streams]


def fleet_sources(plan: Plan) -> tuple[str, ...]:
    """Return what the order over the fleet begins with.

    Events; maps, filters and flat_maps of them, which decide what leaves; and streams of each
    device, whose outputs leave.
    """
    fleet = {name: each for name, each in plan.streams.items() if each.fleet}
    return tuple(
        dict.fromkeys(s for each in fleet.values() for s in each.sources if s not in fleet)
    )


def ordered_events(plan: Plan) -> frozenset[str]:
    """Return the events that local ones wait for: of scans with local events all others."""
    parted = [each for each in plan.streams.values() if each.local]
    return frozenset(name for each in parted for name in each.events if name not in each.local)


def _item_stream(plan: Plan, event: str, chains: list[str]) -> ItemStream:
    """Return what leaves of an event, by the fingerprints of what filters it; "" for nothing."""
    declared = plan.events[event]
    filters = () if "" in chains else sorted(set(chains))
    meaning = (event, declared.resolution.canonical, declared.text, *filters)
    stream = stream_id(plan.name, "fleet_items", *meaning)
    leave_us = declared.leave_us
    if leave_us is None and event in ordered_events(plan):
        leave_us = AT_ONCE_US
    return ItemStream(event, declared.text, stream, leave_us=leave_us)


def _output_stream(plan: Plan, stream: Stream) -> ItemStream:
    """Return what leaves of a stream of each device."""
    meaning = (stream.name, stream.fingerprint)
    stream_of = stream_id(plan.name, "fleet_outputs", *meaning)
    events = tuple((name, plan.events[name].text) for name in sorted(plan.events))
    return ItemStream(stream.name, text=False, stream=stream_of, outputs=events)


def _span(declared: EventType | Parameter) -> tuple[str, ...]:
    """Return the plausible range as a part of a digest; without a range nothing is added."""
    return () if declared.plausible is None else (declared.plausible.span,)
